import errno
import os
import re

import pytest

from satchel.files import open_folder
from satchel.files.file_reader import UnreadableFileError
from satchel.files.open_folder import OpenFolder, following, inside, read_inside


@pytest.fixture(name="tree", params=["by handle", "by path"])
def _tree(tmp_path, request, monkeypatch):
    """A folder with a file and links, once also as on systems without handles of folders."""
    if request.param == "by path":
        monkeypatch.setattr(open_folder, "HAS_HANDLES", False)
    (tmp_path / "root/a").mkdir(parents=True)
    (tmp_path / "root/a/f").write_text("f")
    (tmp_path / "outside").write_text("secret")
    for name, target in {
        "down": "a",
        "up": "a/..",
        "twice": "down/./../down//f",
        "absolute": tmp_path / "root/a",
        "around": "../root/a/f",
        "out": "../outside",
        "nowhere": "a/missing",
        "loop": "loop",
        "through": "a/f/x",
    }.items():
        (tmp_path / "root" / name).symlink_to(target)
    return tmp_path.resolve()


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "root"),
        ("a", "root/a"),
        ("a/f", "root/a/f"),
        ("down", "root/a"),
        ("up", "root"),
        ("twice", "root/a/f"),
        ("absolute", "root/a"),
        ("absolute/f", "root/a/f"),
        ("around", "root/a/f"),
        ("out", "outside"),
        ("a/../../outside", "outside"),
    ],
)
def test_a_path_leads_where_the_system_says(tree, path, target):
    with following(str(tree / "root")) as root, following(path, root.folder) as place:
        assert place.path == str(tree / target) == os.path.realpath(tree / "root" / path)
        if not place.file:
            names = [entry.name for entry in place.folder.entries()]
            assert sorted(names) == sorted(os.listdir(place.path))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nowhere", errno.ENOENT),
        ("missing/../a", errno.ENOENT),
        ("loop", errno.ELOOP),
        ("through", errno.ENOTDIR),
        ("a/f/..", errno.ENOTDIR),
    ],
)
def test_a_path_that_leads_nowhere_is_an_error(tree, path, code):
    with (
        pytest.raises(OSError, match=re.escape(os.strerror(code))),
        following(str(tree / "root" / path)),
    ):
        pass


def test_the_top_of_the_file_system_is_above_itself(tree):
    with following("/..") as place:
        assert place.path == os.sep
        assert place.folder.entries()


def test_no_link_is_entered_or_read_by_its_name(tree):
    with following(str(tree / "root")) as root:
        with pytest.raises(NotADirectoryError):
            root.folder.enter("down")
        with pytest.raises(UnreadableFileError, match="a link has just replaced it"):
            root.folder.read("around", 10)


def test_a_file_is_read_only_inside(tree):
    root = str(tree / "root")
    assert read_inside(f"{root}/twice", 10, root)[0] == b"f"
    for name, reason in (("out", "leaves the folder"), ("a", "regular"), ("nowhere", "No such")):
        with pytest.raises(UnreadableFileError, match=reason):
            read_inside(f"{root}/{name}", 10, root)
    with pytest.raises(UnreadableFileError), inside(f"{root}\0", root):
        pass


def test_an_open_folder_is_the_same_after_it_was_replaced(tree):
    folder = str(tree / "root/a")
    with following(folder) as place:
        if place.folder.handle is None:
            pytest.skip("needs handles")
        os.rename(folder, f"{folder}.old")
        os.symlink(tree, folder)
        assert place.folder.read("f", 10)[0] == b"f"
        assert [entry.name for entry in place.folder.entries()] == ["f"]


def test_all_handles_are_closed(tree):
    def opened():
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    before = opened()
    for name in ("a", "twice", "out", "loop", "nowhere", "through"):
        try:
            with following(str(tree / "root" / name)):
                assert opened() >= before
        except OSError:
            pass
    assert opened() == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or not os.geteuid(), reason="root enters all")
def test_folders_above_need_not_be_readable(tree):
    folder = tree / "root"
    folder.chmod(0o311)
    try:
        with following(str(folder / "a")) as place:
            assert place.folder.entries()
        with pytest.raises(PermissionError), following(str(folder)):
            pass
    finally:
        folder.chmod(0o755)


def test_a_folder_is_closed_after_its_block(tree):
    with following(str(tree / "root")) as root:
        with root.folder.enter("a") as below:
            assert isinstance(below, OpenFolder)
            assert below.stat("f").st_size == 1
        if below.handle is not None:
            with pytest.raises(OSError, match="Bad file descriptor"):
                below.stat("f")
