"""What is unreadable for a while keeps its last good version, and comes back by itself.

Each test runs a program of its own, because limits and permissions are those of a process.
"""

import os
import subprocess
import sys
import threading
import time

import pytest

from satchel import Satchel, Settings, WatchTimings
from satchel.files.file_reader import real_path

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
        f"from satchel import tool\\n@tool\\ndef {name}() -> str:\\n"
        "    'Answer.'\\n    return 'ok'\\n"
    )
    front_matter = f"---\\nname: {name}\\ndescription: Does {name}.\\n---\\n"
    (skill / "SKILL.md").write_text(front_matter + "Do it.\\n")

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


@pytest.fixture
def run(forked_python, tmp_path):
    """Run a program in a process of its own."""

    def run(code, *arguments):
        command = [forked_python, "-Werror", "-c", PROGRAM + code, tmp_path, *arguments]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr

    return run


@pytest.mark.parametrize(
    "path",
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
def test_what_becomes_unreadable_keeps_its_last_good_version(run, path):
    run(UNREADABLE, path, "000", "last-good")


@pytest.mark.parametrize("path", ["plugins", "plugins/alpha", "skills", "skills/alpha"])
def test_a_folder_that_can_be_listed_and_not_entered_keeps_what_it_held(run, path):
    run(UNREADABLE, path, "444", "last-good")


@pytest.mark.parametrize("path", ["plugins", "skills"])
def test_a_root_that_can_be_entered_and_not_listed_keeps_what_it_held(run, path):
    run(UNREADABLE, path, "111", "last-good")


FRESH = """
path = root / what
path.chmod(int(sys.argv[3], 8))
fresh = Satchel(skills=[root / "skills"], plugins=[root / sys.argv[4]])
found = [item for item in fresh.catalog.diagnostics if str(path) in item.where.path]
assert found, fresh.catalog.diagnostics
assert {item.code for item in found}.isdisjoint({"source-empty", "source-link-broken"}), found
assert not any("regular file" in item.fix for item in found), found
"""


@pytest.mark.parametrize(
    "path", ["plugins/alpha", "plugins/alpha/tools.py", "plugins/alpha/toolkit.yaml"]
)
@pytest.mark.parametrize("rights", ["000", "444", "111"])
@pytest.mark.parametrize("place", ["plugins", "plugins/alpha"])
def test_a_plugin_that_cannot_be_read_at_the_start_is_named(run, path, rights, place):
    if rights == "444" and path != "plugins/alpha":
        pytest.skip("such a file can be read")
    run(FRESH, path, rights, place)


def test_the_fix_for_a_skill_file_that_may_not_be_read_is_to_let_it_be_read(run):
    code = FRESH + "assert found[0].fix == 'let this process read it', found"
    run(code, "skills/alpha/SKILL.md", "000", "plugins")


LINKED = """
away = root / "away"
away.mkdir()
(root / what / "alpha").rename(away / "alpha")
(root / what / "alpha").symlink_to(away / "alpha")
app.refresh()
check("linked", needs_reason=False)
away.chmod(0)
for _ in range(2):
    app.refresh()
    check("unreadable", needs_reason=True)
fresh = Satchel(skills=[root / "skills"])
problems = [item for item in fresh.catalog.diagnostics if item.where.path.endswith("alpha")]
assert [item.code for item in problems] == ["source-unreadable"], problems
away.chmod(0o755)
app.refresh()
check("readable again", needs_reason=False)
"""


def test_a_skill_behind_a_link_whose_target_turns_unreadable_stays(run):
    run(LINKED, "skills")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts handles in /proc")
def test_without_free_file_handles_everything_keeps_its_last_good_version(run):
    run(HANDLES, "-")


TOUCHED = """
import time

def until(expected):
    end = time.monotonic() + 60
    while not expected():
        assert time.monotonic() < end, (served(), app.catalog.diagnostics)
        time.sleep(0.02)

def is_seen():
    codes = {item.code for item in app.catalog.diagnostics}
    return "last-good" in codes or len(app.catalog.skills) < 2

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
with app.watching():
    taken = []
    used = {int(name) for name in os.listdir("/proc/self/fd")}
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(used) + 1, hard))
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        os.utime(root / "skills/alpha/SKILL.md")
    until(is_seen)
    check("touched", needs_reason=True)
    for handle in taken:
        os.close(handle)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: "last-good" not in {item.code for item in app.catalog.diagnostics})
    check("again", needs_reason=False)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts handles in /proc")
def test_a_skill_that_is_touched_without_free_handles_keeps_its_last_good_version(run):
    run(TOUCHED, "-")


@pytest.mark.parametrize("pause", [0.001, 0.02, 0.1])
def test_an_editor_that_truncates_a_file_first_takes_no_tool_away(tmp_path, pause):
    code = (
        "from satchel import tool\n\n@tool\ndef hello() -> str:\n    'Say {n}.'\n    return '{n}'\n"
    )
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/toolkit.yaml").write_text("name: demo\nactive: true\n")
    file = tmp_path / "demo/tools.py"
    file.write_text(code.format(n=0))
    changes, is_served = [], threading.Event()
    with Satchel(plugins=tmp_path) as app:

        def note(change):
            changes.append((change.kind, change.event))
            if app.catalog.tools["hello"].description == "Say 5.":
                is_served.set()

        app.subscribe(note)
        with app.watching():
            for number in range(1, 6):
                file.write_bytes(b"")
                time.sleep(pause)  # the editor's own pause
                file.write_text(code.format(n=number))
            assert is_served.wait(60)
    assert ("tool", "removed") not in changes


@pytest.mark.parametrize(
    ("name", "text", "seen"),
    [
        (
            "plugins/demo/tools.py",
            "from satchel import tool\n\n@tool\ndef hi() -> str:\n    'Say {n}.'\n    return ''\n",
            lambda app: app.catalog.tools["hi"].description,
        ),
        (
            "plugins/demo/toolkit.yaml",
            "name: demo\ndescription: Say {n}.\nactive: true\n# and the end\n",
            lambda app: app.catalog.plugins["demo"].description * app.catalog.groups["demo"].active,
        ),
        (
            "skills/demo/SKILL.md",
            "---\nname: demo\ndescription: Say {n}.\n---\n" + "Do it again.\n" * 9 + "The end.\n",
            lambda app: (
                app.catalog.skills["demo"].description
                * app.catalog.skills["demo"].manifest.body.strip().endswith("The end.")
            ),
        ),
    ],
    ids=["code", "manifest", "skill"],
)
def test_what_a_slow_editor_has_not_finished_is_not_served(tmp_path, name, text, seen):
    files = {
        "plugins/demo/toolkit.yaml": "name: demo\nactive: true\n",
        "plugins/demo/tools.py": "from satchel import tool\n",
        "skills/demo/SKILL.md": "---\nname: demo\ndescription: Says it.\n---\nDo it.\n",
    }
    for path, content in (files | {name: text.format(n=0)}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    settings = Settings(pace=WatchTimings(settle=3))
    served, is_served = [], threading.Event()
    with Satchel(tmp_path / "skills", plugins=tmp_path / "plugins", settings=settings) as app:

        def note(_change):
            served.append(seen(app))
            if served[-1] == "Say 1.":
                is_served.set()

        app.subscribe(note)
        with app.watching(), (tmp_path / name).open("w") as file:
            for start in range(0, len(text), 30):
                file.write(text.format(n=1)[start : start + 30])
                file.flush()
                time.sleep(0.05)  # the editor's own pause
            assert is_served.wait(60)
    assert set(served) == {"Say 1."}


def test_a_link_that_becomes_a_folder_while_it_is_resolved_is_that_folder(tmp_path, monkeypatch):
    (tmp_path / "skills").mkdir()
    (tmp_path / "link").symlink_to("skills")
    readlink, replaced = os.readlink, []

    def replaced_once(path, **options):
        if not replaced:
            replaced.append(path)
            os.unlink(path)
            os.mkdir(path)
        return readlink(path, **options)

    monkeypatch.setattr(os, "readlink", replaced_once)
    assert real_path(str(tmp_path / "link")) == str(tmp_path / "link")
    assert replaced


@pytest.mark.parametrize("times", [20, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("linked", ["skills/a", "skills", "plugins/p", "plugins"])
def test_links_that_are_replaced_during_scans_end_no_scan(tmp_path, linked, times):
    for name in ("one", "two"):
        skill, plugin = tmp_path / name / "skills/a", tmp_path / name / "plugins/p"
        skill.mkdir(parents=True)
        plugin.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: a\ndescription: Of {name}.\n---\nDo it.\n")
        (plugin / "toolkit.yaml").write_text(f"name: p\ndescription: Of {name}.\n")
    root = tmp_path / "root"
    (root / linked).parent.mkdir(parents=True)
    for folder in {"skills", "plugins"} - {linked.split("/")[0]}:
        (root / folder).mkdir()
    stop = threading.Event()

    def replace_links():
        while not stop.is_set():
            for name in ("one", "two"):
                staged = root / "staged"
                staged.symlink_to(tmp_path / name / linked)
                staged.rename(root / linked)
            (root / linked).unlink()

    (root / linked).symlink_to(tmp_path / "one" / linked)
    thread = threading.Thread(target=replace_links)
    thread.start()
    settings = Settings(cache=False)
    try:
        with Satchel(skills=root / "skills", plugins=root / "plugins", settings=settings) as app:
            for _ in range(times):
                app.refresh()
                with Satchel(skills=root / "skills", settings=settings):
                    pass
    finally:
        stop.set()
        thread.join()
