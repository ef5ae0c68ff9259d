"""When a skill whose SKILL.md is gone, and what was on a mount that is gone, is still served."""

import asyncio
import shutil
import subprocess
import sys

import pytest

from satchel import Satchel, Settings, WatchTimings
from satchel.sources import lost_mounts

TOOLS = """
    from satchel import tool

    @tool
    def greet(name: str) -> str:
        "Greet somebody."
        return "Good " + name
"""


@pytest.fixture
def root(tmp_path, write_skill):
    write_skill(tmp_path / "root", "notes", description="Take notes.")
    (tmp_path / "root/notes/guide.md").write_text("A guide.")
    return tmp_path / "root"


@pytest.fixture
def other_device(monkeypatch):
    """Return a function after which every folder seems to be on another file system."""
    return lambda: monkeypatch.setattr(lost_mounts, "device_of", lambda _path: -1)


def state(app, name="notes"):
    return app.catalog.skill(name).state if name in app.catalog.skills else "gone"


def codes(app):
    """Return the codes, without that of plugins in the environment."""
    return {item.code for item in app.catalog.diagnostics} - {"plugin-not-enabled"}


def load(root, **options):
    return Satchel(skills=[root], **options)


# ---- SKILL.md --------------------------------------------------------------------------------


def test_a_refresh_removes_a_skill_whose_skill_file_is_gone(root):
    with load(root) as app:
        (root / "notes/SKILL.md").rename(root / "notes/SKILL.md.bak")
        app.refresh()
        assert (state(app), codes(app)) == ("gone", {"source-empty"})
        (root / "notes/SKILL.md.bak").rename(root / "notes/SKILL.md")
        app.refresh()
        assert (state(app), codes(app)) == ("ok", set())


def test_a_skill_that_moves_below_is_found_there(root, write_skill):
    with load(root) as app:
        write_skill(root / "notes", "below")
        (root / "notes/SKILL.md").unlink()
        app.refresh()
        assert (state(app, "below"), state(app)) == ("ok", "gone")


def test_a_watch_keeps_a_skill_while_its_skill_file_is_replaced(watched, root, write_skill):
    text = (root / "notes/SKILL.md").read_text()
    patient = Settings(mcp_servers=False, pace=WatchTimings(settle=1000.0))
    with watched(skills=[root], settings=patient) as seen:
        write_skill(root, "other")
        (root / "notes/SKILL.md").unlink()
        seen.until_event("added", "other")
        assert state(seen.app) == "ok"
        (root / "notes/SKILL.md").write_text(text.replace("Take", "Write"))
        seen.until_event("changed", "notes")
        seen.until_as_cold()
        assert ("removed", "skill", "notes") not in seen.events()


@pytest.mark.parametrize("name", ["SKILL.md.bak", "skill.md"])
def test_a_watch_removes_a_skill_whose_skill_file_stays_away(watched, root, name):
    with watched(skills=[root]) as seen:
        (root / "notes/SKILL.md").rename(root / "notes" / name)
        seen.until_event("removed", "notes")
        seen.until_as_cold()


# ---- folders ---------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path, write_skill, write_plugin):
    """A folder of skills, with one that a link leads to, and one of plugins, one with a command."""
    for name in ("skills/deep/notes", "skills/other", "elsewhere/linked"):
        write_skill(tmp_path, name)
    (tmp_path / "skills/linked").symlink_to(tmp_path / "elsewhere/linked")
    write_plugin(tmp_path / "plugins", "demo", tools=TOOLS)
    write_skill(tmp_path / "plugins/demo/skills", "of-demo")
    write_plugin(tmp_path / "plugins", "second")
    for file, text in (
        (".claude-plugin/plugin.json", '{"name": "bundle"}'),
        ("commands/tidy.md", "---\ndescription: Tidies up.\n---\nTidy up.\n"),
    ):
        path = tmp_path / "plugins/bundle" / file
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


UNITS = [
    "skills/deep/notes",
    "skills/deep",
    "skills",
    "elsewhere/linked",
    "plugins/demo",
    "plugins/bundle",
]


@pytest.mark.parametrize("away", [*UNITS, "plugins"])
def test_a_watch_keeps_the_units_of_a_folder_that_is_away_for_a_moment(watched, tree, away):
    folder, beside = tree / away, tree / "away"
    patient = Settings(mcp_servers=False, pace=WatchTimings(heartbeat=0.05, settle=1000.0))
    roots = {"skills": [tree / "skills"], "plugins": [tree / "plugins"], "settings": patient}
    with watched(**roots) as seen:
        served = [*seen.app.catalog.skills, *seen.app.catalog.plugins]
        assert "tidy" in served
        folder.rename(beside)
        seen.until(lambda: seen.app._watch._targets().settling)
        assert [*seen.app.catalog.skills, *seen.app.catalog.plugins] == served
        assert asyncio.run(seen.app.session().call("greet", {"name": "Ada"})).text == "Good Ada"
        beside.rename(folder)
        seen.until(lambda: not seen.app._watch._targets().settling)
        assert [*seen.app.catalog.skills, *seen.app.catalog.plugins] == served
        assert "removed" not in {event for event, _, _ in seen.events()}


@pytest.mark.parametrize("removed", UNITS)
def test_a_watch_removes_the_units_of_a_folder_that_stays_away(watched, tree, removed):
    with watched(skills=[tree / "skills"], plugins=[tree / "plugins"]) as seen:
        shutil.rmtree(tree / removed)
        seen.until_as_cold()
        assert "removed" in {event for event, _, _ in seen.events()}


# ---- mounts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_skill_of_a_mount_that_is_gone_stays(root, other_device, is_emptied):
    with load(root) as app:
        away = root.rename(root.with_name("away"))
        if is_emptied:
            root.mkdir()
        other_device()
        for _ in range(3):
            app.refresh()
            assert state(app) == "stale"
            assert "source-unmounted" in codes(app)
        if is_emptied:
            root.rmdir()
        away.rename(root)
        app.refresh()
        assert (state(app), codes(app)) == ("ok", set())


def test_a_file_in_place_of_a_mount_says_that_its_skills_are_meant_to_go(root, other_device):
    with load(root) as app:
        root.rename(root.with_name("away"))
        root.mkdir()
        other_device()
        app.refresh()
        (root / "gone-for-good").touch()
        app.refresh()
        assert state(app) == "gone"


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_deleted_root_on_the_same_device_loses_its_skills(root, is_emptied):
    with load(root) as app:
        shutil.rmtree(root)
        if is_emptied:
            root.mkdir()
        app.refresh()
        assert state(app) == "gone"
        assert "source-unmounted" not in codes(app)


def test_tools_of_a_plugin_on_a_mount_that_is_gone_answer(tmp_path, write_plugin, other_device):
    plugins = tmp_path / "plugins"
    write_plugin(plugins, "demo", tools=TOOLS)
    with Satchel(plugins=[plugins]) as app:
        away = plugins.rename(tmp_path / "away")
        plugins.mkdir()
        other_device()
        app.refresh()
        assert app.catalog.plugin("demo").state == "stale"
        assert asyncio.run(app.session().call("greet", {"name": "Ada"})).text == "Good Ada"
        assert "source-unmounted" in codes(app)
        plugins.rmdir()
        away.rename(plugins)
        app.refresh()
        assert (app.catalog.plugin("demo").state, codes(app)) == ("ok", set())


REAL = """
import os, subprocess, sys
from pathlib import Path
from satchel import Satchel, Settings, WatchTimings

mount = Path(sys.argv[1])
run = lambda *command: subprocess.run(command, check=True)
mounted = lambda: run("mount", "-t", "tmpfs", "none", str(mount))
mounted()
root = mount / sys.argv[2]
skill = root / "notes"
def write():
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\\nname: notes\\ndescription: Takes notes.\\n---\\nDo.\\n")
write()
with Satchel(skills=[root]) as app:
    run("umount", str(mount))
    app.refresh()
    assert app.catalog.skill("notes").state == "stale", app.catalog.all_skills
    mount.rmdir()
    app.refresh()
    assert app.catalog.skill("notes").state == "stale", app.catalog.all_skills
    mount.mkdir()
    mounted()
    write()
    app.refresh()
    assert app.catalog.skill("notes").state == "ok", app.catalog.diagnostics
    import shutil
    shutil.rmtree(skill)
    app.refresh()
    assert not app.catalog.all_skills, app.catalog.all_skills
"""


def may_mount() -> bool:
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


BELOW = """
import os, subprocess, sys, time
from pathlib import Path
from satchel import Satchel, Settings, WatchTimings

home = Path(sys.argv[1])
run = lambda *command: subprocess.run(command, check=True)
mount = home / sys.argv[2]
unit = mount if mount.name == "notes" else mount / "notes"
root = home / sys.argv[3]
link = root / "linked"
root.mkdir()
mount.mkdir(exist_ok=True)
run("mount", "-t", "tmpfs", "none", str(mount))
def write():
    unit.mkdir(exist_ok=True)
    (unit / "SKILL.md").write_text("---\\nname: notes\\ndescription: Takes notes.\\n---\\nDo.\\n")
    (unit / "toolkit.yaml").write_text("name: notes\\n")
write()
if mount.name == "away":
    link.symlink_to(unit)
other = root / "other"
other.mkdir()
(other / "SKILL.md").write_text("---\\nname: other\\ndescription: Does other.\\n---\\nDo.\\n")
(other / "toolkit.yaml").write_text("name: other\\n")
now = time.time
time.time = lambda: now() + 60  # so that the files are old enough for their stamps to count
with Satchel(**{root.name: [root]}) as app:
    def entries():
        found = getattr(app.catalog, root.name)
        return {name: found[name].state for name in ("notes", "other") if name in found}

    good = {"notes": "ok", "other": "ok"}
    assert entries() == good, app.catalog.diagnostics
    run("umount", str(mount))
    for _ in range(3):
        app.refresh()
        assert entries() == good | {"notes": "stale"}, (entries(), app.catalog.diagnostics)
        assert "source-unmounted" in {it.code for it in app.catalog.diagnostics}
    run("mount", "-t", "tmpfs", "none", str(mount))
    write()
    app.refresh()
    assert entries() == good, app.catalog.diagnostics
    app.refresh()
    run("umount", str(mount))
    app.refresh()
    assert entries() == good | {"notes": "stale"}, entries()
    (mount / "something").touch() if mount.parent == root else link.unlink()
    app.refresh()
    assert entries() == {"other": "ok"}, entries()
"""


@pytest.mark.parametrize(
    ("mount", "kind"),
    [
        ("skills/team", "skills"),
        ("skills/notes", "skills"),
        ("away", "skills"),
        ("plugins/notes", "plugins"),
    ],
)
def test_what_was_on_a_real_mount_below_a_root_or_behind_a_link_stays(tmp_path, mount, kind):
    if not may_mount():
        pytest.skip("this user cannot mount")
    command = ["unshare", "-m", sys.executable, "-c", BELOW, str(tmp_path), mount, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("below", [".", "skills"])
def test_a_real_mount_that_goes_and_comes_back(tmp_path, below):
    if not may_mount():
        pytest.skip("this user cannot mount")
    mount = tmp_path / "mount"
    mount.mkdir()
    command = ["unshare", "-m", sys.executable, "-c", REAL, str(mount), below]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
