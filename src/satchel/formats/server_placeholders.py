"""Fill in the placeholders of a declared MCP server."""

import os
import re
from collections.abc import Callable, Mapping

from satchel.formats.frozen_values import frozen
from satchel.formats.mcp_json import PLUGIN_DATA, PLUGIN_ROOT, McpServerManifest, no_pairs

_PLACEHOLDER = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}")
_CLAUDE_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_FOLDERS = frozenset({PLUGIN_ROOT, PLUGIN_DATA, f"CLAUDE_{PLUGIN_ROOT}", f"CLAUDE_{PLUGIN_DATA}"})


def variables_in(text: str) -> list[str]:
    """Return the environment variables that the placeholders in a text name."""
    names = (match[1] for match in _CLAUDE_PLACEHOLDER.finditer(text))
    return [name for name in dict.fromkeys(names) if name not in _FOLDERS]


def fill_placeholders(
    server: McpServerManifest,
    root: str,
    data: str,
    environment: Mapping[str, str],
) -> McpServerManifest:
    """Return the server with all placeholders filled in, ready to start or connect.

    `root` is the plugin's folder and `data` the folder where its servers can store data, both
    absolute and without links. `environment` is the base environment of the process; only
    Claude bundles can use it in placeholders. No file is read.
    """
    variables = {PLUGIN_ROOT: root, PLUGIN_DATA: data}
    fill = _claude_filler(variables, environment) if server.of_claude else _filler(variables)
    env = {name: fill(value) for name, value in server.env.items()}
    if server.of_claude:
        variables |= {f"CLAUDE_{name}": value for name, value in variables.items()}
    is_local = server.transport == "stdio"
    return McpServerManifest(
        name=server.name,
        transport=server.transport,
        # The open format has no placeholders in command, url and headers; Claude bundles do.
        command=_inside(root, fill(server.command) if server.of_claude else server.command),
        args=tuple(map(fill, server.args)),
        env=frozen({**environment, **env, **variables}) if is_local else no_pairs(),
        cwd=_cwd(server, root, fill) if is_local else "",
        env_file=os.path.join(root, fill(server.env_file)) if server.env_file else "",
        url=fill(server.url) if server.of_claude else server.url,
        headers=frozen({name: fill(value) for name, value in server.headers.items()})
        if server.of_claude
        else server.headers,
        client_id=server.client_id,
        redirect=server.redirect,
        scopes=server.scopes,
        or_sse=server.or_sse,
        of_claude=server.of_claude,
    )


_Fill = Callable[[str], str]


def _filler(values: Mapping[str, str]) -> _Fill:
    """Return a function that replaces the placeholders of the open format, not recursively."""
    return lambda text: _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _claude_filler(values: Mapping[str, str], environment: Mapping[str, str]) -> _Fill:
    """Return a function that replaces `${NAME}` and `${NAME:-default}`.

    A placeholder without a value and default stays as it is.
    """
    variables = {**environment, **{f"CLAUDE_{name}": value for name, value in values.items()}}

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if name not in variables and default is None:
            return match[0]
        return variables.get(name) or default or ""

    return lambda text: _CLAUDE_PLACEHOLDER.sub(value, text)


def _cwd(server: McpServerManifest, root: str, fill: _Fill) -> str:
    # Never where we are: a command such as `npx` would take programs of that folder.
    return os.path.join(root, _inside(root, fill(server.cwd))) if server.cwd else root


def _inside(root: str, path: str) -> str:
    return f"{root}/{path[2:]}" if path.startswith("./") else path
