"""`satchel uninstall`: take out what `satchel install` put in."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from satchel.cli.base_command import Command, as_json
from satchel.cli.console import Console
from satchel.cli.installer import catalog
from satchel.cli.selection_editor import forget, require_valid_selection, shown_path
from satchel.errors import NotFoundError, SatchelError
from satchel.names import near_misses, plugin_name_fault
from satchel.setup.folder_placement import removed
from satchel.setup.install_lock import exclusive_change
from satchel.setup.pip_packages import installed, uninstall
from satchel.setup.setup_context import data_folder
from satchel.sources import DistributionFinding, format_of, normalized, own_plugins
from satchel.sources.configuration import configuration_path
from satchel.text import one_line

_OURS = "satchel"


@click.command("uninstall", cls=Command)
@click.argument("name")
@click.option("--purge", is_flag=True, help="Remove its values and its data, too.")
@as_json
def command(console: Console, name: str, purge: bool, as_json: bool) -> None:
    """Remove a plugin that was installed.

    A folder or link below ~/.satchel/plugins is removed, and a package is uninstalled. The values
    that it was configured with and the data that it fetched are kept, unless you say --purge.
    """
    if fault := plugin_name_fault(name):
        raise click.BadParameter(f"a plugin's name {fault}", param_hint="NAME")
    require_valid_selection()
    try:
        gone = _removed(console, name)
    except NotFoundError as problem:
        if not (left := _left(name, purge=False)):
            raise
        if not purge:
            raise SatchelError(problem.message, fix=f"--purge removes {_shown(left)}") from None
        gone = Uninstalled(kind="values", path=left[0], names=(name,))
    forget([name, *gone.names, *gone.distribution])
    kept = [path for plugin in gone.names for path in _left(plugin, purge=purge)]
    if as_json:
        console.json({"name": name, "kind": gone.kind, "path": gone.path, "kept": kept})
    else:
        console.out(one_line(f"uninstalled {name} ({shown_path(gone.path)})"))
    for left_over in kept:
        console.say(one_line(f"kept {shown_path(left_over)}; --purge removes it"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninstalled:
    """What was removed: its kind, where it was, and the plugins that went with it."""

    kind: str
    path: str
    names: tuple[str, ...]
    distribution: tuple[str, ...] = ()
    """The names of its distribution, if it had one."""


def _removed(console: Console, name: str) -> Uninstalled:
    path = os.path.join(own_plugins(), name)
    known = installed()
    if os.path.islink(path) or format_of(path) is not None:
        kind = "link" if os.path.islink(path) else "folder"
        with exclusive_change(path, console.say):
            removed(path)
        for item in known:
            if item.name == name:
                also = f"{item.distribution} offers a plugin {name}, too, which stays installed"
                console.say(one_line(f"{also}; to remove it say this again"))
        return Uninstalled(kind=kind, path=path, names=(name,))
    found = _package(name, known)
    names = tuple(item.name for item in known if item.path == found.path)
    if others := [other for other in names if other != name]:
        console.say(one_line(f"{found.distribution} brings {', '.join(others)}, too"))
    uninstall(found.distribution)
    distribution = (found.distribution, normalized(found.distribution))
    return Uninstalled(kind="package", path=found.path, names=names, distribution=distribution)


def _package(name: str, known: Sequence[DistributionFinding]) -> DistributionFinding:
    """Return the installed plugin of a name. Raises `SatchelError` if there is no such one."""
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


def _shown(paths: Iterable[str]) -> str:
    return " and ".join(map(shown_path, paths))


def _left(name: str, *, purge: bool) -> list[str]:
    """Return what is kept of a plugin, or remove it."""
    paths = [configuration_path(name), data_folder(name)]
    there = [path for path in paths if os.path.lexists(path)]
    if not purge:
        return there
    for path in there:
        removed(path)
    return []
