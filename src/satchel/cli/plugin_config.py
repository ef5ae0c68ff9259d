"""What one plugin is configured with, as the command line shows it and changes it."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Sources
from satchel.cli.console import Console
from satchel.cli.machine_checks import is_for_others
from satchel.diagnostics import Diagnostic, Severity, Where, make_diagnostic
from satchel.errors import DefinitionError, NotFoundError, SatchelError
from satchel.names import near_misses, plugin_name_fault
from satchel.setup.field_values import as_text, field_of
from satchel.sources.configuration import Configuration, read_configuration
from satchel.sources.selection import project_selection_path, read_selection, selection_path
from satchel.text import one_line, shorten

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.formats import ConfigField

MASK = "***"
_SHOWN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class PluginConfigView:
    """One plugin as far as its configuration goes."""

    config: Configuration
    known: tuple[str, ...] | None
    """The names of the plugins that there are, if none has this one; else `None`."""

    @property
    def name(self) -> str:
        """Return its name."""
        return self.config.plugin

    def field(self, key: str) -> "ConfigField | None":
        """Return the field that is declared for a key."""
        return field_of(self.config.fields, key)

    def problems(self) -> tuple[Diagnostic, ...]:
        """Return everything that is wrong with the values."""
        config = self.config
        missing = map(config.without_value, config.missing)
        return (*config.diagnostics, *missing, *self._undeclared(), *self._readable_by_others())

    def _undeclared(self) -> Iterator[Diagnostic]:
        """Yield a warning for each value that no field declares, if any are declared."""
        config = self.config
        declared = [item.key for item in config.fields]
        for key in sorted(set(config.written).difference(declared)) if declared else ():
            near = near_misses(key, declared)
            fix = f"did you mean {', '.join(near)}?" if near else f"fields: {', '.join(declared)}"
            origin = config.origins[key]
            yield _warning(config, f"no field {key!r} is declared (from: {origin})", fix)

    def _readable_by_others(self) -> Iterator[Diagnostic]:
        config = self.config
        if is_for_others(config.path):
            yield _warning(config, "others may read the values", f"chmod 600 {quote(config.path)}")

    def require_known(self) -> None:
        """Raise `NotFoundError` if neither a plugin nor a value has this name."""
        if self.known is not None and not self.config.written:
            raise NotFoundError("plugin", self.name, near_misses(self.name, self.known))

    def warn_if_unknown(self, console: Console, keys: Iterable[str] = ()) -> None:
        """Say on stderr if no plugin has this name, or it declares no such fields."""
        if self.known is not None:
            near = near_misses(self.name, self.known)
            console.warn(f"nothing that is known is called {self.name!r}", near)
        declared = [item.key for item in self.config.fields]
        for key in keys if declared else ():
            if self.field(key) is None:
                near = near_misses(key.lower(), declared)
                console.warn(f"{self.name} declares no field {key!r}", near)


def _warning(config: Configuration, message: str, fix: str) -> Diagnostic:
    found = make_diagnostic("config-invalid", Where(config.path), message, fix)
    return replace(found, severity=Severity.WARNING)


def open_plugin(name: str, sources: Sources) -> PluginConfigView:
    """Read what a plugin is configured with, without running its code."""
    if fault := plugin_name_fault(name):
        raise click.BadParameter(f"a plugin's name {fault}", param_hint="NAME")
    catalog = sources.open(run_code=False).catalog
    entry = catalog.plugins.get(name)
    project = project_selection_path(".") if sources.project else ""
    layer = read_selection(selection_path(), project).layer(name)
    # One that is disabled or not enabled can be configured before it is used.
    owner = entry or next((item for item in catalog.all_plugins if item.name == name), None)
    fields = owner.supply.config if owner else ()
    config = read_configuration(name, {}, "", fields, layer)
    is_known = owner is not None or name == "host"
    known = None if is_known else tuple({item.name for item in catalog.all_plugins})
    return PluginConfigView(config, known)


def rows(plugin: PluginConfigView) -> list[dict[str, Any]]:
    """Return the JSON shapes of the fields: the declared ones, then the others."""
    config = plugin.config
    declared = {item.key for item in config.fields}
    return [
        *(_row(config, item.key, item) for item in config.fields),
        *(_row(config, key, None) for key in sorted(config.written) if key not in declared),
    ]


def _row(config: Configuration, key: str, item: "ConfigField | None") -> dict[str, Any]:
    is_given = key in config.origins
    origin = config.origins.get(key, "missing")
    return {
        "name": item.name if item else key,
        "type": item.type if item else None,
        "description": one_line(item.description) if item else "",
        "required": bool(item and item.required),
        "value": _shown(config.written[key], item) if is_given else None,
        "origin": origin,
        "problem": config.invalid.get(key, "")
        or ("has no value" if item and item in config.missing else ""),
    }


def _shown(value: Any, item: "ConfigField | None") -> str:
    """Return a value as text; what nobody declared may be a secret, too."""
    if item is None or item.is_secret:
        return MASK
    if isinstance(value, bool):
        return str(value).lower()
    return shorten(str(value), _SHOWN_LENGTH)


def as_texts(
    where: str,
    fields: "tuple[ConfigField, ...]",
    values: Mapping[str, str],
    *,
    any_key: bool = False,
) -> dict[str, str]:
    """Return values as a plugin's file holds them. Raises `SatchelError` that tells each fault.

    With `any_key` those of keys that nobody declares are taken as they are.
    """
    texts, faults = {}, []
    for key, value in values.items():
        try:
            is_free = any_key and field_of(fields, key) is None
            texts[key] = as_text(() if is_free else fields, key, value)
        except DefinitionError as problem:
            faults.append(f"{problem.message}; {problem.fix}" if problem.fix else problem.message)
    if faults:
        raise SatchelError("; ".join(faults), where=where)
    return texts


def asked_for(plugin: PluginConfigView, key: str) -> str:
    """Ask for a value on the terminal, without showing what is typed if it may be a secret."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"no value is given for {key}; give one, or '-' to read it from stdin"
        )
    item = plugin.field(key)
    hint = f" ({item.allowed})" if item and not item.is_secret else ""
    is_hidden = item is None or item.is_secret
    value: str = click.prompt(one_line(f"{key}{hint}"), hide_input=is_hidden, err=True)
    return value
