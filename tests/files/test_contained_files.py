import os
import socket
from contextlib import suppress

import pytest

from satchel.builtin.file_tools import insert_text_file, view_text_file, write_text_file
from satchel.errors import ToolError
from satchel.files import contained_files
from satchel.files.contained_files import open_contained

SECRET = "do not tell"


@pytest.fixture
def base(tmp_path):
    """The folder, beside one that nobody may reach, and with links of every kind."""
    folder, outside = tmp_path / "base", tmp_path / "outside"
    for each in (folder, outside, folder / "inner"):
        each.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (folder / "inner/a.txt").write_text("mine\n")
    (folder / "file-out").symlink_to(outside / "secret.txt")
    (folder / "folder-out").symlink_to(outside)
    (folder / "relative-out").symlink_to("../outside/secret.txt")
    (folder / "dangling-out").symlink_to(outside / "new.txt")
    (folder / "file-in").symlink_to("inner/a.txt")
    (folder / "folder-in").symlink_to(folder / "inner")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.fixture(params=["walking", "by the whole path"])
def way(request, monkeypatch):
    """Both ways of opening: the safe one, and the one for systems that lack it."""
    if request.param != "walking":
        monkeypatch.setattr(contained_files, "HAS_HANDLES", False)


def uses(base, path):
    yield lambda: view_text_file(path, base_directory=base)
    yield lambda: write_text_file(path, "x", base_directory=base)
    yield lambda: write_text_file(path, "x", [1, 1], base_directory=base)
    yield lambda: insert_text_file(path, "x", 1, base_directory=base)


def assert_refused(base, path, message):
    before = {file: file.read_text() for file in (base.parent / "outside").iterdir()}
    for use in uses(base, path):
        with pytest.raises(ToolError) as problem:
            use()
        assert message in str(problem.value)
        assert str(base.parent) not in str(problem.value).replace(repr(path), "")
        assert len(str(problem.value)) < 400
    assert {file: file.read_text() for file in (base.parent / "outside").iterdir()} == before


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "../outside/secret.txt", "inner/../../outside/secret.txt", ".."),
        *("file-out", "relative-out", "dangling-out", "folder-out/secret.txt", "folder-out/new"),
        *("folder-in/../../outside/secret.txt", "/proc/self/cwd/x", "/dev/stdin", "//etc/passwd"),
        *("~", "~/.ssh/id_rsa", "~root/x", "C:\\Windows\\win.ini", "c:/x", "C:x", "\\\\host\\a\\b"),
        *("../base-2/x", "folder-out/../outside/secret.txt"),
    ],
)
def test_a_path_that_leads_out_is_refused(base, way, path):
    assert_refused(base, path, "is not inside the working folder")


@pytest.mark.parametrize("path", ["", "a\0b", "\0", "a\ud800", "x" * 5000, "a/" * 400_000])
def test_what_is_no_path_is_refused(base, way, path):
    assert_refused(base, path, "is not a path")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        *((path, "is a folder") for path in (".", "inner", "inner/", "folder-in", "inner/..")),
        ("inner/a.txt/b", "is not a folder"),
        ("loop", "use another path"),
        ("x" * 300, "is too long"),
    ],
)
def test_a_path_that_is_no_file_is_refused_in_words_that_help(base, path, message):
    assert_refused(base, path, message)


def test_an_absolute_path_outside_is_refused_even_if_it_begins_like_the_folder(base):
    (base.parent / "base-2").mkdir()
    (base.parent / "base-2/x").touch()
    assert_refused(base, f"{base}-2/x", "is not inside")
    assert_refused(base, f"{base.parent}/outside/secret.txt", "is not inside")


@pytest.mark.parametrize(
    "path", ["inner/a.txt", "file-in", "folder-in/a.txt", "./inner//a.txt", "inner/../inner/a.txt"]
)
def test_paths_and_links_that_stay_inside_are_followed(base, way, path):
    for use in uses(base, path):
        use()
    assert (base / "inner/a.txt").read_text() == "x\nx"
    assert (base / "file-in").is_symlink()


def test_an_absolute_path_inside_is_fine_also_when_the_folder_is_reached_by_a_link(base):
    by_link = base.parent / "link"
    by_link.symlink_to(base)
    for each in (base, by_link):
        assert view_text_file(f"{each}/inner/a.txt", base_directory=by_link) == "1\tmine"


def test_a_path_may_start_at_a_folder_inside_and_lead_to_all_of_the_base(base, way):
    (base / "b.txt").write_text("yours")
    for start in ("inner", str(base / "inner"), "folder-in"):
        with open_contained(base, "a.txt", start=start) as file:
            assert (file.read(100), file.path) == (b"mine\n", str(base / "inner/a.txt"))
        with open_contained(base, "../b.txt", start=start) as file:
            assert file.read(100) == b"yours"


@pytest.mark.parametrize("start", ["..", "../outside", "folder-out", "/etc"])
def test_a_start_that_lies_outside_lets_nothing_out(base, way, start):
    with (
        pytest.raises(ToolError, match=r"^'secret.txt' is not inside the app; use"),
        open_contained(base, "secret.txt", start=start, noun="the app"),
    ):
        pass


def test_a_fifo_is_refused_without_waiting_for_its_other_end(base):
    os.mkfifo(base / "fifo")
    assert_refused(base, "fifo", "is not a regular file")


def test_a_socket_is_refused(base, monkeypatch):
    monkeypatch.chdir(base)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert_refused(base, "socket", "is not a regular file")


def test_a_folder_that_is_missing_is_reported_without_its_path(tmp_path):
    for use in uses(tmp_path / "none", "a.txt"):
        with pytest.raises(ToolError, match=r"^The working folder cannot be opened; tell the user"):
            use()


@pytest.mark.parametrize("swapped", ["inner", "inner/a.txt"])
def test_a_link_that_is_put_in_place_after_the_check_is_not_followed(base, monkeypatch, swapped):
    look = contained_files._parts

    def then_swap(*args):
        parts = look(*args)
        (base / swapped).rename(base / "away")
        target = "outside" if swapped == "inner" else "outside/secret.txt"
        (base / swapped).symlink_to(base.parent / target)
        return parts

    monkeypatch.setattr(contained_files, "_parts", then_swap)
    with pytest.raises(ToolError):
        view_text_file("inner/a.txt", base_directory=base)


def test_a_link_that_is_put_in_place_before_the_write_is_replaced_or_refused(base):
    secret = base.parent / "outside/secret.txt"
    with open_contained(base, "inner/a.txt") as file:
        (base / "inner/a.txt").unlink()
        (base / "inner/a.txt").symlink_to(secret)
        with pytest.raises(ToolError, match="not a regular file"):
            file.write(b"x")
    assert secret.read_text() == SECRET


def test_links_swapped_all_the_time_let_nothing_out(base, swapping):
    (base.parent / "outside/a.txt").write_text(SECRET)
    view, _, replace, insert = uses(base, "inner/a.txt")  # the other one would make the folder
    seen = set()
    with swapping(base / "inner", base.parent / "outside"):
        for _ in range(1000):
            for use in (view, replace, insert):
                try:
                    seen.add(use())
                except ToolError as problem:
                    seen.add(str(problem))
    assert not [text for text in seen if SECRET in text]
    assert (base.parent / "outside/a.txt").read_text() == SECRET
    assert sorted(os.listdir(base.parent / "outside")) == ["a.txt", "secret.txt"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list them")
def test_nothing_stays_open(base):
    before = len(os.listdir("/proc/self/fd"))
    for path in ("inner/a.txt", "file-out", "inner", "none/at/all", "inner/a.txt/b", "loop"):
        for use in uses(base, path):
            with suppress(ToolError):
                use()
    assert len(os.listdir("/proc/self/fd")) == before
