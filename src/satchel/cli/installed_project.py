"""Make the package of a project importable by its name, as if it were installed."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from satchel.importing.distributions import ENTRY_POINT_GROUP
from satchel.sources.project_entry_points import project_package


@contextlib.contextmanager
def installed_project(folder: str) -> Iterator[str]:
    """Install the package in a folder for a while, and yield the name of its entry point.

    Yields `""` if no project has an entry point for it. A temporary folder gets what an editable
    installation writes.
    """
    package = project_package(folder)
    if not package.name:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="satchel-") as site:
        info = os.path.join(site, f"{package.name}-0.dist-info")
        metadata = f"Metadata-Version: 2.1\nName: {package.name}\nVersion: 0"
        files = {
            os.path.join(site, f"{package.name}.pth"): package.source,
            os.path.join(info, "METADATA"): metadata,
            os.path.join(info, "entry_points.txt"): (
                f"[{ENTRY_POINT_GROUP}]\n{package.name} = {package.value}"
            ),
            os.path.join(info, "RECORD"): f"{package.name}.pth,,",
        }
        os.mkdir(info)
        for path, text in files.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
        sys.path.insert(0, site)
        try:
            yield package.name
        finally:
            sys.path.remove(site)
