"""The real pip installs and removes the bundled package while a watch runs."""

import json
import queue
import subprocess
import sys
import sysconfig
import threading
import venv
from pathlib import Path

import pytest

import satchel

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "plugins" / "satchel-units"
PATIENCE = 120


def pip(*words: str) -> None:
    base = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*base, *words], check=True, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The bundled package, built."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(PACKAGE))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def environment(tmp_path):
    """A virtual environment that sees our own packages, but has a site-packages of its own."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    ours = [str(Path(satchel.__file__).parents[1]), sysconfig.get_path("purelib")]
    (site / "ours.pth").write_text("\n".join(ours))
    return folder / "bin" / "python"


class Lines:
    """What a process prints, as objects, read on a thread so that waiting has an end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self.reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout:
            self._lines.put(line)

    def until(self, event: str, kind: str, name: str) -> dict[str, object]:
        while True:
            records = json.loads(self._lines.get(timeout=PATIENCE))
            if (records["event"], records["kind"], records["name"]) == (event, kind, name):
                return records


@pytest.mark.slow
def test_installing_and_removing_the_bundled_package_is_noticed(wheel, environment):
    process = subprocess.Popen(
        [str(environment), "-m", "satchel", "watch", "--json", "--entry-points", "units"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        lines = Lines(process)
        try:
            lines.until("loaded", "group", "basic")
            pip("--python", str(environment), "install", "--no-deps", str(wheel))
            lines.until("added", "plugin", "units")
            lines.until("added", "skill", "convert-with-care")
            pip("--python", str(environment), "uninstall", "--yes", "satchel-units")
            lines.until("removed", "plugin", "units")
        finally:
            process.terminate()
            lines.reader.join(PATIENCE)  # leaving closes the pipe that it reads
    assert process.returncode == 0
