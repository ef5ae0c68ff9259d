"""Folders as strangers leave them, and short ways to scan them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from satchel.settings import Limits
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot, search_root
from satchel.sources.skill_findings import SkillScan
from satchel.sources.skill_scan import scan_skills


@pytest.fixture(scope="session")
def skill_place() -> Callable[..., SearchRoot]:
    return lambda folder, scope=Precedence.EXPLICIT: search_root(folder, RootKind.SKILLS, scope)


@pytest.fixture(scope="session")
def plugin_place() -> Callable[..., SearchRoot]:
    return lambda folder: search_root(folder, RootKind.PLUGINS)


@pytest.fixture(scope="session")
def scan(skill_place) -> Callable[..., SkillScan]:
    """Scan a folder for skills; limits are given by keyword."""

    def scan(folder: Path, before: SkillScan | None = None, dirty=None, **limits) -> SkillScan:
        return scan_skills(skill_place(folder), Limits(**limits), before, dirty)

    return scan


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The names of the files that are read from now on, in their order."""
    from satchel.files.open_folder import OpenFolder

    read, names = OpenFolder.read, []

    def counted(folder: OpenFolder, name: str, limit: int):
        names.append(name)
        return read(folder, name, limit)

    monkeypatch.setattr(OpenFolder, "read", counted)
    return names


@pytest.fixture
def listed(monkeypatch) -> list[str]:
    """The paths of the folders that are listed from now on, in their order."""
    from satchel.files.open_folder import OpenFolder

    entries, paths = OpenFolder.entries, []

    def counted(folder: OpenFolder):
        paths.append(folder.path)
        return entries(folder)

    monkeypatch.setattr(OpenFolder, "entries", counted)
    return paths
