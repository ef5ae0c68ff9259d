"""The real pip puts a package in, upgrades it, makes it editable and takes it out, under watch.

The package brings its own build backend, so nothing has to be downloaded.
"""

import json
import queue
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from pathlib import Path
from textwrap import dedent

import pytest

import satchel

PATIENCE = 120

BACKEND = """
import pathlib, zipfile

NAME, VERSION = "acme-weather", "{version}"


def _write(folder, files):
    stem = f"acme_weather-{{VERSION}}"
    info = f"{{stem}}.dist-info"
    files = files | {{
        f"{{info}}/METADATA": f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n",
        f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n",
        f"{{info}}/entry_points.txt": "[satchel.plugins]\\nweather = acme.weather.hooks\\n",
    }}
    record = "".join(f"{{name}},,\\n" for name in [*files, f"{{info}}/RECORD"])
    wheel = f"{{stem}}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, wheel), "w") as archive:
        for name, text in {{**files, f"{{info}}/RECORD": record}}.items():
            archive.writestr(name, text)
    return wheel


def build_wheel(folder, config_settings=None, metadata_directory=None):
    source = pathlib.Path("src").resolve()
    found = [path for path in sorted(source.rglob("*")) if path.is_file()]
    return _write(folder, {{str(p.relative_to(source)): p.read_text() for p in found}})


def build_editable(folder, config_settings=None, metadata_directory=None):
    return _write(folder, {{"_acme_weather.pth": str(pathlib.Path("src").resolve()) + "\\n"}})
"""

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "acme-weather"
dynamic = ["version"]
"""

TOOLS = """
from satchel import tool
from acme.weather.words import WORD

@tool
def forecast(city: str) -> str:
    "Forecast the weather."
    return WORD + " " + city
"""

HOOKS = """
import satchel
from acme.weather.tools import forecast

@satchel.hookimpl
def satchel_tools():
    return [forecast]
"""

SKILL = "---\nname: {name}\ndescription: Does a thing. Use when it is to be done.\n---\nDo it.\n"

# Prints the picture of its catalog, and what the tool answers, whenever it is asked to.
WATCHER = """
import asyncio, json, sys
from satchel import WatchTimings, Satchel, Settings
from satchel.reports.serializer import KINDS, listed

app = Satchel(
    entry_points=["all"],
    settings=Settings(
        pace=WatchTimings(heartbeat=0.1, settle=0.1, quiet=0.05, safety_scan_active=1)
    ),
)


def picture():
    session = app.session()
    shapes = {kind: listed(app.catalog, kind) for kind in KINDS}
    for shape in (item for items in shapes.values() for item in items):
        del shape["generation"]
    has_tool = "forecast" in app.catalog.tools
    said = asyncio.run(session.call("forecast", {"city": "Oslo"})).text if has_tool else ""
    modules = sorted(name for name in sys.modules if name.startswith("acme."))
    print(json.dumps([shapes, session.prompt(), session.schemas(), said, modules]), flush=True)


if sys.argv[1:]:
    picture()
else:
    with app.watching():
        for _ in sys.stdin:
            picture()
"""


def pip(*words: str) -> None:
    base = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*base, *words], check=True, capture_output=True, text=True)


class Place:
    """A scratch environment, a project, and a satchel that watches."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "environment", with_pip=False, symlinks=True)
        (self.site,) = (folder / "environment").glob("lib/python*/site-packages")
        ours = [str(Path(satchel.__file__).parents[1]), sysconfig.get_path("purelib")]
        (self.site / "ours.pth").write_text("\n".join(ours))
        self.python = str(folder / "environment" / "bin" / "python")
        self.script = folder / "watcher.py"
        self.script.write_text(WATCHER)
        self.project = folder / "project"
        self.package = self.project / "src" / "acme" / "weather"
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def write(self, version: str, word: str) -> None:
        """Write the project; `acme` is a namespace without an `__init__.py`."""
        shutil.rmtree(self.project, ignore_errors=True)
        self.package.mkdir(parents=True)
        (self.project / "backend.py").write_text(BACKEND.format(version=version))
        (self.project / "pyproject.toml").write_text(PROJECT)
        (self.package / "__init__.py").write_text("")
        (self.package / "words.py").write_text(f"WORD = {word!r}\n")
        (self.package / "tools.py").write_text(TOOLS)
        (self.package / "hooks.py").write_text(HOOKS)
        self.say(f"Notes of {version}.")
        self.write_skill("plan-a-trip")

    def say(self, notes: str) -> None:
        """Write the manifest with these notes."""
        text = f"""
            description: Forecasts.
            notes: {notes}
            active: true
            config:
              unit: {{default: C, options: [C, F], type: choice}}
        """
        (self.package / "toolkit.yaml").write_text(dedent(text))

    def write_skill(self, name: str) -> None:
        folder = self.package / ".agents" / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=name))

    def install(self, *words: str) -> None:
        pip(
            "--python",
            self.python,
            "install",
            "--no-deps",
            "--no-build-isolation",
            *words,
            str(self.project),
        )

    def start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [self.python, str(self.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        return self.process

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)

    def live(self) -> list:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self._lines.get(timeout=PATIENCE))

    def cold(self) -> list:
        done = subprocess.run(
            [self.python, str(self.script), "once"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def until(self, message: str, notes: str = "", *, version: str = "", **skills: bool) -> list:
        """Wait until the live catalog answers so, and compare it with a cold load."""
        deadline = time.monotonic() + PATIENCE
        while True:
            seen = self.live()
            plugins = {item["name"]: item["version"] for item in seen[0]["plugin"]}
            names = [item["name"] for item in seen[0]["skill"]]
            if (
                (seen[3], plugins.get("weather", "")) == (message, version)
                and notes in seen[1]
                and all((skill in names) is there for skill, there in skills.items())
            ):
                return seen
            assert time.monotonic() < deadline, (seen[0]["plugin"], names, seen[1])
            time.sleep(0.05)  # between two looks at a process that tells nothing by itself

    def until_as_cold(self, *expected: str, **options) -> list:
        cold = self.cold()
        live = self.until(*expected, **options)
        assert live[:4] == cold[:4]
        return live


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    with place.start() as process:
        yield place
        process.stdin.close()


@pytest.mark.slow
def test_install_upgrade_edit_and_uninstall_end_in_the_catalog_of_a_cold_load(place):
    place.write("1.0", "Sunny in")
    (place.package / "old.py").write_text("")
    (place.package / "words.py").write_text("import acme.weather.old\nWORD = 'Sunny in'\n")
    place.install()
    seen = place.until_as_cold(
        "Sunny in Oslo", "Notes of 1.0.", version="1.0", **{"plan-a-trip": True}
    )
    assert "acme.weather.old" in seen[4]

    place.write("1.1", "Rainy in")
    place.install("--upgrade")
    seen = place.until_as_cold("Rainy in Oslo", "Notes of 1.1.", version="1.1")
    assert "acme.weather.old" not in seen[4], "modules of the old version do not linger"

    place.install("--editable")
    place.until_as_cold("Rainy in Oslo", version="1.1")

    for word in ("Windy in", "Foggy in", "Snowy in"):  # one length, perhaps within one second
        (place.package / "words.py").write_text(f"WORD = {word!r}\n")
        place.until(f"{word} Oslo", version="1.1")
    place.say("Ask for the city.")
    place.write_skill("pack-a-app")
    brought = {"plan-a-trip": True, "pack-a-app": True}
    place.until_as_cold("Snowy in Oslo", "Ask for the city.", version="1.1", **brought)

    (place.package / "words.py").write_text("WORD = (\n")
    deadline = time.monotonic() + PATIENCE
    while place.live()[0]["plugin"][-1]["state"] != "stale":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert place.live()[3] == "Snowy in Oslo", "the last good version keeps serving"
    (place.package / "words.py").write_text("WORD = 'Cloudy in'\n")
    place.until_as_cold("Cloudy in Oslo", version="1.1")

    pip("--python", place.python, "uninstall", "--yes", "acme-weather")
    place.until_as_cold("", version="")
