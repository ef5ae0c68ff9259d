"""What `satchel install` and `uninstall` do, seen by a satchel that runs meanwhile."""

import asyncio
import json
import os
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import satchel
from satchel.cli.main import cli

TOOLS = """
    from satchel import tool

    @tool
    def greet() -> str:
        "Greet."
        return "{word}"
"""
ACTIVE = "active: true\nversion: {version}\n"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder / ".satchel/plugins"


@pytest.fixture
def demo(tmp_path, write_plugin):
    """Write a version of the plugin somewhere else."""

    def demo(word, version="1"):
        manifest = ACTIVE.format(version=version)
        return write_plugin(tmp_path / "work", "demo", manifest, tools=TOOLS.format(word=word))

    return demo


def run(*args: object) -> None:
    result = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert result.exit_code == 0, result.output


def say(app) -> str:
    return asyncio.run(app.session().call("greet", {})).text


@pytest.fixture
def seen(watched, home):
    home.mkdir(parents=True)
    with watched(roots=satchel.conventional_roots()) as seen:
        yield seen


def of_demo(seen):
    return [event for event, kind, name in seen.events() if (kind, name) == ("plugin", "demo")]


def test_a_copied_plugin_comes_is_upgraded_and_goes_each_as_one_change(seen, demo):
    run("install", "--yes", demo("one"))
    seen.until_event("added", "greet")
    assert say(seen.app) == "one"
    run("install", "--yes", demo("two", "2"))
    seen.until(lambda: say(seen.app) == "two")
    run("uninstall", "demo")
    seen.until_event("removed", "demo")
    assert of_demo(seen) == ["added", "changed", "removed"]
    seen.until_as_cold()


def test_a_linked_plugin_is_followed_while_it_is_edited(seen, demo, home):
    run("install", "--yes", "-e", demo("one"))
    seen.until_event("added", "greet")
    for word in ("two", "three"):
        demo(word)
        seen.until(lambda word=word: say(seen.app) == word)
    seen.until_as_cold()
    run("uninstall", "demo")
    seen.until_event("removed", "demo")
    assert (demo("four") / "tools.py").exists()


def test_a_plugin_is_found_in_a_folder_that_installing_makes(watched, demo, home):
    with watched(roots=satchel.conventional_roots()) as seen:
        assert not home.exists()
        run("install", "--yes", demo("one"))
        seen.until_event("added", "greet")


def test_a_plugin_whose_setup_fails_does_not_stay(seen, demo, home):
    folder = demo("one")
    (folder / "setup.py").write_text("def setup(ctx):\n    1 / 0\n")
    result = CliRunner().invoke(cli, ["install", "--yes", str(folder)])
    assert result.exit_code == 1
    assert not list(home.iterdir())
    # The watch may have seen the folder while it was there.
    seen.until(lambda: "demo" not in seen.app.catalog.plugins)
    seen.until_as_cold()


# ---- a real package -----------------------------------------------------------------------

CODE = """
from satchel import Group, hookimpl

def greet() -> str:
    "Greet."
    return "hello"

@hookimpl
def satchel_tools():
    return [greet]

@hookimpl
def satchel_groups():
    return [Group(name="acme", description="Greets.", active=True)]
"""


@pytest.fixture
def wheel(tmp_path) -> Path:
    return write_wheel(tmp_path, {"acme_greeter.py": CODE})


def write_wheel(folder: Path, code: dict[str, str], version: str = "1.0") -> Path:
    """Write a wheel by hand, so that nothing has to be built."""
    info = f"acme_greeter-{version}.dist-info"
    path = folder / f"acme_greeter-{version}-py3-none-any.whl"
    files = {
        **code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: acme-greeter\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[satchel.plugins]\nacme = acme_greeter\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (*files.items(), (f"{info}/RECORD", record)):
            archive.writestr(name, text)
    return path


@pytest.fixture
def scratch(tmp_path):
    """Run a command in an environment that sees our packages, and has a folder of its own."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    ours = [str(Path(satchel.__file__).parents[1]), sysconfig.get_path("purelib")]
    (site / "ours.pth").write_text("\n".join(ours))

    def scratch(*words: object, fails: bool = False) -> str:
        done = subprocess.run(
            [tmp_path / "env/bin/python", "-m", "satchel", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PIP_NO_INDEX": "1"},
            cwd=tmp_path,
        )
        assert done.returncode == int(fails), done.stderr
        return done.stderr if fails else done.stdout

    return scratch


@pytest.mark.slow
def test_a_wheel_is_really_installed_enabled_and_removed(scratch, wheel):
    (record,) = json.loads(scratch("install", "--yes", wheel, "--json", "--set", "key=v"))
    assert (record["name"], record["kind"], record["enabled"]) == ("acme", "package", True)
    assert scratch("call", "greet") == "hello\n"
    scratch("uninstall", "acme", "--purge")
    assert "acme" not in scratch("list", "plugins")


@pytest.mark.slow
def test_a_wheel_whose_setup_fails_goes_again_and_an_upgrade_is_reported(scratch, tmp_path):
    parts = {"toolkit.yaml": "name: acme\nactive: true\n", "__init__.py": ""}
    failing = "def setup(ctx):\n    ctx.set('key', 'v')\n    1 / 0\n"

    def made(version: str, setup: str) -> Path:
        code = {f"acme_greeter/{name}": text for name, text in parts.items()}
        return write_wheel(tmp_path, {**code, "acme_greeter/setup.py": setup}, version)

    message = scratch("install", "--yes", made("1.0", failing), fails=True)
    assert "division by zero" in message
    assert "nothing was installed" in message
    assert "the values are kept in" in message
    assert "acme" not in scratch("list", "plugins")
    scratch("install", "--yes", made("1.0", "def setup(ctx):\n    pass\n"))
    message = scratch("install", "--yes", made("2.0", failing), fails=True)
    assert "acme-greeter 2.0 stays installed; acme is enabled" in message
    assert "kept" not in message
