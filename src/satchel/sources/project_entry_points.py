"""The name of a plugin in the sources of a package, from the project's pyproject.toml."""

import os
from typing import Any

from satchel.settings import MIB
from satchel.sources.distributions import ENTRY_POINT_GROUP
from satchel.sources.file_reader import UnreadableFileError, read_regular

_MOST_LEVELS = 4
_PROJECT_FILE = "pyproject.toml"


def entry_point_of(folder: str) -> str:
    """Return the entry point that leads to a package's folder, or `""` if none does.

    A package's manifest needs no name, because an installed plugin has that of its entry point.
    """
    above = folder
    for _ in range(_MOST_LEVELS):
        above = os.path.dirname(above)
        path = os.path.join(above, _PROJECT_FILE)
        if os.path.isfile(path):
            return _matching(path, os.path.relpath(folder, above))
    return ""


def _matching(path: str, package: str) -> str:
    # Lazy: few plugins are packages that are not installed.
    import tomllib

    try:
        data, _ = read_regular(path, MIB)
        table: Any = tomllib.loads(data.decode())
    except (UnreadableFileError, ValueError):
        return ""
    for key in ("project", "entry-points", ENTRY_POINT_GROUP):
        table = table.get(key) if isinstance(table, dict) else None
    wanted = package.removeprefix(f"src{os.sep}").replace(os.sep, ".")
    for name, value in table.items() if isinstance(table, dict) else ():
        module = str(value).partition("[")[0].partition(":")[0].strip()
        if module == wanted or module.startswith(f"{wanted}."):
            return str(name)
    return ""
