"""What is unreadable for a while keeps its last good version, and comes back by itself.

Each test runs a program of its own, because limits and permissions are those of a process.
"""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, os, resource, sys
from pathlib import Path

root, what = Path(sys.argv[1]), sys.argv[2]
for name in ("alpha", "beta"):
    plugin, skill = root / "plugins" / name, root / "skills" / name
    plugin.mkdir(parents=True)
    skill.mkdir(parents=True)
    (plugin / "toolkit.yaml").write_text(f"name: the-{name}\\nactive: true\\n")
    (plugin / "tools.py").write_text(
        f"from satchel import tool\\n@tool\\ndef {name}() -> str:\\n    'Answer.'\\n    return 'ok'\\n"
    )
    (skill / "SKILL.md").write_text(f"---\\nname: {name}\\ndescription: Does {name}.\\n---\\nDo it.\\n")

# Without its capabilities, root has the rights of an ordinary owner.
libc = ctypes.CDLL(None, use_errno=True)
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
assert libc.capset(header, (ctypes.c_uint32 * 6)()) == 0, ctypes.get_errno()

from satchel import Satchel
app = Satchel(skills=[root / "skills"], plugins=[root / "plugins"])

def served():
    return sorted(app.catalog.tools), sorted(app.catalog.skills)

def check(when, *, needs_reason):
    assert served() == (["alpha", "beta"], ["alpha", "beta"]), (when, served())
    codes = {item.code for item in app.catalog.diagnostics}
    assert not needs_reason or "last-good" in codes, (when, codes)

check("at first", needs_reason=False)
"""

UNREADABLE = """
path, rights = root / what, int(sys.argv[3], 8)
before = path.stat().st_mode
path.chmod(rights)
app.refresh()
check("unreadable", needs_reason=sys.argv[4] == "last-good")
path.chmod(before)
app.refresh()
check("readable again", needs_reason=False)
assert "last-good" not in {item.code for item in app.catalog.diagnostics}
"""

HANDLES = """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
app.refresh()
for free in range(8):
    used = {int(name) for name in os.listdir("/proc/self/fd")}
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(used) + 1 + free, hard))
    while True:
        try:
            taken.append(os.dup(0))
        except OSError:
            break
    for handle in taken[:free]:
        os.close(handle)
    app.refresh()
    for handle in taken[free:]:
        os.close(handle)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    check(f"{free} free handles", needs_reason=free == 0)
    app.refresh()
    check(f"after {free} free handles", needs_reason=False)
"""


def run(tmp_path, code, *arguments):
    line = [sys.executable, "-c", PROGRAM + code, str(tmp_path), *arguments]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "what",
    [
        "plugins",
        "plugins/alpha",
        "plugins/alpha/toolkit.yaml",
        "plugins/alpha/tools.py",
        "skills",
        "skills/alpha",
        "skills/alpha/SKILL.md",
    ],
)
def test_what_becomes_unreadable_keeps_its_last_good_version(tmp_path, what):
    run(tmp_path, UNREADABLE, what, "000", "last-good")


@pytest.mark.parametrize("what", ["plugins", "plugins/alpha", "skills", "skills/alpha"])
def test_a_folder_that_can_be_listed_and_not_entered_keeps_what_it_held(tmp_path, what):
    run(tmp_path, UNREADABLE, what, "444", "last-good")


@pytest.mark.parametrize("what", ["plugins", "skills"])
def test_a_root_that_can_be_entered_and_not_listed_keeps_what_it_held(tmp_path, what):
    run(tmp_path, UNREADABLE, what, "111", "last-good")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts handles in /proc")
def test_without_free_file_handles_everything_keeps_its_last_good_version(tmp_path):
    run(tmp_path, HANDLES, "-")
