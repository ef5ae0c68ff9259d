"""Find the mistyped name of a folder in what the user wants to install."""

import os

import click

from satchel.files.state_files import names_in
from satchel.importing.distributions import normalized
from satchel.names import near_misses
from satchel.setup.pip_packages import PipPackage, is_project
from satchel.sources.marketplaces import is_marketplace
from satchel.sources.plugin_formats import format_of
from satchel.text import one_line

WHAT_TO_GIVE = "give a plugin's folder, a wheel, or a distribution"
_CUTOFF = 0.8
"""How similar a text must be to the name of a folder to be a typing error for it."""


def require_no_typo(target: str, package: PipPackage | None) -> None:
    """Raise `click.UsageError` for what does not exist, unless it is the name of a package.

    `package` is what `target` means to pip. A bare name that is almost the name of a folder here
    is not passed to pip.
    """
    if os.path.lexists(os.path.expanduser(target)):
        return
    near = _near_folders(target)
    if package is None:
        hint = f"did you mean {', '.join(near)}?" if near else WHAT_TO_GIVE
        raise click.UsageError(one_line(f"{target!r} does not exist; {hint}"))
    # A folder whose name is the same to pip may be the source of the distribution.
    near = [it for it in near if normalized(os.path.basename(it)) != normalized(target)]
    if package.distribution == target and near:
        hint = f"did you mean {', '.join(near)}? For the distribution, write '{target}>=0'"
        raise click.UsageError(one_line(f"there is no folder {target!r}; {hint}"))


def _near_folders(target: str) -> list[str]:
    """Return the paths of folders with a similar name that can be installed."""
    above, name = os.path.split(target.rstrip(os.sep))
    names = names_in(os.path.expanduser(above) or ".")
    paths = [os.path.join(above or ".", near) for near in near_misses(name, names, cutoff=_CUTOFF)]
    return [path for path in paths if _is_installable(os.path.expanduser(path))]


def _is_installable(folder: str) -> bool:
    return format_of(folder) is not None or is_marketplace(folder) or is_project(folder)
