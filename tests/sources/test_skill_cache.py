"""The cache on disk: a warm start equals a cold one, also if the cache is damaged."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel import Satchel, Settings
from satchel.files import file_reader
from satchel.files.open_folder import OpenFolder
from satchel.files.state_files import cache_path

COUNT = 25
TEXT = "---\nname: s{}\ndescription: Does {}.\nlicense: MIT\n---\nDo it.\n"
COLD = Settings(cache=False)


@pytest.fixture(name="root")
def _root(tmp_path):
    root = tmp_path / "skills"
    for number in range(COUNT):
        folder = root / f"s{number}"
        (folder / "refs").mkdir(parents=True)
        (folder / "SKILL.md").write_text(TEXT.format(number, number))
        (folder / "refs" / "a.md").write_text("A.")
    (root / "s1" / "SKILL.md").write_text("---\nname: s1\ndescription: a: b\nodd: [x]\n---\nB.\n")
    (root / "s2" / "SKILL.md").write_text("no front matter")
    return root


@pytest.fixture
def later(monkeypatch):
    """Let all files be older than two seconds."""
    now = time.time
    monkeypatch.setattr(file_reader.time, "time", lambda: now() + 10)


def content(app):
    """Return all that a load gave, without the number of the generation."""
    bodies = [entry.manifest and entry.manifest.body for entry in app.catalog.all_skills]
    return app.catalog.parts, bodies


def same_as_cold(root):
    with Satchel(skills=[root]) as warm, Satchel(skills=[root], settings=COLD) as cold:
        assert content(warm) == content(cold)
        assert warm.session().prompt() == cold.session().prompt()
    return True


def reads(monkeypatch, root):
    """Load, and return the SKILL.md files that were read."""
    seen, read = [], OpenFolder.read
    with monkeypatch.context() as patch:
        patch.setattr(
            OpenFolder,
            "read",
            lambda folder, *rest: (seen.append((folder.path, *rest)), read(folder, *rest))[1],
        )
        Satchel(skills=[root]).close()
    return sorted({Path(path).name for path, name, _ in seen if name == "SKILL.md"})


@pytest.mark.usefixtures("later")
def test_a_warm_start_reads_only_what_changed(root, monkeypatch):
    assert len(reads(monkeypatch, root)) == COUNT
    assert reads(monkeypatch, root) == ["s2"]  # what is broken is not kept
    (root / "s7" / "SKILL.md").write_text(TEXT.format(7, "more"))
    assert reads(monkeypatch, root) == ["s2", "s7"]
    assert reads(monkeypatch, root) == ["s2"]
    assert same_as_cold(root)


def test_a_young_file_is_read_again(root, monkeypatch):
    reads(monkeypatch, root)
    assert len(reads(monkeypatch, root)) == COUNT


def test_a_file_with_its_old_time_is_read_again(root, monkeypatch, later):
    reads(monkeypatch, root)
    path = root / "s3" / "SKILL.md"
    before = path.stat()
    path.write_text(TEXT.format(3, 4))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reads(monkeypatch, root) == ["s2", "s3"]


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["write", "break", "delete", "add file", "move", "link", "unreadable"]),
        st.integers(0, COUNT - 1),
    ),
    max_size=6,
)


def edit(root, kind, number):
    folder, path = root / f"s{number}", root / f"s{number}" / "SKILL.md"
    if not path.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        path.write_text(TEXT.format(number, "again"))
    elif kind == "write":
        path.write_text(TEXT.format(number, "other"))
    elif kind == "break":
        path.write_text("---\n[")
    elif kind == "delete":
        shutil.rmtree(folder)
    elif kind == "add file":
        (folder / "more.md").write_text("More.")
    elif kind == "move":
        folder.rename(root / f"t{number}-{time.time_ns()}")
    elif kind == "link":
        (folder / f"l{time.time_ns()}").symlink_to("SKILL.md")
    else:
        path.unlink()
        path.mkdir()


@settings(max_examples=12)
@given(EDITS, st.booleans())
def test_after_any_edits_warm_equals_cold(tmp_path_factory, edits, is_old):
    base = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SATCHEL_CACHE_DIR", str(base / "cache"))
        if is_old:
            now = time.time
            patch.setattr(file_reader.time, "time", lambda: now() + 10)
        root = base / "skills"
        for number in range(COUNT):
            (root / f"s{number}").mkdir(parents=True)
            (root / f"s{number}" / "SKILL.md").write_text(TEXT.format(number, number))
        assert same_as_cold(root)
        for kind, number in edits:
            edit(root, kind, number)
            assert same_as_cold(root)


def test_real_skills_are_the_same_warm_and_cold(shared, later):
    for _ in range(2):
        assert same_as_cold(shared / "corpus")


# ---- what may happen to the cache ----------------------------------------------------------------


def damage(kind, path):
    if kind == "deleted":
        path.unlink()
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:5_000])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "not a database":
        path.write_bytes(b"x" * 10_000)
    elif kind == "other table":
        path.unlink()
        with sqlite3.connect(path) as database:
            database.execute("create table skills (a)")
        database.close()
    elif kind in {"data", "rest", "body"}:
        with sqlite3.connect(path) as database:
            database.execute(f"update skills set {kind} = cast('{{}}' as blob)")
        database.close()
    elif kind == "a folder":
        path.unlink()
        path.mkdir()
    elif kind == "writable by others":
        path.chmod(0o666)
    elif kind == "locked":
        database = sqlite3.connect(path)
        database.execute("begin exclusive")
        return database
    return None


KINDS = [
    *("deleted", "truncated", "empty", "not a database", "other table", "data", "a folder"),
    *("body", "rest", "writable by others", "locked"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("later")
def test_a_damaged_cache_is_as_good_as_none_and_is_made_again(root, kind, monkeypatch):
    assert same_as_cold(root)
    path = Path(cache_path("skills.sqlite3"))
    held = damage(kind, path)
    (root / "s5" / "SKILL.md").write_text(TEXT.format(5, "more"))
    assert same_as_cold(root)
    if held is not None:
        held.close()
    assert same_as_cold(root)
    if kind != "a folder":  # that one is the user's to remove
        assert reads(monkeypatch, root) == ["s2"], "it works again"


@pytest.mark.parametrize("column", ["key", "data", "rest"])
@pytest.mark.usefixtures("later")
def test_no_part_of_a_row_may_be_changed(root, column, monkeypatch):
    assert same_as_cold(root)
    with sqlite3.connect(cache_path("skills.sqlite3")) as database:
        old, new = {"key": ("s7", "x7"), "data": ("Does 7", "Does 9"), "rest": ("MIT", "BSD")}[
            column
        ]
        rows = database.execute(f"update skills set {column} = replace({column}, '{old}', '{new}')")
        assert rows.rowcount
    database.close()
    assert same_as_cold(root)
    assert reads(monkeypatch, root) == ["s2"], "it works again"


@pytest.mark.usefixtures("later")
def test_the_bodies_of_a_warm_start_are_compressed(root):
    text = TEXT.format(3, 3) + "Do this, then that. " * 500
    (root / "s3" / "SKILL.md").write_text(text)
    for _ in range(2):
        with Satchel(skills=[root]) as app:
            manifest = app.catalog.skills["s3"].manifest
            assert len(vars(manifest)["body"].data) < 500
            assert manifest.body == text.split("---\n")[2]


@pytest.mark.usefixtures("later")
def test_what_others_could_write_is_not_trusted(root):
    assert same_as_cold(root)
    path = Path(cache_path("skills.sqlite3"))
    assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(path) as database:
        database.execute("update skills set body = ?", (b"stolen",))
    database.close()
    path.chmod(0o622)
    assert same_as_cold(root)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_costs_only_the_cache(root):
    code = f"""
import resource, sys
from satchel import Satchel
sys.dont_write_bytecode = True  # else others find cut files
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
print(len(Satchel(skills=[{str(root)!r}]).catalog.skills))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    )
    assert (done.stdout, done.returncode) == (f"{COUNT - 1}\n", 0), done.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096
    assert same_as_cold(root)


def test_a_folder_that_cannot_be_made_costs_only_the_cache(root, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SATCHEL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert same_as_cold(root)
    assert same_as_cold(root)


LOADS = """
import sys, time
from satchel import Satchel
from satchel.files import file_reader
from satchel.files.open_folder import OpenFolder
now = time.time
file_reader.time.time = lambda: now() + 10
print("begin", flush=True)
for number in range(int(sys.argv[2])):
    with open(sys.argv[1] + f"/s{number % 9 + 3}/SKILL.md", "a") as file:
        file.write("More.\\n")
    Satchel(skills=[sys.argv[1]]).close()
"""


def test_killed_processes_leave_a_cache_that_works(root):
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", LOADS, str(root), "100000"], stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"begin\n"
        path = Path(cache_path("skills.sqlite3"))
        while not path.exists():
            time.sleep(0.001)
        process.kill()
        process.wait()
        process.stdout.close()
        assert same_as_cold(root)


def test_several_processes_share_it(root):
    processes = [
        subprocess.Popen([sys.executable, "-c", LOADS, str(root), "10"], stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert same_as_cold(root)


# ---- when it is not used -------------------------------------------------------------------------


def test_a_setting_switches_it_off(root):
    Satchel(skills=[root], settings=COLD).close()
    assert not Path(cache_path("skills.sqlite3")).exists()


def test_a_few_skills_need_none(root):
    for number in range(10, COUNT):
        shutil.rmtree(root / f"s{number}")
    Satchel(skills=[root]).close()
    assert not Path(cache_path("skills.sqlite3")).exists()
