"""Collect a plugin's configuration values.

Values given in code win, then the environment, then the plugin's file in the user's configuration
folder, then the `satchel.toml` of the project, then the defaults of the manifest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from satchel.configuration.env_file import read_env
from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.file_reader import stamped
from satchel.files.state_files import DATA_VARIABLE, user_folder
from satchel.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import StampedPath
    from satchel.formats.config_fields import ConfigField

FOLDER_VARIABLE = "SATCHEL_CONFIG_DIR"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ProjectLayer:
    """The values for one plugin in the `satchel.toml` of a project."""

    path: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The configuration of one plugin."""

    plugin: str
    path: str
    """The plugin's file in the configuration folder; it may not exist."""
    values: Mapping[str, Any] = field(repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()
    is_unreadable: bool = False
    """Whether the file exists but cannot be read, so that its values are unknown."""
    fields: tuple[ConfigField, ...] = ()
    """The fields that the plugin declares."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The values before conversion, also invalid ones."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each value comes from: code, environment, file, project or default."""
    invalid: Mapping[str, str] = field(default_factory=dict)
    """The keys with invalid values, each with what is wrong."""
    stamps: tuple[StampedPath, ...] = ()
    """The stamps of the file, taken before it was read."""

    @property
    def missing(self) -> tuple[ConfigField, ...]:
        """Return the required fields without a value."""
        return tuple(item for item in self.fields if item.required and item.key not in self.origins)

    def variable(self, key: str) -> str:
        """Return the environment variable that sets a key."""
        return f"{_prefix(self.plugin)}{key.upper()}"

    def how_to_set(self, *keys: str) -> str:
        """Return a fix that names every way to set some keys."""
        lines = " and ".join(f"{key.upper()}=..." for key in keys)
        variables = " and ".join(map(self.variable, keys))
        by_hand = f"put {lines} into {self.path}, or set {variables}"
        # The command accepts only keys that can be a variable.
        if not all(map(_VARIABLE_NAME.fullmatch, keys)):
            return by_hand
        return f"{' && '.join(map(self.command, keys))}, or {by_hand}"

    def command(self, key: str) -> str:
        """Return the command that sets a key; it asks for the value."""
        from shlex import quote

        return f"satchel config set {quote(self.plugin)} {key}"

    def fix_for(self, key: str) -> str:
        """Return a fix for an invalid value at its origin."""
        command, origin = self.command(key), self.origins.get(key.lower(), "")
        fixes = {
            "code": "correct it in Satchel(config=...)",
            "environment": f"correct {self.variable(key)}; or unset it, and run {command}",
            "project": f"correct it in the project's satchel.toml; or run {command}",
        }
        return fixes.get(origin, command)

    def without_values(self, missing: Sequence[ConfigField]) -> tuple[Diagnostic, ...]:
        """Return one diagnostic of all these required fields without a value, if there are any."""
        if not missing:
            return ()
        names = [item.name for item in missing]
        allowed = dict.fromkeys(item.refused("").fix for item in missing)
        message = f"{without_value(names)}; {', '.join(allowed)}"
        fix = self.how_to_set(*names)
        return (make_diagnostic("config-invalid", Where(self.path), message, fix),)


def without_value(names: Sequence[str]) -> str:
    """Return the message that these fields have no value."""
    return f"{', '.join(map(repr, names))} {'has' if len(names) == 1 else 'have'} no value"


def configuration_path(plugin: str, folder: str = "") -> str:
    """Return the path of a plugin's configuration file, which may not exist."""
    return os.path.join(folder or config_folder(), "plugins", f"{plugin}.env")


def read_configuration(
    plugin: str,
    code_values: Mapping[str, Any],
    folder: str = "",
    fields: Iterable[ConfigField] = (),
    project: ProjectLayer | None = None,
) -> Configuration:
    """Return a plugin's configuration; keys are in lower case, like parameters.

    Values of declared `fields` are converted to the type of the field; invalid ones are left out,
    with a diagnostic. Other values stay as given.
    """
    path = configuration_path(plugin, folder)
    # Stamped first: a file that changes while it is read is read again.
    stamps = stamped([path])
    in_file, file_diagnostics = read_env(path)
    is_unreadable = any(not item.where.line for item in file_diagnostics)
    fields, project = tuple(fields), project or ProjectLayer()
    project_values, refused = _project_values(project, fields)
    layers: dict[str, Mapping[str, Any]] = {
        "project": project_values,
        "file": in_file,
        "environment": _environment(plugin, fields),
        "code": _code_values(code_values, fields),
    }
    raw = {item.key: item.default for item in fields if item.default is not None}
    origins = dict.fromkeys(raw, "default")
    for origin, values in layers.items():
        raw.update(values)
        origins.update(dict.fromkeys(values, origin))
    for item in fields:
        # A key spelled exactly like the field was given by the host, and wins.
        if item.name != item.key and item.name in raw:
            raw[item.key], origins[item.key] = raw.pop(item.name), origins.pop(item.name)
    values, invalid = _converted(fields, raw)
    config = Configuration(
        plugin=plugin,
        path=path,
        values=values,
        is_unreadable=is_unreadable,
        fields=fields,
        raw=raw,
        origins=origins,
        invalid=invalid,
        stamps=stamps,
    )
    return replace(
        config,
        diagnostics=(
            *file_diagnostics,
            *(_project_secret(config, item, project) for item in refused),
            *(_invalid_value(config, item, project) for item in fields if item.key in invalid),
        ),
    )


def convert_value(item: ConfigField, value: Any) -> Any:
    """Return the value converted to the type of a field.

    Raises `DefinitionError`, whose message never has the value.
    """
    parsed = item.parsed(value)
    if item.type != "path":
        return parsed
    path = os.path.expanduser(parsed)
    if item.must_exist and not os.path.exists(path):
        raise item.refused("is a path that does not exist")
    return path


def _converted(
    fields: Iterable[ConfigField], raw: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    values, invalid = dict(raw), {}
    for item in fields:
        if item.key not in raw:
            continue
        try:
            values[item.key] = convert_value(item, raw[item.key])
        except DefinitionError as error:
            del values[item.key]
            invalid[item.key] = f"{error.message}; {error.fix}"
    return values, invalid


def _code_values(code_values: Mapping[str, Any], fields: Iterable[ConfigField]) -> dict[str, Any]:
    """Return the host's values; `None` for a declared field, as of `os.environ.get`, is unset."""
    declared = {item.key for item in fields}
    values = _without_empty(code_values).items()
    return {key: value for key, value in values if value is not None or key.lower() not in declared}


def _environment(plugin: str, fields: Iterable[ConfigField]) -> dict[str, str]:
    """Return a plugin's values in the environment.

    If the plugin declares fields, other variables are ignored: `SATCHEL_ACME_MAPS_KEY` may belong
    to the plugin `acme-maps` instead of `acme`.
    """
    prefix, declared = _prefix(plugin), {item.key for item in fields}
    values = {
        name.removeprefix(prefix).lower(): value
        for name, value in os.environ.items()
        # Shells and env files use an empty value for "unset".
        if name.startswith(prefix) and value and name not in {FOLDER_VARIABLE, DATA_VARIABLE}
    }
    return {key: value for key, value in values.items() if not declared or key in declared}


def _project_values(
    project: ProjectLayer, fields: tuple[ConfigField, ...]
) -> tuple[dict[str, Any], list[ConfigField]]:
    """Return the values of a project, and the secrets in it, which are refused."""
    values = {key.lower(): value for key, value in _without_empty(project.values).items()}
    refused = [item for item in fields if item.is_secret and item.key in values]
    for item in refused:
        del values[item.key]
    for item in fields:
        text = values.get(item.key)
        if item.type == "path" and isinstance(text, str) and not text.startswith("~"):
            # Paths are relative to the file, not to the current folder.
            values[item.key] = os.path.join(os.path.dirname(project.path), text)
    return values, refused


def _project_secret(config: Configuration, item: ConfigField, project: ProjectLayer) -> Diagnostic:
    return make_diagnostic(
        "config-invalid",
        Where(project.path),
        f"{item.name!r} of plugin {config.plugin!r} is a secret, which does not belong in a "
        "project; it is not used",
        f"remove it, change the secret, and run {config.command(item.name)}",
    )


def _invalid_value(config: Configuration, item: ConfigField, project: ProjectLayer) -> Diagnostic:
    # The message never quotes the value, which may be a secret.
    variable = config.variable(item.key)
    where, origin = {
        "code": ("Satchel(config=...)", "code"),
        "environment": (variable, f"the environment ({variable})"),
        "project": (project.path, "the project"),
        "default": (config.path, "the manifest's default"),
    }.get(config.origins[item.key], (config.path, "the file"))
    message = f"the value of {item.name!r}, from {origin}, {config.invalid[item.key]}"
    return make_diagnostic("config-invalid", Where(where), message, config.fix_for(item.name))


def fixed_folder(path: str) -> str:
    """Return the absolute path of the chosen folder, or `""` for the user's default folder."""
    folder = path or os.environ.get(FOLDER_VARIABLE, "")
    return os.path.abspath(os.path.expanduser(folder)) if folder else ""


def config_folder() -> str:
    """Return the user's configuration folder; `SATCHEL_CONFIG_DIR` changes it."""
    return user_folder("config", os.environ.get(FOLDER_VARIABLE, ""))


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop empty texts, which hosts pass on from unset environment variables."""
    return {key: value for key, value in values.items() if not (value == "" and type(value) is str)}


def _prefix(plugin: str) -> str:
    return f"SATCHEL_{''.join(c if c.isalnum() else '_' for c in plugin).upper()}_"


def fingerprint(values: Mapping[str, Any]) -> str:
    """Return a hash that changes with any value.

    Python salts it for each process, so it reveals no secret.
    """
    return f"{hash(tuple(map(_text, sorted(values.items())))):x}"


def _text(item: tuple[str, Any]) -> str:
    try:
        return repr(item)
    except Exception:
        return f"{item[0]} {id(item[1]):x}"  # A value may have no working repr.
