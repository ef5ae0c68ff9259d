"""A plugin after its installation: what it contains, and what to print about it."""

from typing import TYPE_CHECKING, Any

from satchel.cli.base_command import Sources
from satchel.cli.console import Console
from satchel.cli.rendering import diagnostic_line
from satchel.configuration.configuration import read_configuration
from satchel.lazy_dataclass import dataclass
from satchel.reports.serializer import KINDS, entries_of
from satchel.reports.short_texts import count, short_path
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Entry, PluginEntry
    from satchel.formats.config_fields import ConfigField


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An installed plugin; `kind` is folder, link or package."""

    name: str
    version: str
    kind: str
    path: str
    entry: "PluginEntry | None" = None
    missing: tuple["ConfigField", ...] = ()
    skills: int = 0
    """The number of its skills."""
    shadowed: tuple["Entry", ...] = ()
    """Its entries that are shadowed by others of the same name."""
    is_new: bool = True

    @property
    def is_enabled(self) -> bool:
        """Whether the plugin is in use."""
        return self.entry is not None and self.entry.is_served


def read_catalog() -> "Catalog":
    """Return the catalog of the conventional folders, without running plugin code."""
    return Sources().open(run_code=False).catalog


def installed_plugin(catalog: "Catalog", *, name: str, path: str, **facts: Any) -> Installed:
    """Return an installed plugin with its entries in the catalog."""
    plugins = (it for it in catalog.all_plugins if (it.name, it.path) == (name, path))
    entry = next(plugins, None)
    fields = entry.contribution.config if entry else ()
    shadowed = (
        item
        for kind in KINDS
        for item in entries_of(catalog, kind)
        if kind != "plugin" and item.source == name and item.state == "shadowed"
    )
    return Installed(
        name=name,
        path=path,
        entry=entry,
        missing=read_configuration(name, {}, fields=fields).missing,
        skills=sum(item.source == name for item in catalog.all_skills),
        shadowed=tuple(shadowed),
        **facts,
    )


def print_installed(console: Console, plugin: Installed, *, as_json: bool) -> None:
    """Print an installed plugin, its contents, its problems, and the next step."""
    if not as_json:
        verb = "installed" if plugin.is_new else "reinstalled"
        title = " ".join(part for part in (verb, plugin.name, plugin.version) if part)
        console.out(one_line(f"{title} ({short_path(plugin.path)}){_contents(plugin)}"))
    config = read_configuration(plugin.name, {}, fields=plugin.missing)
    if plugin.missing:
        names = ", ".join(repr(item.name) for item in plugin.missing)
        verb = "has" if len(plugin.missing) == 1 else "have"
        commands = " && ".join(config.command(item.name) for item in plugin.missing)
        console.say(one_line(f"{names} {verb} no value; run: {commands}"))
    if not plugin.is_enabled:
        state = plugin.entry.state if plugin.entry else "not found"
        console.say(one_line(f"the plugin is not in use: {state}"))
        for diagnostic in plugin.entry.diagnostics if plugin.entry else ():
            console.say(diagnostic_line(diagnostic))
    for entry in plugin.shadowed:
        for diagnostic in entry.diagnostics:
            console.say(diagnostic_line(diagnostic))
    console.say(one_line(f"next: satchel show {plugin.name} --kind plugin"))


def _contents(plugin: Installed) -> str:
    if plugin.entry is None:
        return ""
    contribution = plugin.entry.contribution
    sizes = (
        (len(contribution.tools), "tool"),
        (plugin.skills, "skill"),
        (len(contribution.groups), "group"),
    )
    parts = [count(size, noun) for size, noun in sizes if size]
    return f": {', '.join(parts)}" if parts else ""
