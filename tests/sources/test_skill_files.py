import os
from contextlib import suppress

import pytest

from satchel.errors import ToolError
from satchel.files import contained_files
from satchel.files.file_reader import digest_of
from satchel.settings import Limits
from satchel.sources.skill_files import (
    ServedFile,
    file_text,
    locate_skill_file,
    media_type_of,
    read_skill_file,
)

SECRET = "do not tell"


@pytest.fixture
def root(tmp_path, write_skill):
    """A place with the skill `pdf` and its neighbour, beside a folder that nobody may reach."""
    place, outside = tmp_path / "place", tmp_path / "outside"
    for name in ("pdf", "other"):
        write_skill(place, name)
    references = place / "pdf/references"
    for folder in (outside, references, place / "common"):
        folder.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    (references / "guide.md").write_text("# Guide\n")
    (place / "common/shared.md").write_text("shared\n")
    (references / "file-in.md").symlink_to("../../common/shared.md")
    (references / "folder-in").symlink_to(place / "common")
    (references / "file-out").symlink_to(outside / "secret.txt")
    (references / "relative-out").symlink_to("../../../outside/secret.txt")
    (references / "folder-out").symlink_to(outside)
    (references / "loop").symlink_to("loop")
    return place


def served(root, name, **limits):
    return read_skill_file(str(root), str(root / "pdf"), name, Limits(**limits))


def refused(root, name, **limits):
    """Return the one sentence that is said when a name is refused."""
    with pytest.raises(ToolError) as problem:
        served(root, name, **limits)
    if not limits:
        with pytest.raises(ToolError):
            locate_skill_file(str(root), str(root / "pdf"), name)
    message = str(problem.value)
    assert str(root.parent) not in message.replace(repr(name), "")
    assert SECRET not in message
    assert len(message) < 400
    assert message.isprintable()
    assert message.endswith(".")
    return message


def test_a_file_is_served_with_its_bytes_and_their_digest(root):
    assert served(root, "references/guide.md") == ServedFile(
        "references/guide.md", b"# Guide\n", digest_of(b"# Guide\n")
    )


def test_the_digest_is_the_one_of_the_listed_file(root, scan):
    finding = scan(root).findings["pdf"]
    assert [file.name for file in finding.files if file.digest] == ["SKILL.md"]
    read = read_skill_file(finding.root.path, finding.path, "SKILL.md", Limits())
    assert read.digest == finding.folder.get("SKILL.md").digest


def test_it_is_served_as_it_is_now(root):
    served(root, "references/guide.md")
    (root / "pdf/references/guide.md").write_text("new")
    assert served(root, "references/guide.md").data == b"new"


def test_a_name_is_reported_in_its_plainest_form(root):
    assert served(root, "./references//guide.md").name == "references/guide.md"


@pytest.fixture(params=["walking", "by the whole path"])
def way(request, monkeypatch):
    """Both ways of opening: the safe one, and the one for systems that lack it."""
    if request.param != "walking":
        monkeypatch.setattr(contained_files, "HAS_HANDLES", False)


@pytest.mark.parametrize("name", ["references/file-in.md", "references/folder-in/shared.md"])
def test_links_are_followed_while_they_stay_inside_the_root(root, way, name):
    assert served(root, name).data == b"shared\n"
    assert locate_skill_file(str(root), str(root / "pdf"), name) == str(root / "common/shared.md")


def test_links_of_a_skill_that_is_the_root_itself_stay_inside_the_skill(root):
    skill = str(root / "pdf")
    assert read_skill_file(skill, skill, "references/guide.md", Limits()).data == b"# Guide\n"
    with pytest.raises(ToolError, match="not inside the skill's folder"):
        read_skill_file(skill, skill, "references/file-in.md", Limits())


def test_a_root_and_a_skill_that_are_reached_by_links_are_fine(root):
    by_link = root.parent / "link"
    by_link.symlink_to(root)
    (root / "alias").symlink_to("pdf")
    file = read_skill_file(str(by_link), str(by_link / "alias"), "references/file-in.md", Limits())
    assert file.data == b"shared\n"


def test_a_skill_that_is_a_link_out_of_the_root_serves_nothing(root, tmp_path, write_skill):
    (root / "away").symlink_to(write_skill(tmp_path / "elsewhere", "away"))
    with pytest.raises(ToolError, match="not inside"):
        read_skill_file(str(root), str(root / "away"), "SKILL.md", Limits())


@pytest.mark.parametrize("name", ["file-out", "relative-out", "folder-out/secret.txt"])
def test_a_link_that_leads_out_of_the_root_is_refused(root, way, name):
    assert "is not inside the skill's folder" in refused(root, f"references/{name}")


@pytest.mark.parametrize(
    "name",
    [
        *("", "\0", "SKILL.md\0.txt", "a\ud800", "x" * 5000, "a/" * 400_000),
        *("/etc/passwd", "//etc/passwd", "/", "\\\\host\\a\\b", "\\x", "C:\\x", "C:x", "c:/x"),
        *("..", "../other/SKILL.md", "references/../SKILL.md", "SKILL.md/..", "..\\other\\x"),
        *(".git/config", "references/__pycache__/a.pyc", "..data/x"),
    ],
)
def test_a_name_that_no_file_of_a_skill_has_is_refused(root, name):
    (root / "pdf/.git").mkdir()
    (root / "pdf/.git/config").write_text(SECRET)
    assert "is not a file of the skill" in refused(root, name)


def test_an_absolute_name_is_refused_even_if_it_leads_to_the_skill(root):
    assert "is not a file of the skill" in refused(root, str(root / "pdf/SKILL.md"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.md", "does not exist"),
        ("SKILL.md/x", "is not a folder"),
        *((name, "is a folder") for name in (".", "references", "references/folder-in")),
        ("references/loop", "use another path"),
        ("~/.ssh/id_rsa", "is not inside"),
    ],
)
def test_what_is_no_file_is_refused_in_words_that_help(root, name, message):
    assert message in refused(root, name)


def test_a_fifo_is_refused_without_waiting_for_its_other_end(root):
    os.mkfifo(root / "pdf/pipe")
    assert "is not a regular file" in refused(root, "pipe")


def test_a_device_is_refused_even_where_links_may_lead_to_it():
    with pytest.raises(ToolError, match="is not a regular file"):
        read_skill_file("/dev", "/dev", "null", Limits())


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(root):
    (root / "pdf/data.bin").write_bytes(b"x" * 100)
    assert len(served(root, "data.bin", resource=100).data) == 100
    assert "'data.bin' is too large: more than 99 bytes" in refused(root, "data.bin", resource=99)


@pytest.mark.parametrize("swapped", ["pdf", "pdf/references", "pdf/references/guide.md"])
def test_a_link_that_is_put_in_place_after_the_check_is_not_followed(root, monkeypatch, swapped):
    look = contained_files._parts
    outside = root.parent / "outside"
    for there in ("references/guide.md", "guide.md"):
        (outside / there).parent.mkdir(exist_ok=True)
        (outside / there).write_text(SECRET)

    def then_swap(*args):
        parts = look(*args)
        (root / swapped).rename(root / "away")
        (root / swapped).symlink_to(outside / ("guide.md" if swapped.endswith(".md") else ""))
        return parts

    monkeypatch.setattr(contained_files, "_parts", then_swap)
    with pytest.raises(ToolError):
        served(root, "references/guide.md")


def test_links_swapped_all_the_time_let_nothing_out(root, swapping):
    (root.parent / "outside/guide.md").write_text(SECRET)
    seen = set()
    with swapping(root / "pdf/references", root.parent / "outside"):
        for _ in range(1000):
            with suppress(ToolError):
                seen.add(served(root, "references/guide.md").data)
    assert seen <= {b"# Guide\n"}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list them")
def test_nothing_stays_open(root):
    before = len(os.listdir("/proc/self/fd"))
    for name in ("SKILL.md", "references/file-out", "references", "none/at/all", "../x"):
        with suppress(ToolError):
            served(root, name)
        with suppress(ToolError):
            locate_skill_file(str(root), str(root / "pdf"), name)
    assert len(os.listdir("/proc/self/fd")) == before


def build(maker, number, folder):
    next(case for case in maker.CASES if case[0].startswith(number))[4](str(folder))
    return folder / "victim"


@pytest.mark.parametrize(
    ("number", "name"),
    [
        *(("F02", "SKILL.md"), ("F04", "SKILL.md"), ("F06", "SKILL.md"), ("F22", "SKILL.md")),
        *(("F08", "references/root/etc/passwd"), ("F08", "references/up/../../x")),
        *(("F14", "references/pipe"), ("F14", "assets/zero")),
    ],
)
def test_a_hostile_folder_serves_nothing_that_is_not_its_own(maker, tmp_path, number, name):
    (tmp_path / "place").mkdir()
    victim = build(maker, number, tmp_path / "place")
    with pytest.raises(ToolError) as problem:
        read_skill_file(str(victim.parent), str(victim), name, Limits())
    assert str(tmp_path) not in str(problem.value)


def test_every_hostile_name_is_refused_or_a_file_of_the_skill(maker, tmp_path, write_skill):
    victim = write_skill(tmp_path / "place", "victim")
    (tmp_path / "place/x").write_text(SECRET)
    (tmp_path / "x").write_text(SECRET)
    for name in maker.TRAVERSAL:
        try:
            file = read_skill_file(str(victim.parent), str(victim), name, Limits())
        except ToolError as problem:
            assert str(problem).isprintable()  # noqa: PT017 - whether it is raised, too, is tested
        else:
            assert file.name == "SKILL.md"


def test_names_with_odd_letters_are_served_as_they_are_listed(maker, tmp_path, scan):
    build(maker, "F24", tmp_path)
    finding = scan(tmp_path).findings["victim"]
    names = [file.name for file in finding.files]
    assert "references/a\nb" in names
    for name in names:
        assert read_skill_file(finding.root.path, finding.path, name, Limits()).name == name


def file(data):
    return ServedFile("x", data, digest_of(data))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        *((b"", ""), (b"a\r\nb", "a\r\nb"), ("å 🧳".encode(), "å 🧳")),
        *((b"\xef\xbb\xbfa", "a"), (b"a\0b", None), (b"\xff\xfea", None), (b"\xed\xa0\x80", None)),
    ],
)
def test_text_is_utf8_with_or_without_a_mark_and_without_nul(data, text):
    assert file_text(file(data)) == text


def test_text_is_served_up_to_its_limit():
    assert len(file_text(file(b"x" * 1024 * 1024))) == 1024 * 1024
    assert file_text(file(b"x" * (1024 * 1024 + 1))) is None
    assert file_text(file(b"xx"), 1) is None


PNG = b"\x89PNG\r\n\x1a\n\0"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        *(("a.png", PNG, "image/png"), ("a.txt", PNG, "image/png"), ("a", PNG, "image/png")),
        *(("a.jpg", b"\xff\xd8\xff\xe0", "image/jpeg"), ("a.gif", b"GIF89a", "image/gif")),
        *(("a", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"), ("a", b"RIFF\0\0\0\0WAVE", None)),
        *(("a.png", b"no image", "text/plain"), ("a.webp", b"\xff\0", None)),
        *(("a.md", b"", "text/markdown"), ("A.MD", b"", "text/markdown")),
        *(("a.py", b"", "text/x-python"), ("a.json", b"", "application/json")),
        *(("a.yaml", b"", "application/yaml"), ("a.pdf", b"%PDF", "application/pdf")),
        *(("a.unknown", b"words", "text/plain"), ("a.unknown", b"\xff", None)),
        *(("Makefile", b"words", "text/plain"), ("a.tar.gz", b"\x1f\x8b", None)),
        ("data:image/svg+xml,a", b"words", "text/plain"),
    ],
)
def test_the_media_type_is_that_of_an_image_by_its_bytes_and_else_of_the_suffix(name, data, kind):
    assert media_type_of(name, data) == (kind or "application/octet-stream")
