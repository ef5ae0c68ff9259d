"""Configuration: where the values of a plugin's state fields come from.

What the host gave in code wins, then the environment, then the plugin's file in the user's
configuration folder.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from satchel.diagnostics import Diagnostic, Where, report
from satchel.settings import KIB
from satchel.sources.files import UnreadableFileError, read_regular

_LIMIT = 256 * KIB
_FOLDER_VARIABLE = "SATCHEL_CONFIG_DIR"


@dataclass(frozen=True, slots=True)
class Configuration:
    """The values that one plugin is configured with."""

    plugin: str
    path: str
    """The file, whether it exists or not."""
    values: Mapping[str, Any] = field(repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()
    is_unreadable: bool = False
    """Whether there is a file that cannot be read, so that nobody knows what is in it."""

    def variable(self, key: str) -> str:
        """Return the environment variable that sets a key."""
        return f"{_prefix(self.plugin)}{key.upper()}"

    def how_to_set(self, key: str) -> str:
        """Say where a value for a key can be put."""
        return f"put {key.upper()}=... into {self.path}, or set {self.variable(key)}"


def configuration_path(plugin: str, folder: str = "") -> str:
    """Return the file of a plugin's configuration, whether it exists or not."""
    return os.path.join(folder or config_folder(), "plugins", f"{plugin}.env")


def read_configuration(plugin: str, given: Mapping[str, Any], folder: str = "") -> Configuration:
    """Gather a plugin's values; keys are in lower case, as parameters are."""
    path = configuration_path(plugin, folder)
    values, problems = _file(path)
    is_unreadable = any(not item.where.line for item in problems)
    prefix = _prefix(plugin)
    environment = {
        name.removeprefix(prefix).lower(): value
        for name, value in os.environ.items()
        # An empty value is how shells and files say that there is none.
        if name.startswith(prefix) and value
    }
    return Configuration(
        plugin, path, {**values, **environment, **_said(given)}, problems, is_unreadable
    )


def fixed_folder(given: str) -> str:
    """Return a folder as it is wherever the current folder goes, or `""` for the user's own."""
    named = given or os.environ.get(_FOLDER_VARIABLE, "")
    return os.path.abspath(os.path.expanduser(named)) if named else ""


def config_folder() -> str:
    """Return the user's configuration folder, which `SATCHEL_CONFIG_DIR` moves."""
    if folder := fixed_folder(""):
        return folder
    # Lazy: most hosts configure nothing.
    from platformdirs import user_config_dir

    return user_config_dir("satchel", appauthor=False)


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out empty texts, which hosts pass on from an environment that says nothing."""
    return {key: value for key, value in given.items() if not (value == "" and type(value) is str)}


def _prefix(plugin: str) -> str:
    return f"SATCHEL_{''.join(c if c.isalnum() else '_' for c in plugin).upper()}_"


def _file(path: str) -> tuple[dict[str, str], tuple[Diagnostic, ...]]:
    if not os.path.lexists(path):
        return {}, ()
    try:
        data, _ = read_regular(path, _LIMIT)
        text = data.decode("utf-8-sig")
    except UnreadableFileError as problem:
        return {}, (_unreadable(path, str(problem)),)
    except UnicodeDecodeError:
        return {}, (_unreadable(path, "it is not UTF-8"),)
    if len(data) > _LIMIT:
        return {}, (_unreadable(path, f"it is larger than {_LIMIT} bytes"),)
    # Not `dotenv_values`: it logs a bad line at every look. Nothing is interpolated either, since
    # a password may hold a dollar sign.
    from dotenv.parser import parse_stream

    lines = list(parse_stream(StringIO(text)))
    bad = [line.original.line for line in lines if line.error]
    values = {line.key.lower(): line.value for line in lines if line.key and line.value}
    return values, tuple(_odd_line(path, number) for number in bad)


def _odd_line(path: str, number: int) -> Diagnostic:
    # Without the line itself, which may hold a secret.
    return report(
        "config-unreadable",
        Where(path, number),
        "this line of the configuration is not of the form KEY=value; it is left out",
        "put a value with blanks or quotes into quotes",
    )


def _unreadable(path: str, reason: str) -> Diagnostic:
    return report("config-unreadable", Where(path), f"the configuration cannot be read: {reason}")
