"""Choose one plugin of a marketplace, to install it alone."""

import shlex
from collections.abc import Mapping

from satchel.cli.rendering import diagnostic_line
from satchel.cli.terminal import Terminal
from satchel.diagnostics import Severity
from satchel.errors import NotFoundError, SatchelError
from satchel.names import near_misses
from satchel.settings import Limits
from satchel.setup.source_fetch import address_of_entry
from satchel.sources.marketplaces import MARKETPLACE_FILE, is_marketplace, scan_marketplace
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import PluginFormat, format_of_listed
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root
from satchel.text import one_line, shorten

_EMPTY_LISTING = '{"plugins": []}'


def choose_plugin(source: str, name: str, terminal: Terminal) -> PluginFinding:
    """Return the plugin of a marketplace that `name` or the user chooses, or its only one.

    Raises `SatchelError`.
    """
    root = search_root(source, RootKind.PLUGINS)
    scan = scan_plugins(root, Limits())
    plugins = {_name(item): item for item in scan.findings.values()}
    if name in plugins:
        return plugins[name]
    listed = scan_marketplace(root.path, Limits()).remote
    remote = [item for item in listed if item.name == name]
    if remote:
        address_of_entry(remote[0])  # one that can be added
        add = shlex.join(["satchel", "add", source, "--only", name])
        raise SatchelError(f"the plugin {name!r} is at another address", where=source, fix=add)
    for item in scan.diagnostics:
        if not name or item.severity is not Severity.INFO:
            terminal.say(diagnostic_line(item))
    if name:
        raise NotFoundError("plugin", name, near_misses(name, plugins))
    names = sorted(plugins, key=str.casefold)
    if not names:
        raise SatchelError("lists no plugin that can be installed", where=source)
    if len(names) > 1 and not terminal.is_there:
        shown = shorten(", ".join(map(one_line, names)), 2000)
        message = f"is a marketplace with the plugins {shown}; nothing was installed"
        fix = f"choose one with --plugin NAME, or use all in other commands with --plugins {source}"
        raise SatchelError(message, where=source, fix=fix)
    lines = [_line(each, plugins[each]) for each in names]
    at = terminal.choice("Which plugin?", lines) if len(names) > 1 else 0
    return plugins[names[at]]


def files_of_choice(plugin: PluginFinding) -> Mapping[str, str]:
    """Return the files that a copy of a plugin's folder needs to be only this plugin.

    Its entry may be its manifest, and other entries may name the same folder. Raises
    `SatchelError` if a manifest in the folder would replace the entry.
    """
    is_listing = is_marketplace(plugin.path)
    if plugin.format is not PluginFormat.CLAUDE or not (plugin.listed or is_listing):
        return {}
    if (form := format_of_listed(plugin.path)) not in {None, PluginFormat.CLAUDE}:
        message = f"cannot be installed alone: its entry replaces its {form}"
        raise SatchelError(message, where=plugin.path, fix="use the whole marketplace")
    return {MARKETPLACE_FILE: plugin.listed.listing() if plugin.listed else _EMPTY_LISTING}


def _name(plugin: PluginFinding) -> str:
    if plugin.manifest is None or plugin.listed is not None:
        return plugin.folder_name
    return plugin.manifest.name


def _line(name: str, plugin: PluginFinding) -> str:
    description = plugin.manifest.description if plugin.manifest else ""
    return f"{name}: {shorten(description, 100)}" if description else name
