"""The entry points of a project that is not installed, from its pyproject.toml."""

import os
from collections.abc import Mapping
from typing import Any

from satchel.settings import MIB
from satchel.sources.distributions import ENTRY_POINT_GROUP, split_entry_point
from satchel.sources.file_reader import read_or_none

_MOST_LEVELS = 4


def entry_point_of(folder: str) -> str:
    """Return the entry point that leads to a package's folder, or `""` if none does.

    A package's manifest needs no name, because an installed plugin has that of its entry point.
    """
    above = folder
    for _ in range(_MOST_LEVELS):
        above = os.path.dirname(above)
        data = read_or_none(os.path.join(above, "pyproject.toml"), MIB)
        if data is None:
            continue
        package = os.path.relpath(folder, above).removeprefix(f"src{os.sep}").replace(os.sep, ".")
        for name, value in project_entry_points(data).items():
            if f"{split_entry_point(str(value))[0]}.".startswith(f"{package}."):
                return name
        break
    return ""


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
