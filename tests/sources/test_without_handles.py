"""The readers where folders cannot be opened, as on Windows."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
READERS = [
    "sources/test_skill_scan.py",
    "sources/test_plugin_scan.py",
    "sources/test_folder_reader.py",
    "configuration/test_projects.py",
]
PROGRAM = """
import os, sys

opened = os.open

def open_file(path, flags, mode=0o777, *, dir_fd=None):
    if dir_fd is not None:
        raise NotImplementedError("dir_fd unavailable on this platform")
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, flags, mode)

os.supports_dir_fd = os.supports_dir_fd - {opened}
os.open = open_file
import pytest

status = pytest.main(sys.argv[1:])
from satchel.files.open_folder import HAS_HANDLES
assert not HAS_HANDLES
sys.exit(status)
"""


@pytest.mark.slow
def test_the_readers_pass_their_tests_without_open_folders():
    files = [str(TESTS / name) for name in READERS]
    line = [sys.executable, "-c", PROGRAM, "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(line, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
