import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from satchel.builtin import file_tools
from satchel.builtin.file_tools import insert_text_file, view_text_file, write_text_file
from satchel.errors import ToolError


@pytest.fixture
def base(tmp_path):
    folder = tmp_path / "base"
    folder.mkdir()
    return folder


def view(base, path, ranges=None):
    return view_text_file(path, ranges, base_directory=base)


def write(base, path, content, ranges=None):
    return write_text_file(path, content, ranges, base_directory=base)


def insert(base, path, content, line_number):
    return insert_text_file(path, content, line_number, base_directory=base)


def test_a_file_is_written_viewed_and_edited(base):
    assert write(base, "a.txt", "one\ntwo\nthree\n") == "Wrote 3 lines to 'a.txt'."
    assert view(base, "a.txt", [2, -1]) == "2\ttwo\n3\tthree"
    message = write(base, "a.txt", "zwei", [2, 2])
    assert message == "Replaced lines 2 to 2 of 'a.txt'; it now has 3 lines.\n2\tzwei"
    message = insert(base, "a.txt", "zero", 1)
    assert message == "Inserted 1 line before line 1 of 'a.txt'; it now has 4 lines.\n1\tzero"
    assert view(base, "a.txt") == "1\tzero\n2\tone\n3\tzwei\n4\tthree"


def test_missing_folders_are_made_for_a_new_file_only(base):
    write(base, "new/deep/a.txt", "å")
    assert (base / "new/deep/a.txt").read_bytes() == "å".encode()
    for edit in (
        lambda: write(base, "none/a.txt", "", [1, 1]),
        lambda: insert(base, "no/a", "", 1),
    ):
        with pytest.raises(ToolError, match="does not exist"):
            edit()
    assert sorted(path.name for path in base.iterdir()) == ["new"]


def test_what_is_overwritten_holds_exactly_what_was_sent(base):
    (base / "a.txt").write_bytes(b"\xef\xbb\xbfold\r\n")
    write(base, "a.txt", "new\r\nand\nmixed")
    assert (base / "a.txt").read_bytes() == b"new\r\nand\nmixed"


def test_an_edit_keeps_line_ends_the_mark_and_a_missing_last_end(base):
    (base / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    insert(base, "a.txt", "half\nthird", 2)
    write(base, "a.txt", "last\n", [-1, -1])
    assert (base / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\nhalf\r\nthird\r\ntwo\r\nlast"
    assert view(base, "a.txt").splitlines()[0] == "1\tone"


def test_lines_can_be_added_at_the_end_and_to_an_empty_file(base):
    (base / "a.txt").touch()
    assert view(base, "a.txt") == "[the file is empty]"
    insert(base, "a.txt", "one", 1)
    insert(base, "a.txt", "", 2)
    insert(base, "a.txt", "before the last", -1)
    assert (base / "a.txt").read_text() == "one\nbefore the last\n\n"
    with pytest.raises(ToolError, match="There is no line 5: the file has 3 lines"):
        insert(base, "a.txt", "x", 5)


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640])
def test_a_changed_file_keeps_its_permissions(base, mode):
    write(base, "a.txt", "one\n")
    (base / "a.txt").chmod(mode)
    write(base, "a.txt", "two\n")
    insert(base, "a.txt", "one", 1)
    assert stat.S_IMODE((base / "a.txt").stat().st_mode) == mode


def test_a_read_only_file_stays_as_it_is(base):
    write(base, "a.txt", "one\n")
    (base / "a.txt").chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        write(base, "a.txt", "two\n")
    assert (base / "a.txt").read_text() == "one\n"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(base, monkeypatch):
    write(base, "a.txt", "one\n")

    def full(*_):
        raise OSError(28, "No space left on device", str(base))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ToolError) as problem:
        write(base, "a.txt", "two\n")
    assert str(problem.value) == "'a.txt' cannot be used: No space left on device."
    assert (base / "a.txt").read_text() == "one\n"
    assert len(list(base.iterdir())) == 1


def test_a_reader_never_sees_half_a_file(base):
    texts = {letter * 100_000 for letter in "ab"}
    write(base, "a.txt", "a" * 100_000)
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, base, "a.txt", text) for text in [*texts] * 20]
        seen = {view(base, "a.txt").removeprefix("1\t") for _ in range(50)}
        assert all(item.result() for item in writes)
    assert seen <= texts


def test_edits_of_one_file_at_the_same_time_lose_none(base):
    (base / "a.txt").touch()
    with ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(insert, base, "a.txt", f"line {n}", 1) for n in range(60)]
        assert all(item.result() for item in calls)
    lines = (base / "a.txt").read_text().splitlines()
    assert sorted(lines) == sorted(f"line {n}" for n in range(60))


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"caf\xe9\n", b"\x89PNG\r\n\x1a\n"])
def test_a_file_that_is_no_text_is_refused_and_left_alone(base, data):
    (base / "a.bin").write_bytes(data)
    for use in (lambda: view(base, "a.bin"), lambda: insert(base, "a.bin", "x", 1)):
        with pytest.raises(ToolError, match="is not UTF-8 text"):
            use()
    assert (base / "a.bin").read_bytes() == data


def test_what_is_too_large_is_refused(base):
    (base / "huge.txt").write_bytes(b"x\n" * (file_tools.FILE_LIMIT // 2 + 1))
    with pytest.raises(ToolError, match="too large: more than 5242880 bytes"):
        view(base, "huge.txt", [1, 1])
    with pytest.raises(ToolError, match="too long"):
        write(base, "a.txt", "x" * (file_tools.FILE_LIMIT + 1))
    assert not (base / "a.txt").exists()


def test_of_a_long_text_a_range_can_be_shown(base):
    write(base, "long.txt", "x" * 99 + "\n" + "y\n" * file_tools.VIEW_LIMIT)
    with pytest.raises(ToolError, match="shorter range"):
        view(base, "long.txt")
    assert view(base, "long.txt", [2, 3]) == "2\ty\n3\ty"


def test_a_broken_character_is_refused(base):
    with pytest.raises(ToolError, match="invalid Unicode character"):
        write(base, "a.txt", "a\ud800")
    assert list(base.iterdir()) == []


def test_a_view_shows_what_there_is_of_a_range(base):
    (base / "a.txt").write_text("one\ntwo\nthree\n")
    message = view_text_file("a.txt", [2, 50], base_directory=base)
    assert message == "2\ttwo\n3\tthree\n[the file has 3 lines]"
    message = view_text_file("a.txt", [-50, 1], base_directory=base)
    assert message == "1\tone\n[the file has 3 lines]"
    with pytest.raises(ToolError, match="There is no line 7: the file has 3 lines"):
        view_text_file("a.txt", [7, 9], base_directory=base)


def test_a_change_shows_the_new_lines_with_their_numbers(base):
    (base / "a.txt").write_text("one\ntwo\nthree\n")
    message = write_text_file("a.txt", "2a\n2b", [2, 2], base_directory=base)
    assert message.splitlines()[1:] == ["2\t2a", "3\t2b"]
    message = insert_text_file("a.txt", "\n".join("x" * 30), 1, base_directory=base)
    assert message.splitlines()[1:] == [
        *(f"{number:>2}\tx" for number in range(1, 21)),
        "[10 lines more]",
    ]
    message = write_text_file("a.txt", "", [1, 30], base_directory=base)
    assert message == "Replaced lines 1 to 30 of 'a.txt'; it now has 4 lines."
