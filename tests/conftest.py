"""Fixtures for all tests: the shared files, and functions that write skills and plugins."""

import gc
import importlib.util
import itertools
import os
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

from forked_python import ForkedPython

from satchel.importing import distributions, shipped_skills
from satchel.settings import Limits

# No deadlines, since a busy machine is slow; benchmarks measure time.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=10)
hypothesis.settings.register_profile("medium", deadline=None, max_examples=50)
hypothesis.settings.register_profile("long", deadline=None, max_examples=200)
hypothesis.settings.load_profile("quick")

REPOSITORY = Path(__file__).parents[1]
PYTHON = sys.executable


def pytest_collection_finish():
    """Let the garbage collector skip the modules and tests: they are many, and they stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _config_folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("config")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory) -> Path:
    """A folder that the processes of one run of the tests share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(autouse=True)
def config_folder(_config_folders, run_folder, monkeypatch) -> Path:
    """The configuration folder of one test, instead of the user's; it does not exist yet."""
    folder = next(_config_folders)
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(folder))
    monkeypatch.setenv("SATCHEL_STATE_DIR", f"{folder}-state")
    monkeypatch.setenv("SATCHEL_CACHE_DIR", f"{folder}-cache")
    # Shared, or each process that a test starts would compile what it imports.
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(run_folder / "compiled"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return folder


@pytest.fixture(autouse=True)
def no_skills_of_installed_packages(monkeypatch) -> None:
    """Leave out the skills of packages that are installed for the tests, such as typer's."""

    def shipped(folder, names):
        installed_here = os.path.realpath(folder) == os.path.realpath(sysconfig.get_path("purelib"))
        return () if installed_here else shipped_skills.shipped_skills(folder, names)

    monkeypatch.setattr(distributions, "shipped_skills", shipped)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real and hostile files beside the checkout.

    Without it, tests that need it are skipped. With SATCHEL_REQUIRE_SHARED, as in CI, they fail.
    """
    folder = Path(os.environ.get("SATCHEL_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "corpus").is_dir():
        if os.environ.get("SATCHEL_REQUIRE_SHARED"):
            pytest.fail(f"the shared material is missing: {folder}")
        pytest.skip("no shared material here (set SATCHEL_SHARED)")
    return folder


@pytest.fixture(scope="session")
def maker(shared):
    """Load the module that writes hostile folders, without writing bytecode."""
    spec = importlib.util.spec_from_file_location("hostile_make", shared / "hostile" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def skill_text() -> Callable[..., str]:
    """Return a function that returns the text of a valid SKILL.md."""

    def text(name: str, description: str = "Does a thing.", body: str = "Do it.\n") -> str:
        return f"---\nname: {name}\ndescription: {description}\n---\n{body}"

    return text


@pytest.fixture(scope="session")
def write_skill(skill_text) -> Callable[..., Path]:
    """Return a function that writes a valid `root/name/SKILL.md`, or one with the given text."""

    def write(root: Path, name: str, *, text: str | None = None, **parts: str) -> Path:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(skill_text(name, **parts) if text is None else text)
        return folder

    return write


@pytest.fixture(scope="session")
def write_files() -> Callable[..., Path]:
    """Return a function that writes files into a folder, by their paths in it."""

    def write(folder: Path, files: dict[str, str]) -> Path:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder

    return write


@pytest.fixture(scope="session")
def write_plugin() -> Callable[..., Path]:
    """Return a function that writes a plugin: its manifest and, by keyword, its modules."""

    def write(root: Path, name: str, manifest: str = "active: true\n", **modules: str) -> Path:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for module, source in modules.items():
            (folder / f"{module}.py").write_text(dedent(source))
        (folder / "toolkit.yaml").write_text(f"name: {name}\n{manifest}")
        return folder

    return write


@pytest.fixture(scope="session")
def forked_python(tmp_path_factory) -> Iterator[str]:
    """The command of a Python that starts with Satchel imported, for `subprocess` and servers."""
    python = ForkedPython(tmp_path_factory.mktemp("forked"))
    yield python.command
    python.close()


@pytest.fixture
def quick_starts(forked_python, monkeypatch) -> None:
    """Start Python as a fork wherever the command is `sys.executable`."""
    for module in ("runtime.skill_scripts", "builtin.execution_tools"):
        import_module(f"satchel.{module}")  # it keeps the command with which it is imported
    monkeypatch.setattr(sys, "executable", forked_python)


@pytest.fixture
def fresh_starts(quick_starts, monkeypatch) -> None:
    """Start a new interpreter nevertheless, for a test of how a process begins."""
    monkeypatch.setattr(sys, "executable", PYTHON)


@pytest.fixture(scope="session")
def built_site(run_folder) -> Path:
    """The documentation site; the processes of one run build it once."""
    done = run_folder / "documentation-site" / "done"
    try:
        done.parent.mkdir()
    except FileExistsError:
        until = time.monotonic() + 300
        while not done.exists() and time.monotonic() < until:
            time.sleep(0.05)
    else:
        try:
            subprocess.run([sys.executable, "tools/build_docs.py"], cwd=REPOSITORY, check=True)
        finally:
            done.touch()
    return REPOSITORY / "site"


@pytest.fixture
def site(tmp_path) -> Path:
    """A folder to install distributions in, which is not on the import path."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


@pytest.fixture
def later(monkeypatch) -> Callable[[float], None]:
    """Return a function that sets clocks ahead: a file that was just written is then settled."""
    from satchel.files import file_reader
    from satchel.sources import folder_reader

    class Clock:
        ahead = 0.0

        def time(self) -> float:
            import time

            return time.time() + self.ahead

    clock = Clock()
    for module in (distributions, file_reader, folder_reader):
        monkeypatch.setattr(module, "time", clock)
    return lambda seconds: setattr(clock, "ahead", seconds)


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
    """Replace the folder `here` by a link to `other`, and back, until the block ends."""
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


@pytest.fixture
def codes() -> Callable[..., list[str]]:
    """Return a function that returns the codes of diagnostics."""
    return lambda diagnostics: [item.code for item in diagnostics]
