"""Read what a project or wheel declares before pip installs it, without running its code."""

import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from email.parser import HeaderParser
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.files.file_reader import read_or_none
from satchel.formats.toolkit_manifest import read_plugin
from satchel.importing.distributions import entry_points_in, split_entry_point
from satchel.settings import MIB, Limits
from satchel.setup.pip_packages import PipPackage
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.sources.project_entry_points import project_entry_points

if TYPE_CHECKING:
    from satchel.formats.config_fields import ConfigField

Fields = dict[str, "tuple[ConfigField, ...]"]
ReadFile = Callable[[str], bytes | None]
"""Returns the content of a file, or `None`; the path has slashes."""
_ENTRY_POINTS = re.compile(r"[^/]+\.dist-info/entry_points\.txt")
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_BROKEN = (
    *(OSError, EOFError, ValueError, RuntimeError),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)
"""What a wheel raises that cannot be read."""


def declared_fields(package: PipPackage) -> Fields:
    """Return the configuration fields by plugin name.

    Only for a local project or wheel whose plugins have a toolkit.yaml; otherwise the fields are
    known after the installation.
    """
    if os.path.isdir(package.target):
        return _project_fields(package.target)
    return _wheel_fields(package.target) if package.target.endswith(".whl") else {}


def _project_fields(folder: str) -> Fields:
    def read(file: str) -> bytes | None:
        return read_or_none(os.path.join(folder, *file.split("/")), Limits().plugin_source)

    entry_points = project_entry_points(read("pyproject.toml") or b"")
    return {
        **_manifest_fields(entry_points, read),
        **_manifest_fields(entry_points, lambda file: read(f"src/{file}")),
    }


def _wheel_fields(path: str) -> Fields:
    try:
        with zipfile.ZipFile(path) as wheel:
            data = _read(wheel, _file_of(wheel, _ENTRY_POINTS)) or b""
            return _manifest_fields(entry_points_in(data.decode()), partial(_read, wheel))
    except _BROKEN:
        return {}  # pip reports what is wrong with the wheel


def _file_of(wheel: zipfile.ZipFile, name: re.Pattern[str]) -> str:
    return next(filter(name.fullmatch, wheel.namelist()), "")


def _read(wheel: zipfile.ZipFile, file: str) -> bytes | None:
    limit = Limits().plugin_source
    if file not in wheel.namelist() or wheel.getinfo(file).file_size > limit:
        return None
    with wheel.open(file) as data:
        return data.read(limit + 1)


def _manifest_fields(entry_points: Mapping[str, Any], read: ReadFile) -> Fields:
    fields = {}
    for name, value in entry_points.items():
        package = split_entry_point(str(value))[0].split(".")
        # toolkit.yaml is in the package of the entry point, or in a parent package.
        for depth in range(len(package), 0, -1):
            file = "/".join((*package[:depth], MANIFEST_FILE))
            if (data := read(file)) is not None:
                manifest = read_plugin(data, package[-1], file, Limits(), entry_point=name).value
                if manifest:
                    fields[name] = manifest.config
                break
    return fields


def lines_of_package(package: PipPackage, signature: str) -> list[str]:
    """Return what pip will install and run, and who signed it, as far as Satchel can read it."""
    lines = [f"pip installs: {package.shown}"]
    if os.path.isdir(package.target):
        return lines + _lines_of_project(package.target)
    lines.append(f"signature: {signature}")
    if package.target.endswith(".whl"):
        return lines + _lines_of_wheel(package.target)
    return [*lines, "its dependencies, and what its build and its setup run, are not known yet"]


def _lines_of_project(folder: str) -> list[str]:
    import tomllib

    try:
        data = read_or_none(os.path.join(folder, "pyproject.toml"), MIB) or b""
        content: dict[str, Any] = tomllib.loads(data.decode())
    except ValueError:
        content = {}
    build, table = content.get("build-system", {}), content.get("project", {})
    build, table = (item if isinstance(item, dict) else {} for item in (build, table))
    lines = [f"runs now: the build backend {build.get('build-backend', 'setuptools')}"]
    lines += [f"to build it: {item}" for item in _texts(build.get("requires"))]
    if os.path.isfile(os.path.join(folder, "setup.py")):
        lines.append("runs now: setup.py")
    return lines + [f"with: {item}" for item in _texts(table.get("dependencies"))]


def _lines_of_wheel(path: str) -> list[str]:
    names, metadata = list[str](), None
    try:
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            metadata = _read(wheel, _file_of(wheel, _METADATA))
    except _BROKEN:
        pass  # pip reports what is wrong with the wheel
    setups = [name for name in names if name.endswith("/setup.py")]
    lines = [f"runs now: setup(ctx) of {name}, if the plugin uses it" for name in setups]
    if metadata is None:
        return [*lines, "with: dependencies that cannot be read"]
    headers = HeaderParser().parsestr(metadata.decode("utf-8", "replace"))
    return lines + [f"with: {item}" for item in headers.get_all("Requires-Dist", [])]


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
