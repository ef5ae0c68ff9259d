"""What the plugins of a project or of a wheel declare, read before pip installs them."""

import os
from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from typing import TYPE_CHECKING, Any

from satchel.formats import read_plugin
from satchel.settings import Limits
from satchel.setup.pip_packages import PipPackage
from satchel.sources import MANIFEST_FILE
from satchel.sources.distributions import ENTRY_POINT_GROUP
from satchel.sources.file_reader import UnreadableFileError, read_regular

if TYPE_CHECKING:  # The command line stays light.
    import zipfile

    from satchel.formats import ConfigField

_ROOTS = ("src", "")
Fields = dict[str, "tuple[ConfigField, ...]"]
Read = Callable[[str], bytes | None]
"""Returns a file by its path with slashes, `None` if there is no such one that can be read."""


def declared_by(package: PipPackage) -> Fields:
    """Return the fields of each plugin that is known to come, by its name.

    Of what is on this machine only, and of what has a toolkit.yaml: installing it may tell more.
    """
    if os.path.isdir(package.wanted):
        return _of_project(package.wanted)
    return _of_wheel(package.wanted) if package.wanted.endswith(".whl") else {}


def _of_project(folder: str) -> Fields:
    # Lazy: most plugins are folders.
    import tomllib

    def read(file: str) -> bytes | None:
        try:
            data, _ = read_regular(os.path.join(folder, *file.split("/")), Limits().plugin_source)
        except UnreadableFileError:
            return None
        return data

    try:
        table = tomllib.loads((read("pyproject.toml") or b"").decode())
    except ValueError:
        return {}
    points = _table(table, "project", "entry-points", ENTRY_POINT_GROUP)
    found: Fields = {}
    for root in _ROOTS:
        base = f"{root}/" if root else ""

        def below(file: str, base: str = base) -> bytes | None:
            return read(base + file)

        found = {**_fields(points, below), **found}
    return found


def _of_wheel(path: str) -> Fields:
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(path) as wheel:
            known = {item.filename: item for item in wheel.infolist()}

            def read(file: str) -> bytes | None:
                item = known.get(file)
                return _unpacked(wheel, item) if item else None

            points = [name for name in known if name.endswith(".dist-info/entry_points.txt")]
            text = (read(points[0]) if points else None) or b""
            return _fields(_points(text.decode()), read)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return {}  # pip will say what is wrong with it


def _unpacked(wheel: "zipfile.ZipFile", item: "zipfile.ZipInfo") -> bytes | None:
    most = Limits().plugin_source
    if item.file_size > most:
        return None
    with wheel.open(item) as file:
        return file.read(most + 1)


def _points(text: str) -> Mapping[str, str]:
    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except Error:
        return {}
    return dict(parser[ENTRY_POINT_GROUP]) if ENTRY_POINT_GROUP in parser else {}


def _fields(points: Mapping[str, Any], read: Read) -> Fields:
    found = {}
    for name, value in points.items():
        package = str(value).partition("[")[0].partition(":")[0].strip().split(".")
        # toolkit.yaml is in the package of the entry point, or in one that holds it.
        for depth in range(len(package), 0, -1):
            file = "/".join((*package[:depth], MANIFEST_FILE))
            if (data := read(file)) is not None:
                manifest = read_plugin(data, package[-1], file, Limits(), entry_point=name).value
                if manifest:
                    found[name] = manifest.config
                break
    return found


def _table(table: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}
