"""The fast reader of simple SKILL.md files reads what the other one reads, or leaves it alone."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.formats.simple_skill import read_simple_skill
from satchel.formats.skill_manifest import read_any_skill, read_skill
from satchel.settings import Limits

LIMITS = Limits()


def check(data, folder, limits=LIMITS):
    """Compare both readers; return whether the file is simple and all in order."""
    simple = read_simple_skill(data, limits)
    reading = read_any_skill(data, folder, "SKILL.md", limits)
    assert read_skill(data, folder, "SKILL.md", limits) == reading
    is_in_order = simple is not None and simple.is_in_order(folder, limits, frozenset())
    assert not is_in_order or reading.diagnostics == ()
    return is_in_order


PIECES = st.sampled_from(
    [
        *(
            "---",
            "---\n",
            "\n---\n",
            "--- \n",
            "\n",
            "\r\n",
            "\r",
            " ",
            "\t",
            "\ufeff",
            "\0",
            "# x\n",
        ),
        *("name: pdf\n", "name: 'pdf'\n", "name:  pdf \n", "name: PDF\n", "name:\n", "name: pdf"),
        *("description: Fills forms.\n", "description: ''\n", "description: a: b\n"),
        *('description: "Fills"\n', "description: >\n  Fills\n", "description:   \n"),
        *("description: >-\n  a\n\n  b\n", "description: |\n  a\n   b\n", "  c: d\n", "  - e\n"),
        *("metadata:\n", "metadata:\n  a: b\n  c: 'd'\n", "metadata:\n  a:\n", "version: 1\n"),
        *("model: fast\n", "tags: [a]\n", "disable-model-invocation: true\n", "hooks: x\n"),
        *("allowed-tools:\n  - Read\n", "allowed-tools:\n- Read\n- 'b'\n"),
        *("license: MIT\n", "license: ''\n", "license:\n", "license: [a]\n", "odd: x\n"),
        *(
            "compatibility: Needs git.\n",
            "compatibility: ''\n",
            "compatibility:\n",
            "metadata: x\n",
        ),
        *(
            "allowed-tools: Read\n",
            "Do it.\n",
            "\u200b",
            "\ufffe",
            "\x85",
            "\u2028",
            "é",
            "[",
            "{",
            "😀",
        ),
    ]
)
FRONT = st.lists(PIECES, max_size=8).map("".join)


@given(st.lists(PIECES, max_size=12).map("".join))
@example("---\nname: pdf\ndescription: d\n---\n")
@example("---\nname: pdf\ndescription: d\n---\n\nB\n---\n")
def test_both_readers_agree_on_any_pieces(text):
    check(text.encode(), "pdf")


@given(FRONT, FRONT, st.sampled_from([LIMITS, Limits(frontmatter=60), Limits(yaml_nodes=5)]))
@example("", "", Limits(description_shown=3))
@example("", "", Limits(description_accepted=3))
@example("", "", Limits(skill_file=3))
@example("", "", Limits(yaml_depth=0))
def test_both_readers_agree_on_nearly_simple_files(front, body, limits):
    text = f"---\nname: pdf\ndescription: Fills.\n{front}---\nDo it.\n{body}"
    check(text.encode(), "pdf", limits)


@given(st.text(min_size=1), st.text(min_size=1), st.text())
def test_both_readers_agree_on_any_text(description, compatibility, body):
    text = (
        f"---\nname: pdf\ndescription: {description}\ncompatibility: {compatibility}\n---\n{body}"
    )
    check(text.encode("utf-8", "surrogatepass"), "pdf")


def test_a_usual_skill_is_simple():
    assert check(b"---\nname: pdf\ndescription: Fills.\nlicense: MIT\n---\n\nDo it.\n", "pdf")


@pytest.mark.parametrize("length", [1_024, 1_025])
def test_a_long_description_is_left_to_the_other_reader(length):
    text = f"---\nname: pdf\ndescription: {'x' * length}\n---\nDo it.\n"
    assert check(text.encode(), "pdf") == (length == 1_024)


def test_both_readers_agree_on_all_real_files(shared):
    paths = list((shared / "corpus").rglob("SKILL.md"))
    simple = sum(check(path.read_bytes(), path.parent.name) for path in paths)
    assert simple > len(paths) * 0.6
