"""The fixtures work in a project of somebody else's."""

import os
import subprocess
import sys

import pytest

TEST = """
import os


def test_it(make_satchel):
    assert "SATCHEL_ACME_UNIT" not in os.environ
    assert list(make_satchel(plugins=["plugins"]).catalog.plugins) == ["acme"]
"""


@pytest.mark.slow
def test_the_fixture_is_there_without_a_conftest(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "acme")
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "SATCHEL_ACME_UNIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "1 passed" in done.stdout, done.stdout


def test_what_the_fixture_made_is_closed(tmp_path, write_plugin):
    source = """
        from pathlib import Path
        from satchel import hookimpl

        @hookimpl
        def satchel_shutdown():
            Path(__file__).with_name("ended").touch()
    """
    folder = write_plugin(tmp_path / "plugins", "acme", tools=source)
    (tmp_path / "test_it.py").write_text(f"""
def test_it(make_satchel):
    make_satchel(plugins=["plugins"])

def test_after_it():
    from pathlib import Path
    assert Path({str(folder)!r}, "ended").exists()
""")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "2 passed" in done.stdout, done.stdout


def test_importing_the_stand_ins_needs_no_pytest():
    code = "import sys, satchel.testing; print('pytest' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
