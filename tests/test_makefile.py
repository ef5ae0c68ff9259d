"""The commands of the Makefile are valid in a new clone."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[1] / "Makefile"
TARGETS = re.search(r"^\.PHONY: (.*)$", MAKEFILE.read_text("utf-8"), re.MULTILINE)[1].split()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize("target", TARGETS)
def test_the_commands_of_a_target_are_valid_where_nothing_is_installed(target, tmp_path):
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    printed = subprocess.run(
        ["make", "--dry-run", target], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert printed.stdout
    checked = subprocess.run(
        ["sh", "-n"], input=printed.stdout, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, ""), printed.stdout
