"""Installing and removing packages by the Python that runs us, with pip or uv."""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from satchel.errors import SatchelError
from satchel.settings import MIB
from satchel.sources.distributions import (
    ENTRY_POINT_GROUP,
    DistributionFinding,
    installed_folders,
    normalized,
    scan_distributions,
)
from satchel.sources.file_reader import UnreadableFileError, read_regular
from satchel.sources.shipped_skills import SHIPPED_SKILLS

_PROJECT_FILE = "pyproject.toml"
_REQUIREMENT = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[\[<>=!~;@(].*)?")
_FILES = (".whl", ".tar.gz", ".zip")


@dataclass(frozen=True, slots=True)
class PipPackage:
    """What pip is asked for: a requirement, or the path of a project or of a file."""

    wanted: str
    distribution: str
    """The name of its distribution, `""` if only installing it will tell."""
    editable: bool = False

    def install(self) -> None:
        """Install it. Raises `SatchelError`."""
        _run(["install", *(["--editable"] if self.editable else []), self.wanted])

    def plugins(self, before: Iterable[DistributionFinding]) -> list[DistributionFinding]:
        """Return the plugins that it offers; `before` is what was installed earlier."""
        found, known = installed(), {(item.path, item.digest) for item in before}
        if self.distribution:
            name = normalized(self.distribution)
            return [item for item in found if normalized(item.distribution) == name]
        return [item for item in found if (item.path, item.digest) not in known]


def installed() -> tuple[DistributionFinding, ...]:
    """Return every plugin of every installed distribution."""
    return scan_distributions(installed_folders()).findings


def project(path: str, *, editable: bool) -> PipPackage | None:
    """Return the pip project in a folder, `None` if there is none.

    Raises `SatchelError` for one that plainly offers no plugin.
    """
    file = os.path.join(path, _PROJECT_FILE)
    if not os.path.isfile(file):
        return None
    # Lazy: most plugins are folders.
    import tomllib

    try:
        data, _ = read_regular(file, MIB)
        read = tomllib.loads(data.decode())
    except (UnreadableFileError, ValueError) as problem:
        raise SatchelError(f"cannot be read: {problem}", where=file) from None
    table = read.get("project")
    if not isinstance(table, dict):  # another builder's own table has it all
        return PipPackage(os.path.abspath(path), "", editable)
    points = table.get("entry-points")
    offers = isinstance(points, dict) and ENTRY_POINT_GROUP in points
    if not (offers or "entry-points" in table.get("dynamic", ()) or _ships_skills(path)):
        fault = f"offers no plugin: it has no [project.entry-points.{ENTRY_POINT_GROUP!r}]"
        raise SatchelError(fault, where=file)
    return PipPackage(os.path.abspath(path), str(table.get("name", "")), editable)


def _ships_skills(path: str) -> bool:
    """Tell whether a project has skills that its wheel may bring."""
    bases = (path, os.path.join(path, "src"))
    folders = [os.path.join(base, name) for base in bases for name in _names_in(base)]
    return any(os.path.isdir(os.path.join(folder, *SHIPPED_SKILLS)) for folder in (path, *folders))


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def file(path: str) -> PipPackage | None:
    """Return the package in a file, such as a wheel; `None` if it is none by its name."""
    name = os.path.basename(path)
    if not name.endswith(_FILES):
        return None
    is_wheel = name.endswith(".whl")
    return PipPackage(os.path.abspath(path), name.split("-")[0] if is_wheel else "")


def requirement(text: str) -> PipPackage | None:
    """Return what a requirement such as `acme-weather>=2` asks for; `None` if it is none."""
    found = _REQUIREMENT.fullmatch(text)
    return PipPackage(text, found[1]) if found else None


def uninstall(distribution: str) -> None:
    """Remove a distribution. Raises `SatchelError`."""
    _run(["uninstall", distribution])


def _run(words: list[str]) -> None:
    # Lazy: it is slow to import, and most plugins are folders.
    import shutil
    import subprocess

    command, *rest = words
    if find_spec("pip"):
        quiet = {"install": ["--disable-pip-version-check", "--no-input"], "uninstall": ["--yes"]}
        line = [sys.executable, "-m", "pip", command, *quiet[command], *rest]
    elif uv := shutil.which("uv"):
        line = [uv, "pip", command, "--python", sys.executable, *rest]
    else:
        raise SatchelError(
            f"neither pip nor uv is there to {command} it",
            fix=f"say: {sys.executable} -m ensurepip",
        )
    try:
        # Stdout is for data; descriptor 2 is where talk goes, whatever `sys.stderr` is now.
        done = subprocess.run(line, check=False, stdin=subprocess.DEVNULL, stdout=2)  # noqa: S603
    except OSError as problem:
        raise SatchelError(f"{line[0]} cannot be run: {problem.strerror}") from None
    if done.returncode:
        raise SatchelError(f"{os.path.basename(line[0])} could not {command} {rest[-1]!r}")
