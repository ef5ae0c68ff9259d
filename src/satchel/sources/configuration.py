"""Configuration: where the values of a plugin's state fields come from.

What the host gave in code wins, then the environment, then the plugin's file in the user's
configuration folder, then the `satchel.toml` of a project, then the default of the manifest.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import ConfigField
from satchel.sources.env_file import read_env
from satchel.sources.file_reader import StampedPath, stamped

FOLDER_VARIABLE = "SATCHEL_CONFIG_DIR"
DATA_VARIABLE = "SATCHEL_DATA_DIR"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ProjectLayer:
    """What the `satchel.toml` of a project says of one plugin."""

    path: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The values that one plugin is configured with."""

    plugin: str
    path: str
    """The file, whether it exists or not."""
    values: Mapping[str, Any] = field(repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()
    is_unreadable: bool = False
    """Whether there is a file that cannot be read, so that nobody knows what is in it."""
    fields: tuple[ConfigField, ...] = ()
    """The fields that the plugin declares."""
    written: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The values as they were given, also those that are not allowed."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each value comes from: code, environment, file, project or default."""
    invalid: Mapping[str, str] = field(default_factory=dict)
    """The keys whose values are not allowed, each with what is wrong with it."""
    stamps: tuple[StampedPath, ...] = ()
    """The stamps of the file, taken before it was read."""

    @property
    def missing(self) -> tuple[ConfigField, ...]:
        """Return the required fields that nobody gave a value."""
        return tuple(item for item in self.fields if item.required and item.key not in self.origins)

    def variable(self, key: str) -> str:
        """Return the environment variable that sets a key."""
        return f"{_prefix(self.plugin)}{key.upper()}"

    def how_to_set(self, key: str) -> str:
        """Say where a value for a key can be put."""
        put = f"put {key.upper()}=... into {self.path}, or set {self.variable(key)}"
        # The command takes what can be a variable, and so what can be a parameter.
        return f"{self.command(key)}, or {put}" if _WORD.fullmatch(key) else put

    def command(self, key: str) -> str:
        """Return the command that sets a key; it asks for what may be a secret."""
        is_open = any(item.key == key.lower() and not item.is_secret for item in self.fields)
        return f"satchel config set {quote(self.plugin)} {key}{' VALUE' if is_open else ''}"

    def mend(self, key: str) -> str:
        """Say how to mend a value that is not allowed, where it comes from."""
        command, origin = self.command(key), self.origins.get(key.lower(), "")
        told = {
            "code": "correct it in Satchel(config=...)",
            "environment": f"correct {self.variable(key)}; or unset it, and say {command}",
            "project": f"correct it in the project's satchel.toml; or say {command}",
        }
        return told.get(origin, command)

    def without_value(self, missing: ConfigField) -> Diagnostic:
        """Report a required field that nobody gave a value."""
        return make_diagnostic(
            "config-invalid",
            Where(self.path),
            f"{missing.name!r} has no value; {missing.refused('').fix}",
            self.how_to_set(missing.name),
        )


def configuration_path(plugin: str, folder: str = "") -> str:
    """Return the file of a plugin's configuration, whether it exists or not."""
    return os.path.join(folder or config_folder(), "plugins", f"{plugin}.env")


def read_configuration(
    plugin: str,
    given: Mapping[str, Any],
    folder: str = "",
    fields: Iterable[ConfigField] = (),
    project: ProjectLayer | None = None,
) -> Configuration:
    """Gather a plugin's values; keys are in lower case, as parameters are.

    Those of declared `fields` are of the type that the field has; what is no such value is left
    out, with a diagnostic. The others are as they were given.
    """
    path = configuration_path(plugin, folder)
    # Stamped first: what changes while it is read is read again.
    stamps = stamped([path])
    in_file, problems = read_env(path)
    is_unreadable = any(not item.where.line for item in problems)
    fields, project = tuple(fields), project or ProjectLayer()
    allowed, refused = _without_secrets(project, fields)
    layers: dict[str, Mapping[str, Any]] = {
        "project": allowed,
        "file": in_file,
        "environment": _environment(plugin, fields),
        "code": _of_code(given, fields),
    }
    written = {item.key: item.default for item in fields if item.default is not None}
    origins = dict.fromkeys(written, "default")
    for origin, values in layers.items():
        written.update(values)
        origins.update(dict.fromkeys(values, origin))
    for item in fields:
        # What is spelled as the field is came from the host, and wins.
        if item.name != item.key and item.name in written:
            written[item.key], origins[item.key] = written.pop(item.name), origins.pop(item.name)
    values, invalid = _checked(fields, written)
    config = Configuration(
        plugin=plugin,
        path=path,
        values=values,
        diagnostics=(),
        is_unreadable=is_unreadable,
        fields=fields,
        written=written,
        origins=origins,
        invalid=invalid,
        stamps=stamps,
    )
    odd = (_invalid(config, item, project) for item in fields if item.key in invalid)
    diagnostics = (*problems, *(_secret(config, item, project) for item in refused), *odd)
    return replace(config, diagnostics=diagnostics)


def convert_value(item: ConfigField, value: Any) -> Any:
    """Return a value of the type that a field has. Raises `DefinitionError`, without the value."""
    made = item.parsed(value)
    if item.type != "path":
        return made
    made = os.path.expanduser(made)
    if item.must_exist and not os.path.exists(made):
        raise item.refused("is the path of nothing that exists")
    return made


def _checked(
    fields: Iterable[ConfigField], written: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    values, invalid = dict(written), {}
    for item in fields:
        if item.key not in written:
            continue
        try:
            values[item.key] = convert_value(item, written[item.key])
        except DefinitionError as problem:
            del values[item.key]
            invalid[item.key] = f"{problem.message}; {problem.fix}"
    return values, invalid


def _of_code(given: Mapping[str, Any], fields: Iterable[ConfigField]) -> dict[str, Any]:
    """Return what a host gave; of a declared field `None` is no value, as from `os.environ.get`."""
    declared = {item.key for item in fields}
    said = _said(given).items()
    return {key: value for key, value in said if value is not None or key.lower() not in declared}


def _environment(plugin: str, fields: Iterable[ConfigField]) -> dict[str, str]:
    """Return what the environment says of a plugin.

    Of one that declares fields only those count: `SATCHEL_ACME_MAPS_KEY` may be meant for another,
    `acme-maps`.
    """
    prefix, declared = _prefix(plugin), {item.key for item in fields}
    found = {
        name.removeprefix(prefix).lower(): value
        for name, value in os.environ.items()
        # An empty value is how shells and files say that there is none.
        if name.startswith(prefix) and value and name not in {FOLDER_VARIABLE, DATA_VARIABLE}
    }
    return {key: value for key, value in found.items() if not declared or key in declared}


def _without_secrets(
    project: ProjectLayer, fields: tuple[ConfigField, ...]
) -> tuple[dict[str, Any], list[ConfigField]]:
    """Return what a project may say, and the secrets that it says all the same."""
    said = {key.lower(): value for key, value in _said(project.values).items()}
    refused = [item for item in fields if item.is_secret and item.key in said]
    for item in refused:
        del said[item.key]
    for item in fields:
        text = said.get(item.key)
        if item.type == "path" and isinstance(text, str) and not text.startswith("~"):
            # It is meant as it is seen from the file, wherever a program runs.
            said[item.key] = os.path.join(os.path.dirname(project.path), text)
    return said, refused


def _secret(config: Configuration, item: ConfigField, project: ProjectLayer) -> Diagnostic:
    return make_diagnostic(
        "config-invalid",
        Where(project.path),
        f"{item.name!r} of plugin {config.plugin!r} is a secret, which does not belong into a "
        "project; it is not used",
        f"take it out, change it, and say {config.command(item.name)}",
    )


def _invalid(config: Configuration, item: ConfigField, project: ProjectLayer) -> Diagnostic:
    """Report a value that is not allowed, without quoting it."""
    variable = config.variable(item.key)
    place, by = {
        "code": ("Satchel(config=...)", "code"),
        "environment": (variable, f"the environment ({variable})"),
        "project": (project.path, "the project"),
        "default": (config.path, "the manifest's default"),
    }.get(config.origins[item.key], (config.path, "the file"))
    message = f"the value of {item.name!r}, from {by}, {config.invalid[item.key]}"
    return make_diagnostic("config-invalid", Where(place), message, config.mend(item.name))


def fixed_folder(given: str) -> str:
    """Return a folder as it is wherever the current folder goes, or `""` for the user's own."""
    named = given or os.environ.get(FOLDER_VARIABLE, "")
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
