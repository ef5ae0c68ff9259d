"""The configuration of one plugin, for the commands that show and change it."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources
from satchel.cli.console import Console
from satchel.cli.machine_checks import is_readable_by_others
from satchel.cli.terminal import prompt
from satchel.configuration.configuration import Configuration, read_configuration
from satchel.diagnostics import Diagnostic, Severity, Where, make_diagnostic
from satchel.errors import DefinitionError, NotFoundError, SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses, plugin_name_fault
from satchel.plugins.config_keys import keys_of
from satchel.setup.field_values import as_text, field_of

if TYPE_CHECKING:
    from satchel.formats.config_fields import ConfigField


@dataclass(frozen=True, slots=True)
class PluginConfigView:
    """The configuration of one plugin; the plugin may be unknown."""

    config: Configuration
    other_plugins: tuple[str, ...] | None
    """The names of all plugins if none has this name, else `None`."""
    keys: tuple[str, ...] | None = None
    """The keys that the plugin reads, in lower case; `None` if only its code knows them."""

    @property
    def name(self) -> str:
        """Return the name of the plugin."""
        return self.config.plugin

    def field(self, key: str) -> "ConfigField | None":
        """Return the declared field for a key."""
        return field_of(self.config.fields, key)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return all problems of the values."""
        config = self.config
        missing = config.without_values(config.missing)
        return (*config.diagnostics, *missing, *self._warnings())

    def _warnings(self) -> Iterator[Diagnostic]:
        """Warn of values without a declared field, and of a file that others can read."""
        config = self.config
        keys = config.raw if self.keys is None else self.keys
        names = ", ".join(keys) or "none"
        for key in sorted(set(config.raw).difference(keys)):
            near = near_misses(key, keys)
            fix = f"did you mean {', '.join(near)}?" if near else f"fields: {names}"
            origin = config.origins[key]
            yield _warning(config, f"no field {key!r} is declared (from: {origin})", fix)
        if is_readable_by_others(config.path):
            fix = f"chmod 600 {quote(config.path)}"
            yield _warning(config, "other users can read the values", fix)

    def require_known(self) -> None:
        """Raise `NotFoundError` if neither a plugin nor a value has this name."""
        if self.other_plugins is not None and not self.config.raw:
            raise NotFoundError("plugin", self.name, near_misses(self.name, self.other_plugins))

    def warn_if_unknown(self, console: Console, keys: Iterable[str] = ()) -> None:
        """Warn on stderr if no plugin has this name, or if it does not declare a key."""
        for message, near in self._unknown(keys):
            console.warn(message, near)

    def refuse_unknown(self, keys: Iterable[str]) -> None:
        """Raise `SatchelError` if no plugin has this name, or if it does not declare a key."""
        others = "" if self.other_plugins is None else "--plugins FOLDER finds more plugins, "
        for message, near in self._unknown(keys):
            hint = f"did you mean {', '.join(near)}? " if near else ""
            fix = f"{hint}{others}--force writes it"
            raise SatchelError(f"{message}; nothing was written", fix=fix)

    def _unknown(self, keys: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield a message and the near misses for an unknown plugin, and for each unknown key."""
        if self.other_plugins is not None:
            near_names = near_misses(self.name, self.other_plugins)
            yield f"there is no plugin named {self.name!r}", near_names
        if self.keys is None:
            return
        for key in keys:
            if key.lower() not in self.keys:
                absence = f"no field {key!r}" if self.keys else "no configuration"
                yield f"{self.name} declares {absence}", near_misses(key.lower(), self.keys)


def _warning(config: Configuration, message: str, fix: str) -> Diagnostic:
    diagnostic = make_diagnostic("config-invalid", Where(config.path), message, fix)
    return replace(diagnostic, severity=Severity.WARNING)


def open_plugin(name: str, sources: Sources) -> PluginConfigView:
    """Read the configuration of a plugin, without running its code."""
    if fault := plugin_name_fault(name):
        raise click.BadParameter(f"a plugin's name {fault}", param_hint="NAME")
    catalog = sources.open(run_code=False).catalog
    entry = catalog.plugins.get(name)
    layer = sources.selection().layer(name)
    # A disabled plugin can be configured before it is enabled.
    owner = entry or next((item for item in catalog.all_plugins if item.name == name), None)
    fields = owner.contribution.config if owner else ()
    config = read_configuration(name, {}, "", fields, layer)
    if owner is not None or name == "host":
        return PluginConfigView(config, None, keys_of(owner.contribution) if owner else None)
    return PluginConfigView(config, tuple({item.name for item in catalog.all_plugins}))


def as_texts(
    where: str,
    fields: "tuple[ConfigField, ...]",
    values: Mapping[str, str],
    *,
    any_key: bool = False,
) -> dict[str, str]:
    """Check values and return the texts for a plugin's file. Raises `SatchelError` with all faults.

    With `any_key`, keys that are not declared are allowed.
    """
    texts, errors = {}, []
    for key, value in values.items():
        try:
            is_undeclared = any_key and field_of(fields, key) is None
            texts[key] = as_text(() if is_undeclared else fields, key, value)
        except DefinitionError as problem:
            errors.append(f"{problem.message}; {problem.fix}" if problem.fix else problem.message)
    if errors:
        raise SatchelError("; ".join(errors), where=where)
    return texts


def ask_for(plugin: PluginConfigView, key: str) -> str:
    """Ask for a value on the terminal; the input is hidden if it may be a secret."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"{key} has no value; give one, or '-' to read it from stdin")
    item = plugin.field(key)
    hint = f" ({item.allowed})" if item and not item.is_secret else ""
    is_hidden = item is None or item.is_secret
    value: str = prompt(f"{key}{hint}", hide_input=is_hidden)
    return value
