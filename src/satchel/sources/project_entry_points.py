"""The entry points of a project that is not installed, from its pyproject.toml."""

import os
from collections.abc import Mapping
from typing import Any

from satchel.files.file_reader import read_or_none
from satchel.importing.distributions import ENTRY_POINT_GROUP, split_entry_point
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB

_MOST_LEVELS = 4


@dataclass(frozen=True, slots=True)
class ProjectPackage:
    """A package of a project, with the entry point that leads to it."""

    name: str = ""
    value: str = ""
    source: str = ""
    """The folder that Python has to search to import it."""


def project_package(folder: str) -> ProjectPackage:
    """Return the package that a folder is, or an empty one if no entry point leads to it.

    A package's manifest needs no name, because an installed plugin has that of its entry point.
    """
    above = folder
    for _ in range(_MOST_LEVELS):
        above = os.path.dirname(above)
        data = read_or_none(os.path.join(above, "pyproject.toml"), MIB)
        if data is None:
            continue
        path = os.path.relpath(folder, above)
        source = os.path.join(above, "src") if path.startswith(f"src{os.sep}") else above
        package = os.path.relpath(folder, source).replace(os.sep, ".")
        for name, value in project_entry_points(data).items():
            if f"{split_entry_point(str(value))[0]}.".startswith(f"{package}."):
                return ProjectPackage(name, str(value), source)
        break
    return ProjectPackage()


def project_entry_points(data: bytes) -> Mapping[str, Any]:
    """Return the plugins that a pyproject.toml declares, by name; empty if it cannot be read."""
    # Lazy: few plugins are packages that are not installed.
    import tomllib

    try:
        table: Any = tomllib.loads(data.decode())
    except ValueError:
        return {}
    for key in ("project", "entry-points", ENTRY_POINT_GROUP):
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}
