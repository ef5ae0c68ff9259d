import os
from dataclasses import replace
from operator import attrgetter

import pytest

from satchel.files.file_reader import Stamp, UnitFile, UnreadableFileError
from satchel.files.open_folder import OpenFolder
from satchel.sources import folder_reader
from satchel.sources.folder_reader import FolderContent, FolderReader, list_folder


@pytest.fixture
def reader(tmp_path):
    def make(most_files=100, largest=1_000, **parts):
        return FolderReader(
            root=str(tmp_path.resolve()), most_files=most_files, largest=largest, **parts
        )

    return make


@pytest.fixture
def unit(tmp_path):
    folder = tmp_path / "unit"
    folder.mkdir()
    return folder


def names(folder):
    return [file.name for file in folder.files]


def codes(folder):
    return [item.code for item in folder.diagnostics]


def test_a_settled_file_is_not_read_again(unit, reader, reads, later):
    (unit / "a").write_text("a")
    later(3)
    first = reader().read(str(unit))
    assert reader().read(str(unit), first) == first
    assert reads == ["a"]


def test_a_file_younger_than_two_seconds_is_read_again(unit, reader, reads):
    (unit / "a").write_text("a")
    first = reader().read(str(unit))
    reader().read(str(unit), first)
    assert reads == ["a", "a"]


def test_only_the_file_that_changed_is_read_again(unit, reader, reads, later):
    for name in "abc":
        (unit / name).write_text(name)
    later(3)
    first = reader().read(str(unit))
    reads.clear()
    (unit / "b").write_text("new")
    second = reader().read(str(unit), first)
    assert reads == ["b"]
    assert second.digest != first.digest


def test_a_second_edit_at_the_same_time_and_of_the_same_length_is_seen(unit, reader):
    path = unit / "a"
    path.write_text("one")
    before = path.stat()
    first = reader().read(str(unit))
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert reader().read(str(unit), first).digest != first.digest


# ---- a unit -------------------------------------------------------------------------------


def test_the_files_of_a_unit_come_in_the_order_of_their_names(unit, reader):
    for name in ("b/x", "a.md", "b.md", "b/sub/y"):
        (unit / name).parent.mkdir(parents=True, exist_ok=True)
        (unit / name).write_text(name)
    read = reader().read(str(unit))
    assert names(read) == sorted(["a.md", "b.md", "b/sub/y", "b/x"])
    assert read.get("b/x").size == 3
    assert read.get("b") is None


def test_the_digest_of_a_unit_names_contents_and_names(unit, reader):
    (unit / "a").write_text("1")
    first = reader().read(str(unit)).digest
    (unit / "a").rename(unit / "b")
    second = reader().read(str(unit)).digest
    (unit / "b").rename(unit / "a")
    assert reader().read(str(unit)).digest == first != second


def test_only_wanted_files_are_read_and_only_some_are_kept(unit, reader):
    for name in ("a.py", "b.txt", "c.py"):
        (unit / name).write_text(name)
    read = reader(wanted=lambda n: n.endswith("py"), keep=lambda n: n == "a.py").read(str(unit))
    assert [(file.name, file.data) for file in read.files] == [("a.py", b"a.py"), ("c.py", None)]


def test_folders_of_tools_and_of_mounted_configuration_are_not_looked_into(unit, reader):
    for name in (".git", "node_modules", ".venv", "__pycache__", "..data", "kept"):
        (unit / name).mkdir()
        (unit / name / "f").write_text("x")
    assert names(reader().read(str(unit))) == ["kept/f"]


def test_a_folder_set_apart_does_not_belong_to_the_unit(unit, reader):
    for name in ("skills/a", "sub/skills/b"):
        (unit / name).parent.mkdir(parents=True)
        (unit / name).write_text("x")
    read = reader(exclude=frozenset({"skills"})).read(str(unit))
    assert names(read) == ["sub/skills/b"]


def test_a_large_file_is_not_read_but_a_change_of_it_is_seen(unit, reader, reads):
    (unit / "big").write_bytes(b"x" * 2_000)
    first = reader().read(str(unit))
    assert reads == []
    os.utime(unit / "big", (1, 1))
    second = reader().read(str(unit), first)
    assert (first.get("big").size, first.digest != second.digest) == (2_000, True)


def test_a_large_file_that_must_be_kept_is_read_past_its_limit_and_no_further(unit, reader):
    (unit / "big").write_bytes(b"x" * 2_000)
    assert reader(keep=lambda _: True).read(str(unit)).get("big").size == 1_001


def test_more_files_than_the_limit_are_left_out_with_a_word(unit, reader):
    for name in "abcd":
        (unit / name).write_text(name)
    assert codes(reader(most_files=4).read(str(unit))) == []
    read = reader(most_files=3).read(str(unit))
    assert (names(read), codes(read)) == (["a", "b", "c"], ["source-too-many"])
    assert "files_per_skill" in read.diagnostics[0].message


def test_links_that_are_left_out_count_as_files(unit, reader):
    for number in range(9):
        (unit / f"dead{number}").symlink_to("nothing")
    (unit / "z").write_text("z")
    assert names(reader(most_files=10).read(str(unit))) == ["z"]
    read = reader(most_files=5).read(str(unit))
    assert codes(read) == ["source-link-broken"] * 6 + ["source-too-many"]


def test_links_between_a_few_folders_do_not_become_millions_of_paths(unit, reader):
    folders = [unit / f"d{at}" for at in range(9)]
    for folder in folders:
        folder.mkdir()
    for folder in folders:
        for other in folders:
            if other != folder:
                (folder / other.name).symlink_to(other)
    read = reader().read(str(unit))
    assert codes(read).count("source-too-many") == 1
    assert len(read.diagnostics) < 1_000


def test_a_tree_deeper_than_any_real_unit_ends_with_a_word(unit, reader):
    deep = unit.joinpath(*"x" * 30)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    read = reader().read(str(unit))
    assert (names(read), codes(read)) == ([], ["source-too-deep"])


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/environ", "/etc/passwd"])
def test_a_link_that_leaves_the_folder_is_not_read(unit, reader, reads, target):
    (unit / "link").symlink_to(target)
    read = reader().read(str(unit))
    assert (names(read), codes(read), reads) == ([], ["source-link-outside"], [])


def test_a_link_that_stays_inside_is_read_and_remembered(unit, reader, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/f").write_text("x")
    (unit / "file").symlink_to("../shared/f")
    (unit / "folder").symlink_to("../shared")
    read = reader().read(str(unit))
    assert (names(read), codes(read)) == (["file", "folder/f"], [])
    root = tmp_path.resolve()
    assert read.links == {
        (str(unit / "file"), str(root / "shared/f")),
        (str(unit / "folder"), str(root / "shared")),
    }


def test_a_folder_link_outside_or_upwards_is_not_followed(unit, reader, tmp_path):
    (unit / "f").write_text("x")
    (unit / "out").symlink_to(tmp_path.parent)
    (unit / "self").symlink_to(".")
    read = reader().read(str(unit))
    assert (names(read), codes(read)) == (["f"], ["source-link-outside", "source-link-loop"])


def test_a_link_to_a_folder_above_the_unit_does_not_lead_back_into_it(unit, reader):
    (unit / "f").write_text("x")
    (unit / "up").symlink_to("..")
    read = reader().read(str(unit))
    assert (names(read), codes(read)) == (["f"], ["source-link-loop"])


def test_what_is_no_file_is_named_and_left_out(unit, reader):
    os.mkfifo(unit / "fifo")
    (unit / "dangling").symlink_to("nowhere")
    (unit / os.fsdecode(b"bad\xff")).write_text("x")
    (unit / "good").write_text("x")
    read = reader().read(str(unit))
    assert names(read) == ["good"]
    assert sorted(codes(read)) == [
        "source-link-broken",
        "source-name-not-utf8",
        "source-special-file",
    ]
    assert "is a link to 'nowhere', which does not exist" in map(
        attrgetter("message"), read.diagnostics
    )
    assert all("\udcff" not in f"{item}" for item in read.diagnostics)


def test_a_file_that_cannot_be_read_costs_only_itself(unit, reader, monkeypatch):
    def refuse(*_):
        raise UnreadableFileError("Permission denied")

    (unit / "f").write_text("x")
    monkeypatch.setattr(OpenFolder, "read", refuse)
    read = reader().read(str(unit))
    assert (names(read), codes(read)) == ([], ["source-unreadable"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_may_not_be_listed_is_empty_and_reported(tmp_path):
    (tmp_path / "closed").mkdir(mode=0)
    problems = []
    assert list_folder(str(tmp_path / "closed"), problems) == []
    assert [item.code for item in problems] == ["source-unreadable"]


def test_a_folder_that_is_gone_is_empty_and_reported(tmp_path):
    problems = []
    assert list_folder(str(tmp_path / "gone"), problems) == []
    assert [item.code for item in problems] == ["source-unreadable"]


def test_an_entry_that_cannot_be_looked_at_is_no_folder():
    class Entry:
        def is_dir(self):
            raise PermissionError

    assert not folder_reader.is_folder(Entry())


def test_a_unit_is_young_while_its_newest_file_is(unit, reader, later):
    (unit / "f").write_text("x")
    read = reader().read(str(unit))
    assert read.is_younger_than(60)
    later(100)
    assert not read.is_younger_than(60)
    assert not FolderContent().is_younger_than(60)


def test_a_file_that_is_named_is_read_beyond_the_limit_and_through_links_inside(tmp_path):
    (tmp_path / "real").mkdir()
    for name in ("a.py", "b.py", "real/z.txt", "skip.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "way").symlink_to("real")
    named = frozenset({"way/z.txt", "gone.txt", "../out", "/a.py", "b.py"})
    apart = frozenset({"real", "way"})
    reader = FolderReader(
        root=str(tmp_path),
        most_files=1,
        largest=100,
        wanted=lambda name: name.endswith(".py"),
        exclude=apart,
        required=named,
    )
    folder = reader.read(str(tmp_path))
    assert [file.name for file in folder.files] == ["a.py", "b.py", "way/z.txt"]
    assert folder.get("way/z.txt").data == b"real/z.txt"
    assert folder.get("a.py").data is None
    assert (str(tmp_path / "way"), str(tmp_path / "real")) in folder.links
    assert folder.diagnostics == ()


@pytest.mark.parametrize("target", ["..", ".", "nowhere", "/"])
def test_a_file_that_is_named_is_not_read_through_other_links(tmp_path, target):
    unit = tmp_path / "unit"
    unit.mkdir()
    for folder in (tmp_path, unit):
        (folder / "x.txt").write_text("secret")
    (unit / "way").symlink_to(target)
    named = frozenset({"way/x.txt"})
    folder = FolderReader(
        root=str(unit), most_files=9, largest=100, wanted=lambda _: False, required=named
    ).read(str(unit))
    assert folder.files == ()


def test_an_environment_of_python_is_not_gone_into(tmp_path):
    for name in ("env/pyvenv.cfg", "env/lib/x.py", "y.py", "pyvenv.cfg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    folder = FolderReader(root=str(tmp_path), most_files=9, largest=100).read(str(tmp_path))
    assert [file.name for file in folder.files] == ["pyvenv.cfg", "y.py"]


def test_a_file_has_shrunk_only_until_a_later_save():
    def saved(size, seconds, before):
        stamp = Stamp(size=size, changed=int(seconds * 1e9))
        file = UnitFile(name="a.md", size=size, digest="", stamp=stamp, settled=True)
        content = FolderContent(files=(file,))
        return replace(content, has_shrunk=folder_reader._has_shrunk(before or content, content))

    whole = saved(1000, 1_000.0, None)
    cut = saved(10, 2_000.0, whole)
    piece = saved(20, 2_000.5, cut)
    later = saved(21, 3_000.0, piece)
    assert [item.has_shrunk for item in (whole, cut, piece, later)] == [False, True, True, False]
