"""Folders as strangers leave them, and short ways to scan them."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from satchel.settings import Limits
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot, search_root
from satchel.sources.skill_findings import SkillScan
from satchel.sources.skill_scan import scan_skills


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


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
def later(monkeypatch) -> Callable[[float], None]:
    """Let the clock of the room run ahead, so that what was just written counts as settled."""
    from satchel.sources import distributions, file_reader, folder_reader

    class Clock:
        ahead = 0.0

        def time(self) -> float:
            import time

            return time.time() + self.ahead

    clock = Clock()
    for room in (distributions, file_reader, folder_reader):
        monkeypatch.setattr(room, "time", clock)
    return lambda seconds: setattr(clock, "ahead", seconds)


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """The names of the files that are read from now on, in their order."""
    from satchel.sources.open_folder import OpenFolder

    read, names = OpenFolder.read, []

    def counted(folder: OpenFolder, name: str, limit: int):
        names.append(name)
        return read(folder, name, limit)

    monkeypatch.setattr(OpenFolder, "read", counted)
    return names


@pytest.fixture
def listed(monkeypatch) -> list[str]:
    """The paths of the folders that are listed from now on, in their order."""
    from satchel.sources.open_folder import OpenFolder

    entries, paths = OpenFolder.entries, []

    def counted(folder: OpenFolder):
        paths.append(folder.path)
        return entries(folder)

    monkeypatch.setattr(OpenFolder, "entries", counted)
    return paths


@pytest.fixture
def codes() -> Callable[..., list[str]]:
    return lambda found: [item.code for item in found]


@pytest.fixture
def untouched_modules():
    """Put `sys.modules` and `sys.path` back as they were."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path


@pytest.fixture(scope="session")
def install() -> Callable[..., Path]:
    """Write a distribution's metadata, and its modules by keyword, as an installer would."""

    def install(
        site: Path,
        name: str = "acme",
        points: str = "[satchel.plugins]\nacme = acme_plugin\n",
        *,
        version: str = "1.0",
        record: bool = True,
        files: tuple[str, ...] = (),
        **modules: str,
    ) -> Path:
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        for module, source in modules.items():
            (site / f"{module}.py").write_text(source)
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: Sums up.\n"
        (info / "METADATA").write_text(metadata)
        (info / "entry_points.txt").write_text(points)
        if record:
            lines = [f"{module}.py,sha256=x,1" for module in modules] + [
                f"{file},," for file in files
            ]
            (info / "RECORD").write_text("\n".join(lines) + "\n")
        return info

    return install


@contextmanager
def swapping(here: Path, other: Path) -> Iterator[None]:
    """Put a link to another folder in the place of a folder and back, again and again."""
    stop = threading.Event()
    spare, aside = here.parent / "spare", here.parent / "aside"
    spare.symlink_to(other)

    def swap() -> None:
        while not stop.is_set():
            here.rename(aside)
            spare.rename(here)
            here.rename(spare)
            aside.rename(here)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        stop.set()
        swapper.join()


@pytest.fixture(scope="session", name="swapping")
def _swapping() -> Callable[[Path, Path], AbstractContextManager[None]]:
    return swapping
