"""The fixtures work in a project of somebody else's."""

import os
import subprocess
import sys

TEST = """
import os

pytest_plugins = ["satchel.testing.fixtures"]


def test_it(make_satchel):
    assert "SATCHEL_ACME_UNIT" not in os.environ
    assert list(make_satchel(plugins=["plugins"]).catalog.plugins) == ["acme"]
"""


def test_a_conftest_brings_the_fixture(tmp_path, write_plugin):
    write_plugin(tmp_path / "plugins", "acme")
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "SATCHEL_ACME_UNIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "1 passed" in done.stdout, done.stdout


def test_importing_the_stand_ins_needs_no_pytest():
    code = "import sys, satchel.testing; print('pytest' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False\n"
