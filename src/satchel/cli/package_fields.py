"""Read the declared configuration fields of a project or wheel before pip installs it."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from satchel.files.file_reader import read_or_none
from satchel.formats.toolkit_manifest import read_plugin
from satchel.importing.distributions import entry_points_in, split_entry_point
from satchel.settings import Limits
from satchel.setup.pip_packages import PipPackage
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.sources.project_entry_points import project_entry_points

if TYPE_CHECKING:
    from satchel.formats.config_fields import ConfigField

Fields = dict[str, "tuple[ConfigField, ...]"]
ReadFile = Callable[[str], bytes | None]
"""Returns the content of a file, or `None`; the path has slashes."""


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

    points = project_entry_points(read("pyproject.toml") or b"")
    return {
        **_manifest_fields(points, read),
        **_manifest_fields(points, lambda file: read(f"src/{file}")),
    }


def _wheel_fields(path: str) -> Fields:
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(path) as wheel:
            members = {item.filename: item for item in wheel.infolist()}

            def read(file: str) -> bytes | None:
                limit, item = Limits().plugin_source, members.get(file)
                if item is None or item.file_size > limit:
                    return None
                with wheel.open(item) as data:
                    return data.read(limit + 1)

            points = [name for name in members if name.endswith(".dist-info/entry_points.txt")]
            text = (read(points[0]) if points else None) or b""
            return _manifest_fields(entry_points_in(text.decode()), read)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return {}  # pip reports what is wrong with the wheel


def _manifest_fields(points: Mapping[str, Any], read: ReadFile) -> Fields:
    fields = {}
    for name, value in points.items():
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
