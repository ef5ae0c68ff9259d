"""`satchel uninstall`: take out what `satchel install` put in."""

import os

import click

from satchel.cli.choosing import forget, shown_path
from satchel.cli.command import Command, as_json, pass_console
from satchel.cli.console import Console
from satchel.cli.installing import catalog
from satchel.errors import NotFoundError, SatchelError
from satchel.names import near_misses, plugin_name_fault
from satchel.setup.context import data_folder
from satchel.setup.packages import installed, uninstall
from satchel.setup.placing import removed
from satchel.sources import DistributionFinding, format_of, normalized, own_plugins
from satchel.sources.config import configuration_path
from satchel.text import one_line

_OURS = "satchel"


@click.command("uninstall", cls=Command)
@click.argument("name")
@click.option("--purge", is_flag=True, help="Remove its values and its data, too.")
@as_json
@pass_console
def command(console: Console, name: str, purge: bool, as_json: bool) -> None:
    """Remove a plugin that was installed.

    A folder or link below ~/.satchel/plugins is removed, and a package is uninstalled. The values
    that it was configured with and the data that it fetched are kept, unless you say --purge.
    """
    if fault := plugin_name_fault(name):
        raise click.BadParameter(f"a plugin's name {fault}", param_hint="NAME")
    kind, path, names = _removed(console, name)
    kept: list[str] = []
    for gone in names:
        forget(gone)
        kept += _left(gone, purge=purge)
    record = {"name": name, "kind": kind, "path": path, "kept": kept}
    if as_json:
        console.json(record)
    else:
        console.out(one_line(f"uninstalled {name} ({shown_path(path)})"))
    for left in kept:
        console.say(one_line(f"kept {shown_path(left)}; --purge removes it"))


def _removed(console: Console, name: str) -> tuple[str, str, list[str]]:
    """Remove a plugin; return what it was, where, and the names of all plugins that went."""
    path = os.path.join(own_plugins(), name)
    if os.path.islink(path) or format_of(path) is not None:
        kind = "link" if os.path.islink(path) else "folder"
        removed(path)
        return kind, path, [name]
    found = _package(name)
    names = [item.name for item in installed() if item.path == found.path]
    if others := [other for other in names if other != name]:
        console.say(one_line(f"{found.distribution} brings {', '.join(others)}, too"))
    uninstall(found.distribution)
    return "package", found.path, names


def _package(name: str) -> DistributionFinding:
    """Return the installed plugin of a name. Raises `SatchelError` if there is no such one."""
    known = installed()
    found = [item for item in known if name == item.name or _same(name, item.distribution)]
    owners = sorted({item.distribution for item in found})
    if not found:
        raise _not_ours(name, [item.name for item in known])
    if len(owners) > 1:
        fix = f"name the distribution: {' or '.join(owners)}"
        raise SatchelError(f"{name!r} is offered by {' and '.join(owners)}", fix=fix)
    if _same(_OURS, owners[0]):
        raise SatchelError(f"{name!r} comes with Satchel itself", fix=f"satchel disable {name}")
    return found[0]


def _same(name: str, other: str) -> bool:
    return normalized(name) == normalized(other)


def _not_ours(name: str, packages: list[str]) -> SatchelError:
    """Say why there is nothing of this name that could be uninstalled."""
    for entry in catalog().all_plugins:
        if entry.name == name:
            fault = "was not installed by 'satchel install'"
            return SatchelError(fault, where=entry.path, fix="delete the folder yourself")
    folder = own_plugins()
    folders = os.listdir(folder) if os.path.isdir(folder) else []
    return NotFoundError("installed plugin", name, near_misses(name, {*folders, *packages}))


def _left(name: str, *, purge: bool) -> list[str]:
    """Return what is kept of a plugin, or remove it."""
    paths = [configuration_path(name), data_folder(name)]
    there = [path for path in paths if os.path.lexists(path)]
    if not purge:
        return there
    for path in there:
        removed(path)
    return []
