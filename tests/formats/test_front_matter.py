from dataclasses import replace

import pytest

from satchel.formats.front_matter import FrontMatter, split_front_matter


def split(data, limits):
    return split_front_matter(data, "SKILL.md", limits)


@pytest.mark.parametrize(
    ("data", "text", "body", "first_line"),
    [
        (b"---\na: b\n---\nbody\n", "a: b\n", "body\n", 2),
        (b"\xef\xbb\xbf---\r\na: b\r\n---\r\nbody\r\n", "a: b\n", "body\n", 2),
        (b"\n \n---  \na: b\n---\t\nbody", "a: b\n", "body", 4),
        (b"---\n---", "", "", 2),
        (b"---\na: b\n---\n\n---\n", "a: b\n", "\n---\n", 2),
        (b"---\na: |\n  ---\n--- x\n----\n---\n", "a: |\n  ---\n--- x\n----\n", "", 2),
    ],
    ids=["plain", "bom and crlf", "blanks", "empty", "rule in body", "no fences"],
)
def test_a_fence_is_a_line_that_is_only_three_dashes(data, text, body, first_line, limits):
    assert split(data, limits).value == FrontMatter(text, body, first_line)


@pytest.mark.parametrize(
    "data", [b"", b"# Title\n", b"----\n", b" ---\na: b\n---\n", b"\n" * 9 + b"---\n---\n"]
)
def test_a_file_that_does_not_begin_with_a_fence_has_no_frontmatter(data, limits):
    (diagnostic,) = split(data, limits).diagnostics
    assert (diagnostic.code, diagnostic.where.line) == ("skill-no-frontmatter", 1)


@pytest.mark.parametrize(("data", "line"), [(b"---", 1), (b"---\na: b\n", 1), (b"\n---\na", 2)])
def test_frontmatter_without_a_second_fence_is_reported_at_the_first(data, line, limits):
    (diagnostic,) = split(data, limits).diagnostics
    assert (diagnostic.code, diagnostic.where.line) == ("skill-frontmatter-open", line)


def test_a_file_over_the_limit_is_refused_and_the_limit_is_named(limits):
    (diagnostic,) = split(b"-" * 11, replace(limits, skill_file=10)).diagnostics
    assert diagnostic.code == "skill-too-large"
    assert "(limit skill_file)" in diagnostic.message


def test_a_file_that_is_not_utf8_is_refused(limits, codes):
    assert codes(split(b"---\n\xff\n---\n", limits)) == ["skill-not-utf8"]
