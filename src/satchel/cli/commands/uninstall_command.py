"""`satchel uninstall`: remove a plugin that `satchel install` installed."""

import os
from collections.abc import Sequence

import click

from satchel.cli.base_command import Command, as_json
from satchel.cli.console import Console
from satchel.cli.installed_plugin import read_catalog
from satchel.cli.selection_editor import forget, require_valid_selection
from satchel.configuration.configuration import configuration_path
from satchel.errors import NotFoundError, SatchelError
from satchel.files.state_files import data_folder
from satchel.importing.distributions import DistributionFinding, normalized
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses, plugin_name_fault
from satchel.reports.short_texts import short_path
from satchel.setup.folder_placement import exclusive_change, removed
from satchel.setup.pip_packages import installed, uninstall
from satchel.sources.marketplaces import is_marketplace
from satchel.sources.plugin_formats import format_of
from satchel.sources.search_roots import own_plugins
from satchel.text import one_line


@click.command("uninstall", cls=Command)
@click.argument("name")
@click.option("--purge", is_flag=True, help="Also remove its values and its data.")
@as_json
def command(console: Console, name: str, purge: bool, as_json: bool) -> None:
    """Remove an installed plugin.

    Removes a folder or link in ~/.satchel/plugins, or uninstalls a package. The plugin's
    configured values and downloaded data are kept without --purge.
    """
    if fault := plugin_name_fault(name):
        raise click.BadParameter(f"a plugin's name {fault}", param_hint="NAME")
    require_valid_selection()
    try:
        plugin = _remove_plugin(console, name)
    except NotFoundError as problem:
        if not (paths := _data_paths(name)):
            raise
        if not purge:
            fix = f"--purge removes {' and '.join(map(short_path, paths))}"
            raise SatchelError(problem.message, fix=fix) from None
        plugin = Uninstalled(kind="values", path=paths[0], names=(name,))
    forget([name, *plugin.names, *plugin.distribution])
    kept = [path for owner in plugin.names for path in _data_paths(owner)]
    if purge:
        for path in kept:
            removed(path)
        kept = []
    if as_json:
        console.json({"name": name, "kind": plugin.kind, "path": plugin.path, "kept": kept})
    else:
        console.out(one_line(f"uninstalled {name} ({short_path(plugin.path)})"))
    for path in kept:
        console.say(one_line(f"kept {short_path(path)}; --purge removes it"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninstalled:
    """What was removed: its kind, its path, and the plugins in it."""

    kind: str
    path: str
    names: tuple[str, ...]
    distribution: tuple[str, ...] = ()
    """The names of its distribution, if it had one."""


def _remove_plugin(console: Console, name: str) -> Uninstalled:
    path = os.path.join(own_plugins(), name)
    packages = installed()
    if os.path.islink(path) or format_of(path) is not None or is_marketplace(path):
        kind = "link" if os.path.islink(path) else "folder"
        with exclusive_change(path, console.say):
            removed(path)
        for item in packages:
            if item.name == name:
                text = f"{item.distribution} also has a plugin {name}, which stays installed"
                console.say(one_line(f"{text}; run the command again to remove it"))
        return Uninstalled(kind=kind, path=path, names=(name,))
    package = _find_package(name, packages)
    names = tuple(item.name for item in packages if item.path == package.path)
    if others := [other for other in names if other != name]:
        text = f"{package.distribution} also contains {', '.join(others)}; they are removed, too"
        console.say(one_line(text))
    uninstall(package.distribution)
    distribution = (package.distribution, normalized(package.distribution))
    return Uninstalled(kind="package", path=package.path, names=names, distribution=distribution)


def _find_package(name: str, packages: Sequence[DistributionFinding]) -> DistributionFinding:
    """Return the installed plugin of a name. Raises `SatchelError` if there is none."""
    matches = [
        item
        for item in packages
        if name == item.name or normalized(name) == normalized(item.distribution)
    ]
    owners = sorted({item.distribution for item in matches})
    if not matches:
        raise _not_installed(name, [item.name for item in packages])
    if len(owners) > 1:
        fix = f"name the distribution: {' or '.join(owners)}"
        raise SatchelError(f"{' and '.join(owners)} each contain {name!r}", fix=fix)
    if normalized(owners[0]) == "satchel":
        raise SatchelError(f"{name!r} is part of Satchel itself", fix=f"satchel disable {name}")
    return matches[0]


def _not_installed(name: str, packages: list[str]) -> SatchelError:
    for entry in read_catalog().all_plugins:
        if entry.name == name:
            message = "was not installed by 'satchel install'"
            return SatchelError(message, where=entry.path, fix="delete the folder yourself")
    folder = own_plugins()
    folders = os.listdir(folder) if os.path.isdir(folder) else []
    return NotFoundError("installed plugin", name, near_misses(name, {*folders, *packages}))


def _data_paths(name: str) -> list[str]:
    """Return the file of values and the data folder of a plugin, if they exist."""
    return [path for path in (configuration_path(name), data_folder(name)) if os.path.lexists(path)]
