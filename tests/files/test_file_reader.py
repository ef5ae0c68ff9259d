import os
import socket
import threading
from dataclasses import replace

import pytest

from satchel.files.file_reader import (
    Stamp,
    UnitFile,
    UnreadableFileError,
    digest_of,
    is_inside,
    is_utf8,
    read_regular,
)

# ---- one file -----------------------------------------------------------------------------


def test_a_regular_file_is_read_up_to_one_byte_past_the_limit(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert read_regular(str(tmp_path / "f"), 5)[0] == b"12345"
    assert read_regular(str(tmp_path / "f"), 3)[0] == b"1234"


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "device", "missing", "nul", "loop"])
def test_whatever_is_no_regular_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "thing"
    server = socket.socket(socket.AF_UNIX)
    {
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "socket": lambda: server.bind(str(path)),
        "device": lambda: path.symlink_to("/dev/zero"),
        "missing": lambda: None,
        "nul": lambda: None,
        "loop": lambda: path.symlink_to(path),
    }[kind]()
    caught = []

    def read():
        try:
            read_regular(f"{path}\0" if kind == "nul" else str(path), 10)
        except UnreadableFileError as problem:
            caught.append(problem)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    server.close()
    assert len(caught) == 1


def test_a_file_that_fails_while_it_is_read_is_unreadable():
    # Reading the memory of a process at its first address is refused after it was opened.
    with pytest.raises(UnreadableFileError, match="error"):
        read_regular("/proc/self/mem", 10)


def test_a_digest_names_bytes():
    assert digest_of(b"a") == digest_of(b"a") != digest_of(b"b")


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
    ],
)
def test_inside_means_the_folder_itself_or_below_it(path, root, inside):
    assert is_inside(path, root) is inside


def test_a_name_is_utf8_or_not():
    assert is_utf8("größe")
    assert not is_utf8(os.fsdecode(b"\xff"))


# ---- stamps -------------------------------------------------------------------------------


def test_a_file_is_unchanged_only_if_it_was_settled_when_it_was_read(tmp_path, later):
    path = tmp_path / "f"
    path.write_text("x")
    stamp = Stamp.of(path.stat())
    young = UnitFile(name="f", size=1, digest="", stamp=stamp, settled=stamp.is_settled())
    later(3)
    old = replace(young, settled=stamp.is_settled())
    assert not young.is_unchanged(path.stat())
    assert old.is_unchanged(path.stat())


def test_a_file_from_the_future_is_never_settled(tmp_path, later):
    path = tmp_path / "f"
    path.write_text("x")
    os.utime(path, (9_000_000_000, 9_000_000_000))
    later(100)
    assert not Stamp.of(path.stat()).is_settled()


@pytest.mark.parametrize("change", ["size", "time", "inode"])
def test_another_content_has_another_stamp(tmp_path, later, change):
    later(3)
    path = tmp_path / "f"
    path.write_text("x")
    stamp = Stamp.of(path.stat())
    if change == "size":
        path.write_text("xx")
    elif change == "time":
        os.utime(path, (1, 1))
    else:
        (tmp_path / "g").write_text("y")
        os.utime(tmp_path / "g", ns=(stamp.modified, stamp.modified))
        (tmp_path / "g").replace(path)
    assert Stamp.at(str(path)) != stamp


def test_what_is_missing_has_the_stamp_of_nothing(tmp_path):
    assert Stamp.at(str(tmp_path / "f")) == Stamp()
