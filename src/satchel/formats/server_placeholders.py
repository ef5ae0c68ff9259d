"""Fill in the placeholders of a declared MCP server."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from satchel.errors import DefinitionError
from satchel.formats.mcp_json import PLUGIN_DATA, PLUGIN_ROOT, McpServerManifest
from satchel.lazy_dataclass import dataclass

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]{0,500}))?\}")
_FOLDER = re.compile(r"\$\{(PLUGIN_ROOT|PLUGIN_DATA)()\}")
_FOLDERS = frozenset({PLUGIN_ROOT, PLUGIN_DATA, f"CLAUDE_{PLUGIN_ROOT}", f"CLAUDE_{PLUGIN_DATA}"})


def variables_in(text: str) -> list[str]:
    """Return the environment variables that the placeholders in a text name."""
    names = (match[1] for match in _VARIABLE.finditer(text))
    return [name for name in dict.fromkeys(names) if name not in _FOLDERS]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderFiller:
    """Fills in `${NAME}` and `${NAME:-default}` in the values of one server.

    A value that is filled in is not searched again.
    """

    variables: Mapping[str, str]
    folders: Mapping[str, str] = field(default_factory=dict)
    """The folders of a plugin, by their variables."""
    is_open: bool = False
    """Whether an open plugin declares the server: then only folders are filled in."""

    @property
    def root(self) -> str:
        """Return the folder of the plugin, `""` if a settings file declares the server."""
        return self.folders.get(PLUGIN_ROOT, "")

    def filled(self, text: str) -> str:
        """Return a text with its placeholders filled in. Raises `DefinitionError`.

        In a plugin, a placeholder without a value and default stays as it is.
        """
        return (_FOLDER if self.is_open else _VARIABLE).sub(self._value, text)

    def all_filled(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return texts with their placeholders filled in. Raises `DefinitionError`."""
        return tuple(map(self.filled, texts))

    def values_filled(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return a mapping with the placeholders of its values filled in."""
        return {name: self.filled(text) for name, text in texts.items()}

    def address(self, text: str) -> str:
        """Return a command, URL or header, in which the open format has no placeholders."""
        return text if self.is_open else self.filled(text)

    def inside(self, path: str) -> str:
        """Return a path; in a plugin, `./` is the plugin's folder."""
        return f"{self.root}/{path[2:]}" if self.root and path.startswith("./") else path

    def secrets_in(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the values of environment variables that are filled into texts."""
        names = variables_in(" ".join(texts))
        return tuple(self.variables[name] for name in names if name in self.variables)

    def _value(self, match: re.Match[str]) -> str:
        name, default = match.groups()
        values = {**self.variables, **self.folders}
        if name not in values and default is None:
            if self.folders:
                return match[0]
            message = f"it uses the environment variable {name}, which is not set"
            raise DefinitionError(message, fix=f"set {name}, or write ${{{name}:-a default}}")
        return values.get(name) or default or ""


def plugin_filler(
    server: McpServerManifest, root: str, data: str, environment: Mapping[str, str]
) -> PlaceholderFiller:
    """Return what fills in the placeholders of a plugin's server.

    `root` is the plugin's folder and `data` the folder where its servers can store data, both
    absolute and without links. Only Claude bundles can use the environment.
    """
    folders = {PLUGIN_ROOT: root, PLUGIN_DATA: data}
    if not server.of_claude:
        return PlaceholderFiller(variables={}, folders=folders, is_open=True)
    folders |= {f"CLAUDE_{name}": value for name, value in folders.items()}
    return PlaceholderFiller(variables=environment, folders=folders)
