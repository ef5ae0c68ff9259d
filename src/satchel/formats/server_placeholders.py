"""An MCP server with its placeholders filled in: what is started, or connected to."""

import re
from collections.abc import Callable, Iterable, Mapping

from satchel.formats.frozen_values import frozen
from satchel.formats.mcp_json import PLUGIN_DATA, PLUGIN_ROOT, McpServerManifest, no_pairs

_PLACEHOLDER = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}")
_CLAUDE_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def fill_placeholders(
    server: McpServerManifest,
    root: str,
    data: str,
    environment: Mapping[str, str],
    *,
    fold_names: bool = False,
) -> McpServerManifest:
    """Return a server as it is to be started or connected to.

    `root` is the plugin's folder and `data` the folder where its servers may keep things, both
    absolute and free of links. `environment` is what a process is given to begin with; a server
    of the open format sees none of it in its placeholders. With `fold_names` upper and lower case
    of a variable are the same, as on Windows. What the folders hold is not looked at.
    """
    ours = {PLUGIN_ROOT: root, PLUGIN_DATA: data}
    fill = _claude_filler(ours, environment) if server.of_claude else _filler(ours)
    env = {name: fill(value) for name, value in server.env.items()}
    if server.of_claude:
        ours |= {f"CLAUDE_{name}": value for name, value in ours.items()}
    whole = _overlaid([environment, env, ours], fold_names=fold_names)
    is_local = server.transport == "stdio"
    return McpServerManifest(
        name=server.name,
        transport=server.transport,
        # What the open format never fills in, a Claude bundle may.
        command=_inside(root, fill(server.command) if server.of_claude else server.command),
        args=tuple(map(fill, server.args)),
        env=frozen(whole) if is_local else no_pairs(),
        cwd=_cwd(server, root, fill) if is_local else "",
        url=fill(server.url) if server.of_claude else server.url,
        headers=frozen({name: fill(value) for name, value in server.headers.items()})
        if server.of_claude
        else server.headers,
        of_claude=server.of_claude,
    )


_Fill = Callable[[str], str]


def _filler(values: Mapping[str, str]) -> _Fill:
    """Return what replaces the placeholders of the open format, once and nothing else."""
    return lambda text: _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def _claude_filler(values: Mapping[str, str], environment: Mapping[str, str]) -> _Fill:
    """Return what replaces `${NAME}` and `${NAME:-default}`; a name without a value stays."""
    known = {**environment, **{f"CLAUDE_{name}": value for name, value in values.items()}}

    def value(found: re.Match[str]) -> str:
        given = known.get(found[1])
        return (given or found[2] or "") if given is not None or found[2] is not None else found[0]

    return lambda text: _CLAUDE_PLACEHOLDER.sub(value, text)


def _overlaid(layers: Iterable[Mapping[str, str]], *, fold_names: bool) -> dict[str, str]:
    """Lay mappings over each other; a later name replaces those that are the same to the system."""
    whole: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            whole[name.upper() if fold_names else name] = (name, value)
    return dict(whole.values())


def _cwd(server: McpServerManifest, root: str, fill: _Fill) -> str:
    if not server.cwd:
        return "" if server.of_claude else root
    return _inside(root, fill(server.cwd))


def _inside(root: str, path: str) -> str:
    return f"{root}/{path[2:]}" if path.startswith("./") else path
