"""Putting folders in place: whole, or as it was before."""

import os
import stat

import pytest

from satchel.errors import SatchelError
from satchel.setup.folder_placement import (
    climbs_out,
    placed,
    removed,
    repair_placement,
    staged_copy,
    staged_link,
)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    (folder / "code").mkdir(parents=True)
    (folder / "toolkit.yaml").write_text("new")
    (folder / "code/run.sh").write_text("x")
    (folder / "code/run.sh").chmod(0o755)
    return folder


def names(folder):
    return sorted(os.listdir(folder))


def test_a_copy_is_whole_before_it_has_its_name(source, home):
    staged = staged_copy(str(source), str(home / "demo"))
    (name,) = names(home)
    assert name.startswith(".demo.")
    with placed(staged, str(home / "demo")):
        pass
    assert names(home) == ["demo"]
    assert names(home / "demo") == ["code", "toolkit.yaml"]
    assert stat.S_IMODE((home / "demo/code/run.sh").stat().st_mode) == 0o755


def test_what_belongs_to_tools_is_not_copied(source, home):
    for name in (".git", "__pycache__", ".venv", "code/node_modules"):
        (source / name).mkdir()
        (source / name / "x").write_text("")
    (source / ".hidden").write_text("")
    copy = staged_copy(str(source), str(home / "demo"))
    assert names(copy) == [".hidden", "code", "toolkit.yaml"]
    assert names(f"{copy}/code") == ["run.sh"]


def test_a_link_inside_stays_one(source, home):
    (source / "code/up").symlink_to("../toolkit.yaml")
    copy = staged_copy(str(source), str(home / "demo"))
    assert os.readlink(f"{copy}/code/up") == "../toolkit.yaml"


def test_files_that_are_given_replace_those_of_the_source(source, home):
    (source / "code/linked").symlink_to("run.sh")
    files = {"toolkit.yaml": "given", "code/linked": "given", "new/deep/file": "given"}
    copy = staged_copy(str(source), str(home / "demo"), files)
    for name in files:
        with open(f"{copy}/{name}") as file:
            assert file.read() == "given"
    with open(f"{copy}/code/run.sh") as file:
        assert file.read() == "x"
    assert (source / "toolkit.yaml").read_text() == "new"


@pytest.mark.parametrize(
    ("link", "depth", "is_out"),
    [
        ("../a", 1, False),
        ("../../a", 1, True),
        ("./../a", 0, True),
        (".//../../a", 1, True),
        ("a/../b", 0, False),
        ("a/../../b", 0, True),
        ("/a", 3, True),
        ("...", 0, False),
    ],
)
def test_the_text_of_a_link_says_whether_it_leaves(link, depth, is_out):
    assert climbs_out(link, depth) is is_out


LEAVING = ["/etc/passwd", "../../x", "a/../../../x", "{source}/code", "../../source/toolkit.yaml"]


@pytest.mark.parametrize("target", LEAVING)
def test_a_link_that_leaves_is_refused_and_nothing_stays(source, home, target):
    (source / "code/bad").symlink_to(target.replace("{source}", str(source)))
    with pytest.raises(SatchelError, match="is a link that leaves"):
        staged_copy(str(source), str(home / "demo"))
    assert names(home) == []


def test_what_is_no_file_is_refused(source, home):
    os.mkfifo(source / "pipe")
    with pytest.raises(SatchelError, match="is not a regular file"):
        staged_copy(str(source), str(home / "demo"))
    assert names(home) == []


def test_a_folder_that_holds_its_own_place_is_refused(tmp_path):
    with pytest.raises(SatchelError, match="contains the folder"):
        staged_copy(str(tmp_path), str(tmp_path / "a/b/demo"))


def test_after_an_error_all_is_as_it_was(source, home):
    (home / "demo").mkdir(parents=True)
    (home / "demo/old").write_text("")
    with (
        pytest.raises(ZeroDivisionError),
        placed(staged_copy(str(source), str(home / "demo")), str(home / "demo")),
    ):
        assert "toolkit.yaml" in names(home / "demo")
        _ = 1 / 0
    assert (names(home), names(home / "demo")) == (["demo"], ["old"])


def test_what_cannot_take_the_place_leaves_what_was_there(home):
    (home / "demo").mkdir(parents=True)
    with (
        pytest.raises(SatchelError, match="cannot change"),
        placed("gone", str(home / "demo")),
    ):
        pytest.fail("it took the place")
    assert names(home) == ["demo"]


def test_what_was_new_is_gone_after_an_error(source, home):
    staged = staged_link(str(source), str(home / "demo"))
    with pytest.raises(ZeroDivisionError), placed(staged, str(home / "demo")):
        assert os.path.realpath(home / "demo") == str(source)
        _ = 1 / 0
    assert names(home) == []
    assert names(source) == ["code", "toolkit.yaml"]


@pytest.mark.parametrize("before", ["link", "folder"])
@pytest.mark.parametrize("after", ["link", "folder"])
def test_folders_and_links_take_each_others_place(source, home, before, after):
    for kind in (before, after):
        stage = staged_link if kind == "link" else staged_copy
        with placed(stage(str(source), str(home / "demo")), str(home / "demo")):
            pass
    assert (home / "demo").is_symlink() is (after == "link")
    assert names(home) == ["demo"]
    assert names(source) == ["code", "toolkit.yaml"]


def test_removing_a_link_leaves_what_it_leads_to(source, home):
    home.mkdir()
    (home / "demo").symlink_to(source)
    assert removed(str(home / "demo"))
    assert not removed(str(home / "demo"))
    assert names(source) == ["code", "toolkit.yaml"]


def test_where_nothing_is_there_is_nothing_to_repair(home):
    assert repair_placement(str(home / "missing/demo")) == []


def test_removing_a_folder_leaves_what_its_links_lead_to(home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("mine")
    outside.chmod(0o555)
    (home / "demo/code").mkdir(parents=True)
    for name in ("linked", "code/linked"):
        (home / "demo" / name).symlink_to(outside)
    assert removed(str(home / "demo"))
    assert names(home) == []
    assert (names(outside), stat.S_IMODE(outside.stat().st_mode)) == (["kept"], 0o555)


def test_a_folder_that_cannot_be_made_is_reported(source, home):
    home.write_text("a file")
    for stage in (staged_copy, staged_link):
        with pytest.raises(SatchelError, match="cannot change"):
            stage(str(source), str(home / "demo"))


def test_what_another_process_put_there_meanwhile_stays(source, home):
    (home / "demo").mkdir(parents=True)
    with (
        pytest.raises(ZeroDivisionError),
        placed(staged_copy(str(source), str(home / "demo")), str(home / "demo")),
    ):
        (home / "other").mkdir()
        (home / "other/theirs").touch()
        with placed(str(home / "other"), str(home / "demo")):
            pass
        _ = 1 / 0
    assert (names(home), names(home / "demo")) == (["demo"], ["theirs"])


def test_the_old_content_is_kept_if_another_process_takes_the_place(source, home, monkeypatch):
    (home / "demo").mkdir(parents=True)
    (home / "demo/old").touch()
    staged = staged_copy(str(source), str(home / "demo"))
    real = os.rename

    def rename(here, there):
        if (here, there) == (staged, str(home / "demo")):
            (home / "demo").mkdir()
            (home / "demo/theirs").touch()
        real(here, there)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(SatchelError, match="cannot change"), placed(staged, str(home / "demo")):
        pytest.fail("it took the place")
    backup, target = names(home)
    assert backup.startswith(".demo.old-")
    assert (names(home / backup), names(home / target)) == (["old"], ["theirs"])


@pytest.mark.parametrize("at", [1, 2])
def test_who_is_interrupted_while_it_takes_the_place_gets_the_old_one_back(
    source, home, monkeypatch, at
):
    (home / "demo").mkdir(parents=True)
    staged = staged_copy(str(source), str(home / "demo"))
    real, done = os.rename, []

    def interrupted(here, there):
        real(here, there)
        done.append(there)
        if len(done) == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), placed(staged, str(home / "demo")):
        pytest.fail("it took the place")
    assert names(home / "demo") == []
    assert names(home) == ["demo"]


def test_folders_in_folders_are_copied_and_removed_however_deep_they_are(source, home):
    home.mkdir()
    at, here = source / "deep", os.getcwd()
    at.mkdir()
    try:
        os.chdir(at)
        for _ in range(1500):
            os.mkdir("a")
            os.chdir("a")
    finally:
        os.chdir(here)
    copy = staged_copy(str(source), str(home / "demo"))
    assert os.path.isdir(os.path.join(copy, "deep", *["a"] * 1500))
    for path in (copy, str(source)):
        assert removed(path)
    assert names(home) == []
    assert not source.exists()


def test_a_folder_that_no_one_may_change_is_removed_all_the_same(home):
    (home / "demo/a/b").mkdir(parents=True)
    (home / "demo/a/b/c").touch()
    for folder in ("demo/a/b", "demo/a", "demo"):
        (home / folder).chmod(0o500)
    assert removed(str(home / "demo"))
    assert names(home) == []


def test_a_file_that_cannot_be_read_is_reported_as_that(source, home, monkeypatch):
    import builtins

    real = open

    def guarded(path, *arguments, **options):
        if str(path).endswith("run.sh"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(builtins, "open", guarded)
    with pytest.raises(SatchelError, match=r"run.sh: cannot read: Permission denied"):
        staged_copy(str(source), str(home / "demo"))
    assert names(home) == []
