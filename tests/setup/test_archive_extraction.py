"""Archives of strangers: whatever they hold, nothing is written outside, and nothing half stays."""

import gzip
import io
import os
import stat
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import SatchelError
from satchel.setup.archive_extraction import extract_archive, stem_of
from satchel.setup.folder_placement import removed

Members = list[tuple[tarfile.TarInfo, bytes]]


def file(name: str, data: bytes = b"data", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    return info, data


def special(name: str, kind: bytes, link: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b""


def symlink(name: str, link: str) -> tuple[tarfile.TarInfo, bytes]:
    return special(name, tarfile.SYMTYPE, link)


def hardlink(name: str, link: str) -> tuple[tarfile.TarInfo, bytes]:
    return special(name, tarfile.LNKTYPE, link)


def folder(name: str) -> tuple[tarfile.TarInfo, bytes]:
    return special(name, tarfile.DIRTYPE)


def tar(path, *members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path, *members):
    """Write (name, data, mode) into a zip; a mode with a type makes links and the like."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in members:
            info = zipfile.ZipInfo("x")
            info.filename = info.orig_filename = name
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path


@pytest.fixture
def world(tmp_path):
    """A folder to extract in, beside something that must not be touched."""
    base = tmp_path / "data"
    base.mkdir()
    (tmp_path / "secret").write_text("s")
    return base


def extract(archive, target, **limits):
    extract_archive(str(archive), str(target), **limits)
    return sorted(str(p.relative_to(target)) for p in target.rglob("*"))


def assert_refused(archive, world, match=".", **limits):
    """Nothing came of it: neither inside nor outside."""
    before = sorted(world.parent.rglob("*"))
    with pytest.raises(SatchelError, match=match):
        extract_archive(str(archive), str(world / "out"), **limits)
    assert sorted(world.parent.rglob("*")) == before
    assert (world.parent / "secret").read_text() == "s"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_taken_apart_however_it_is_packed(world, mode):
    members = [folder("a"), file("a/b", b"x"), file("./c/d", b"y" * 5_000_000)]
    archive = tar(world / "m.tar", *members, mode=mode)
    assert extract(archive, world / "out") == ["a", "a/b", "c", "c/d"]
    assert (world / "out/a/b").read_bytes() == b"x"
    assert (world / "out/c/d").stat().st_size == 5_000_000
    assert sorted(os.listdir(world)) == ["m.tar", "out"]


def test_a_folder_may_come_after_its_files_and_twice(world):
    archive = tar(world / "m.tar", file("a/b"), folder("a"), folder("a"), folder("./a/"))
    assert extract(archive, world / "out") == ["a", "a/b"]
    archive = zipped(world / "m.zip", ("a/b", b"", 0), ("a/", b"", 0))
    assert extract(archive, world / "out") == ["a", "a/b"]


def test_a_zip_is_taken_apart(world):
    archive = zipped(world / "m.zip", ("a/", b"", 0), ("a/b", b"x", 0o644))
    assert extract(archive, world / "out") == ["a", "a/b"]
    assert (world / "out/a/b").read_bytes() == b"x"


@pytest.mark.parametrize("has_filter", [True, False])
def test_a_program_stays_one_and_no_other_right_is_taken_over(world, has_filter, monkeypatch):
    if not has_filter:  # as in Python 3.11.0 to 3.11.3
        monkeypatch.delattr(tarfile, "data_filter")
        extract_member = tarfile.TarFile.extract
        monkeypatch.setattr(
            tarfile.TarFile,
            "extract",
            lambda self, info, path="", set_attrs=True: extract_member(
                self, info, path, set_attrs, filter="fully_trusted"
            ),
        )
    members = [folder("d"), file("run", mode=0o6777), file("text", mode=0o000)]
    extract(tar(world / "m.tar", *members), world / "out")
    extract(zipped(world / "m.zip", ("run", b"", 0o6777), ("text", b"", 0)), world / "zip")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((world / "out/d").stat().st_mode) == 0o777 & ~mask
    for out in ("out", "zip"):
        assert stat.S_IMODE((world / out / "run").stat().st_mode) == 0o777 & ~mask
        assert stat.S_IMODE((world / out / "text").stat().st_mode) == 0o666 & ~mask


def test_what_was_there_is_replaced_once_all_is_extracted(world):
    (world / "out").mkdir()
    (world / "out/old").write_text("")
    extract(tar(world / "m.tar", file("new")), world / "out")
    assert os.listdir(world / "out") == ["new"]
    with pytest.raises(SatchelError):
        extract(tar(world / "n.tar", file("newer"), file("../x")), world / "out")
    assert os.listdir(world / "out") == ["new"]
    assert sorted(os.listdir(world)) == ["m.tar", "n.tar", "out"]


BAD_NAMES = ["../x", "a/../../x", "/etc/x", "C:/x", "c:x", "a\\..\\x", "..", "a/..", "\\\\x\\y"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_leads_out_is_refused(world, name):
    assert_refused(tar(world / "m.tar", file("ok"), file(name)), world)
    assert_refused(zipped(world / "m.zip", ("ok", b"", 0), (name, b"x", 0)), world)


@pytest.mark.parametrize("link", [symlink("l", "a"), symlink("l", "/x"), hardlink("l", "a")])
def test_a_link_in_a_tar_is_refused(world, link):
    assert_refused(tar(world / "m.tar", file("a"), link), world, "links are not extracted")


def test_a_link_in_a_zip_is_refused(world):
    archive = zipped(world / "m.zip", ("a", b"", 0), ("l", b"a", stat.S_IFLNK | 0o777))
    assert_refused(archive, world, "links are not extracted")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_links_that_stay_inside_are_extracted_if_the_caller_wants_them(world, kind):
    inside = {"d/up": "../a", "l": "d", "gone": "nothing"}
    outside = {"e/out": "../../x", "abs": "/etc/passwd", "empty": ""}
    names = {**inside, **outside}
    if kind == "tar":
        links = (symlink(name, text) for name, text in names.items())
        archive = tar(world / "m.tar", *links, file("a", b"x"), folder("d"))
    else:
        mode = stat.S_IFLNK | 0o777
        links = ((name, text.encode(), mode) for name, text in names.items())
        archive = zipped(world / "m.zip", *links, ("a", b"x", 0), ("d/", b"", 0))
    extract_archive(str(archive), str(world / "out"), with_links=True)
    out = world / "out"
    assert {os.readlink(out / name) for name in outside} == {"/dev/null/out"}
    assert {name: os.readlink(out / name) for name in inside} == inside
    assert sorted(os.listdir(out)) == ["a", "abs", "d", "e", "empty", "gone", "l"]


def test_nothing_is_written_through_a_link_of_an_archive(world):
    evil = tar(world / "m.tar", symlink("d", "e"), file("d/x", b"evil"), folder("e"))
    assert_refused(evil, world, "'d' is in it twice", with_links=True)
    links = tar(world / "l.tar", folder("e"), symlink("d", "e"), symlink("d/x", "y"))
    assert_refused(links, world, "'d' is in it twice", with_links=True)
    # `out` leads to the folder around the target, though its text does not climb.
    leave = [symlink("s", "."), symlink("out", "s/s/../.."), symlink("out/evil", "x")]
    for name, members in (("o.tar", leave), ("p.tar", leave[::-1])):
        evil = tar(world / name, *members)
        assert_refused(evil, world, "'out' is in (it|the archive) twice", with_links=True)
    twice = tar(world / "n.tar", symlink("d", "e"), symlink("d", "f"))
    assert_refused(twice, world, "'d' is in it twice", with_links=True)


def test_a_hard_link_and_a_link_with_a_long_text_are_refused(world):
    for link in (hardlink("l", "a"), special("p", tarfile.FIFOTYPE)):
        archive = tar(world / "m.tar", file("a"), link)
        assert_refused(archive, world, "neither a file nor a folder; not", with_links=True)
    long = zipped(world / "m.zip", ("l", b"a" * 5000, stat.S_IFLNK | 0o777))
    assert_refused(long, world, "neither a file nor a folder", with_links=True)


def test_a_name_that_is_hidden_behind_a_nul_is_refused(world):
    assert_refused(
        zipped(world / "m.zip", ("a\0/../../x", b"", 0)), world, "systems read differently"
    )


def test_a_name_with_control_characters_is_refused(world):
    assert_refused(zipped(world / "m.zip", ("a\n\x1b[31mb", b"", 0)), world, "control character")


def test_a_file_in_a_zip_that_claims_more_than_it_holds_is_refused(world):
    archive = zipped(world / "m.zip", ("a", b"", 0))
    data = bytearray(archive.read_bytes())
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (100).to_bytes(4, "little")
    archive.write_bytes(data)
    assert_refused(archive, world, "truncated|cannot extract")


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"Z"])
def test_devices_and_the_like_are_refused(world, kind):
    assert_refused(tar(world / "m.tar", special("x", kind)), world, "neither a file nor a folder")


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_devices_in_a_zip_are_refused(world, kind):
    assert_refused(
        zipped(world / "m.zip", ("x", b"", kind | 0o644)), world, "neither a file nor a folder"
    )


def test_one_name_twice_is_refused(world):
    assert_refused(tar(world / "m.tar", file("a"), file("./a")), world, "in the archive twice")
    assert_refused(tar(world / "m.tar", file("a"), folder("a")), world)
    assert_refused(
        zipped(world / "m.zip", ("a", b"", 0), ("./a", b"", 0)), world, "in the archive twice"
    )


def test_a_bomb_is_stopped_by_what_comes_out_of_it(world):
    bomb = zipped(world / "m.zip", ("a", b"\0" * 3_000_000, 0o644))
    assert bomb.stat().st_size < 10_000
    assert_refused(bomb, world, "more than 1000000 bytes", most_bytes=1_000_000)
    packed = tar(world / "m.tar", file("a", b"\0" * 3_000_000), mode="w:gz")
    assert_refused(packed, world, "more than 1000000 bytes", most_bytes=1_000_000)
    several = tar(world / "n.tar", *(file(f"f{n}", b"x" * 400) for n in range(3)))
    assert_refused(several, world, "more than 1000 bytes", most_bytes=1000)


def test_a_bomb_of_names_is_stopped(world):
    many = tar(world / "m.tar", *(file(f"f{n}", b"") for n in range(11)))
    assert_refused(many, world, "more than 10 files", most_files=10)
    assert len(extract(many, world / "out", most_files=11)) == 11
    info, data = file("x")
    info.pax_headers = {"comment": "a" * 20_000_000}
    assert_refused(tar(world / "n.tar", (info, data), mode="w:xz"), world, "too large")


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"BZh9", b"no archive" * 99])
def test_what_is_no_archive_is_reported(world, data):
    (world / "m").write_bytes(data)
    assert_refused(world / "m", world, "cannot extract")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_an_archive_that_is_cut_off_leaves_nothing(world, mode):
    archive = tar(world / "m.tar", file("a"), file("b", os.urandom(100_000)), mode=mode)
    archive.write_bytes(archive.read_bytes()[:60_000])
    assert_refused(archive, world)


def damaged(archive, *places):
    """Turn bytes around, at places counted from the end if they are negative."""
    data = bytearray(archive.read_bytes())
    for at in places:
        data[at] ^= 0xFF
    archive.write_bytes(data)
    return archive


def test_a_tar_with_a_damaged_header_is_refused(world):
    archive = tar(world / "m.tar", *(file(name, name.encode() * 1000) for name in "abc"))
    assert_refused(damaged(archive, 1536 + 148), world, "damaged or truncated")


@pytest.mark.parametrize("size", [1536, 1536 + 100, 3 * 1536])
def test_a_tar_without_its_end_is_refused(world, size):
    archive = tar(world / "m.tar", *(file(name, name.encode() * 1000) for name in "abc"))
    archive.write_bytes(archive.read_bytes()[:size])
    assert_refused(archive, world)


def test_a_tar_with_one_block_of_zeros_is_whole(world):
    archive = tar(world / "m.tar", file("a", b"x"))
    archive.write_bytes(archive.read_bytes()[: 3 * 512])
    assert extract(archive, world / "out") == ["a"]


@pytest.mark.parametrize("at", [4_000_000, -6])
def test_the_checksum_of_a_packed_tar_counts(world, at):
    plain = tar(world / "m.tar", *(file(name, os.urandom(3_000_000)) for name in "abc"))
    plain.write_bytes(gzip.compress(plain.read_bytes(), 0))
    assert_refused(damaged(plain, at), world, "CRC")


@pytest.mark.parametrize("mode", ["w:bz2", "w:xz"])
def test_the_end_of_a_packed_tar_counts(world, mode):
    archive = tar(world / "m.tar", file("a", b"x"), mode=mode)
    archive.write_bytes(archive.read_bytes()[:-5])
    assert_refused(archive, world)


def test_bytes_of_a_tar_that_no_file_contains_are_bounded_too(world):
    info, data = file("a", b"\0" * 18_000_000)
    info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": "0"}
    archive = tar(world / "m.tar", (info, data), file("b"), mode="w:gz")
    assert_refused(archive, world, "more bytes than allowed", most_bytes=1000)
    assert extract(archive, world / "out", most_bytes=2_000_000) == ["a", "b"]


def test_what_follows_the_end_of_a_tar_is_bounded_too(world):
    archive = tar(world / "m.tar", file("a", b"x"))
    archive.write_bytes(gzip.compress(archive.read_bytes() + bytes(50_000_000)))
    assert_refused(archive, world, "more bytes than allowed", most_bytes=1000)


def test_the_checksum_of_a_file_in_a_zip_counts(world):
    archive = zipped(world / "m.zip", ("a", b"x" * 1000, 0))
    data = archive.read_bytes()
    at = data.index(b"PK\x01\x02") + 16
    assert_refused(damaged(archive, 14, at), world, "CRC")


def test_an_archive_never_replaces_itself(world):
    archive = tar(world / "model", file("a"))
    before = archive.read_bytes()
    with pytest.raises(SatchelError, match="give to="):
        extract_archive(str(archive), str(archive))
    with pytest.raises(SatchelError, match="give to="):
        extract_archive(str(archive), str(world))
    assert archive.read_bytes() == before
    assert os.listdir(world) == ["model"]


def test_folders_in_folders_have_a_bound(world):
    extract(tar(world / "m.tar", folder("a/" * 100)), world / "out")
    removed(str(world / "out"))
    assert_refused(tar(world / "n.tar", folder("a/" * 101)), world, "more than 100 folders deep")
    assert_refused(tar(world / "o.tar", symlink("a/" * 1500, "x")), world, "folders deep")


def test_an_archive_with_a_password_is_reported(world):
    archive = zipped(world / "m.zip", ("a", b"x", 0))
    data = bytearray(archive.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    archive.write_bytes(data)
    assert_refused(archive, world, "password|encrypted")


PARTS = st.sampled_from(["a", "b", "..", ".", "", "c:", "\\", "x" * 300, "l", "\u202e", "…"])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])


@given(st.lists(st.tuples(NAMES, KINDS, NAMES), max_size=6), st.booleans())
def test_no_names_and_links_lead_out(tmp_path_factory, members, with_links):
    base = tmp_path_factory.mktemp("world")
    (base / "data").mkdir()
    archive = tar(base / "m.tar", *(special(*member) for member in members))
    out = base / "data/out"
    try:
        extract_archive(str(archive), str(out), with_links=with_links)
    except SatchelError:
        assert not out.exists()
    # The target of a link may be outside: whoever reads follows it step by step.
    for path in out.rglob("*") if out.exists() else ():
        assert path.is_symlink() or os.path.realpath(path).startswith(os.path.realpath(out))
    assert set(os.listdir(base / "data")) <= {"out"}
    assert set(os.listdir(base)) == {"m.tar", "data"}


@pytest.mark.parametrize("name", ["m.tar.gz", "m.zip", "m.tgz", "m.tar", "m.TAR.XZ", "m"])
def test_an_archive_without_its_ending(name):
    assert stem_of(f"/x/{name}") == "m"


def test_many_small_files_in_a_tar_are_within_the_bounds(world):
    archive = tar(world / "m.tar", *(file(f"f{at}", b"") for at in range(400)))
    assert len(extract(archive, world / "out", most_bytes=1000)) == 400
