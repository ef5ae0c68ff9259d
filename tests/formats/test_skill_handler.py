"""Our front matter as a handler of python-frontmatter: the library and the loader agree."""

import frontmatter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import SkillHandler
from satchel.formats.front_matter import FrontmatterError, load_frontmatter, split_front_matter
from satchel.settings import Limits

LIMITS = Limits()
FIELDS = {"name": "pdf", "description": "Use when: always", "metadata": {"version": "1.10"}}


def test_the_library_reads_every_real_file_as_the_loader_does(shared):
    files = sorted((shared / "corpus").rglob("*.md"))
    for path in files:
        post = frontmatter.load(path, handler=SkillHandler())
        split = split_front_matter(path.read_bytes(), "SKILL.md", LIMITS).value
        if split is None:
            assert post.metadata == {}
            continue
        reading = load_frontmatter(split, "SKILL.md", LIMITS)
        assert reading.value is not None
        assert post.metadata == reading.value.values
        assert post.content == split.body.strip()
    assert len(files) > 500


def test_what_cannot_be_loaded_raises_with_its_diagnostics():
    with pytest.raises(FrontmatterError, match="yaml-unsafe") as caught:
        frontmatter.loads("---\nname: a\nb: &x 1\n---\n", handler=SkillHandler("a/SKILL.md"))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.where.path, diagnostic.where.line) == ("a/SKILL.md", 3)


def test_a_repair_is_kept_with_its_line():
    handler = SkillHandler()
    post = frontmatter.loads("---\nname: a\ndescription: Use: now\n---\nB", handler=handler)
    assert post["description"] == "Use: now"
    (diagnostic,) = handler.reading.diagnostics
    assert (diagnostic.code, diagnostic.where.line) == ("yaml-repaired", 3)


@pytest.mark.parametrize("text", ["", "# Title", "---\nopen: yes"])
def test_a_text_without_front_matter_is_all_content(text):
    post = frontmatter.loads(text, handler=SkillHandler())
    assert (post.metadata, post.content) == ({}, text)


@pytest.mark.parametrize(("text", "is_one"), [("---\n", True), ("\ufeff---\n", True), ("a", False)])
def test_a_text_is_detected_by_its_first_line(text, is_one):
    assert SkillHandler().detect(text) is is_one


def test_what_is_written_is_exact():
    post = frontmatter.Post("\n# Title\n", **FIELDS)
    text = frontmatter.dumps(post, handler=SkillHandler())
    assert text == (
        "---\nname: pdf\ndescription: 'Use when: always'\nmetadata:\n  version: '1.10'\n---\n"
        "\n# Title\n"
    )


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], include_characters="\n")))
def test_what_is_written_is_read_back(text):
    post = frontmatter.Post("Body.", description=text)
    written = frontmatter.dumps(post, handler=SkillHandler())
    assert frontmatter.loads(written, handler=SkillHandler()).metadata == {"description": text}
