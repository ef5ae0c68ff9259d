"""A copy out of a source has what its links led to, and nothing from outside of the source."""

import os

import pytest

from satchel.errors import SatchelError
from satchel.setup import source_copies
from satchel.setup.source_copies import CopyBudget, CopyLimitError, SourceCopy


@pytest.fixture
def source(tmp_path):
    """A source with a folder to copy, `unit`, and one beside it, `shared`."""
    for name in ("source/unit", "source/shared", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "source/unit/own").write_text("own")
    (tmp_path / "source/shared/code").write_text("shared")
    (tmp_path / "outside/key").write_text("secret")
    return tmp_path / "source"


@pytest.fixture
def copy(source, tmp_path):
    """Copy the unit; return its files, and what was left out with the reason."""

    def copy(*only: str) -> tuple[dict[str, str], dict[str, str]]:
        target = tmp_path / os.urandom(4).hex()
        content = SourceCopy(str(source / "unit"), str(target), str(source), CopyBudget())
        content.write(only)
        assert not any(path.is_symlink() for path in target.rglob("*"))
        paths = (path for path in target.rglob("*") if path.is_file())
        files = {path.relative_to(target).as_posix(): path.read_text() for path in paths}
        left_out = {name: why for why, names in content.left_out.items() for name in names}
        return files, left_out

    return copy


def test_files_and_folders_behind_links_are_copied(source, copy):
    (source / "unit/file").symlink_to("../shared/code")
    (source / "unit/folder").symlink_to("../shared")
    (source / "unit/inside").symlink_to("own")
    (source / "shared/back").symlink_to("../unit/own")
    assert copy() == (
        {"own": "own", "file": "shared", "folder/code": "shared", "folder/back": "own",
         "inside": "own"},
        {},
    )  # fmt: skip


OUT, CIRCLE, NOTHING = "leads out of the source", "leads in a circle", "leads to nothing"
SECRET, NEVER = "such files usually hold secrets", "never copied, such as .git"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../../outside/key", OUT), ("/etc/passwd", OUT), ("../../outside", OUT),
        ("../../gone", OUT), ("nothing", NOTHING), ("link", CIRCLE),
        (".", CIRCLE), ("..", CIRCLE), ("../..", OUT),
    ],
)  # fmt: skip
def test_a_link_that_is_left_out_has_a_reason(source, copy, target, reason):
    (source / "unit/link").symlink_to(target)
    assert copy() == ({"own": "own"}, {"link": reason})


@pytest.mark.parametrize(
    ("name", "reason"),
    [(".env", SECRET), ("prod.env", SECRET), (".git/config", NEVER), ("node_modules/x", NEVER)],
)
def test_a_link_shows_no_secret_and_nothing_that_is_never_copied(source, copy, name, reason):
    (source / name).parent.mkdir(exist_ok=True)
    (source / name).write_text("token")
    (source / "unit/notes.md").symlink_to(f"../{name}")
    assert copy() == ({"own": "own"}, {"notes.md": reason})


def test_a_link_behind_a_link_is_left_out_by_its_place_in_the_copy(source, copy):
    (source / "unit/folder").symlink_to("../shared")
    (source / "shared/out").symlink_to("../../outside/key")
    assert copy()[1] == {"folder/out": OUT}


def test_folders_with_links_to_each_other_end(source, copy):
    (source / "unit/a").symlink_to("../shared")
    (source / "shared/b").symlink_to("../unit")
    assert copy() == ({"own": "own", "a/code": "shared"}, {"a/b": CIRCLE})


def test_the_files_of_a_mounted_folder_are_copied(source, copy):
    (source / "unit/..2026").mkdir()
    (source / "unit/..2026/mounted").write_text("here")
    (source / "unit/..data").symlink_to("..2026")
    (source / "unit/mounted").symlink_to("..data/mounted")
    assert copy() == ({"own": "own", "mounted": "here"}, {})


def test_only_the_wanted_paths_are_copied_with_all_that_they_link_to(source, copy):
    (source / "unit/skills").mkdir()
    (source / "unit/skills/licence").symlink_to("../own")
    (source / "unit/skills/lib").symlink_to("../../shared")
    assert copy("skills") == ({"skills/licence": "own", "skills/lib/code": "shared"}, {})


def test_links_that_multiply_files_and_folders_end_at_a_limit(source, copy, monkeypatch):
    monkeypatch.setattr(source_copies, "MOST_FILES", 1000)
    for number in range(20):
        folder = source / f"{number}"
        folder.mkdir()
        for name in "ab":
            (folder / name).symlink_to(f"../{number + 1}")
    (source / "20").mkdir()
    (source / "unit/bomb").symlink_to("../0")
    with pytest.raises(SatchelError, match="more than 1000 files"):
        copy()


def test_the_bytes_behind_links_have_a_limit(source, copy, monkeypatch):
    monkeypatch.setattr(source_copies, "MOST_BYTES", 20)
    for name in "abcd":
        (source / "unit" / name).symlink_to("../shared/code")
    with pytest.raises(SatchelError, match="more than 50000 files or 0 MiB"):
        copy()


def test_links_that_lead_nowhere_count_as_files(source, copy, monkeypatch):
    monkeypatch.setattr(source_copies, "MOST_FILES", 100)
    for number in range(200):
        (source / f"unit/dead{number}").symlink_to("nothing")
    with pytest.raises(SatchelError, match="more than 100 files"):
        copy()


def test_an_environment_of_python_and_deep_folders_are_left_out(source, copy):
    deep = "unit/" + "/".join("d" * 40)
    for folder in (deep, "unit/env", "shared/env"):
        (source / folder).mkdir(parents=True)
        (source / folder / "pyvenv.cfg").write_text("")
    (source / "unit/lib").symlink_to("../shared")
    files, left_out = copy()
    assert files == {"own": "own", "lib/code": "shared"}
    environment, deep = "a virtual environment of Python", "more than 20 folders deep"
    assert left_out == {"env": environment, "lib/env": environment, "/".join("d" * 21): deep}


def test_a_folder_behind_a_link_brings_no_secret(source, copy):
    (source / "shared/.env").write_text("token")
    (source / "unit/lib").symlink_to("../shared")
    assert copy() == ({"own": "own", "lib/code": "shared"}, {"lib/.env": SECRET})


def test_a_hidden_file_behind_a_link_is_named_first(source, tmp_path):
    (source / ".npmrc").write_text("token")
    for number in range(30):
        (source / f"unit/a{number}").symlink_to("../shared/code")
    (source / "unit/f").symlink_to("../.npmrc")
    content = SourceCopy(str(source / "unit"), str(tmp_path / "copy"), str(source), CopyBudget())
    content.write()
    assert content.from_elsewhere[:2] == ["f (.npmrc)", "a0 (shared/code)"]


def test_a_folder_outside_of_the_source_is_refused(source, tmp_path):
    (source / "out").symlink_to("../outside")
    with pytest.raises(SatchelError, match="leads out of the source"):
        SourceCopy(str(source / "out"), str(tmp_path / "copy"), str(source), CopyBudget()).write()


def test_what_is_no_file_is_refused(source, copy):
    os.mkfifo(source / "unit/pipe")
    with pytest.raises(SatchelError, match="is not a regular file"):
        copy()


def test_all_copies_out_of_a_source_have_one_limit(source, tmp_path, monkeypatch):
    monkeypatch.setattr(source_copies, "MOST_FILES", 10)
    budget = CopyBudget()
    for number in range(20):
        (source / f"shared/{number}").write_text("")
    (source / "unit/lib").symlink_to("../shared/1")
    for name in "abcde":
        SourceCopy(str(source / "unit"), str(tmp_path / name), str(source), budget).write()
    for name in "fg":  # what failed counts as well
        with pytest.raises(CopyLimitError, match="more than 10 files") as error:
            SourceCopy(str(source / "unit"), str(tmp_path / name), str(source), budget).write()
        assert (error.value.where, "--only" in error.value.fix) == (str(source / "unit"), True)
    assert not (tmp_path / "g/own").exists()
