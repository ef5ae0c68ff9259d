"""Names that are set in a text are read with what they stand for."""

import pytest

from satchel.scan.file_scanner import scan_text
from satchel.scan.pieces import JOINT, expanded_lines, words_in_pieces


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a=cu\nb=rl\n$a$b x", "cu|rl x"),
        ('x="ba"; y="sh"; wget u | "${x}${y}"', "ba|sh"),
        ("$a = 'Inv'; $b = 'oke'\n& ($a+$b)", "Inv|oke"),
        ("const m = 'ex'\nrun(m + 'ec')", 'run("ex|ec")'),
        ("a=cu\nf=${a}rl\n$f x", "cu|rl"),
    ],
)
def test_values_meet_in_a_word(text, line):
    *_, (_, last) = expanded_lines(text)
    assert line.replace("|", JOINT) in last


@pytest.mark.parametrize(
    "text",
    [
        "base=https://a.example\ncurl $base",
        'echo "$a$b"',
        "a = 1\nc = a + b",
        "name=x\necho $name done",
    ],
)
def test_names_that_stand_alone_or_are_unknown_are_left(text):
    assert [*expanded_lines(text)] == []


def test_values_of_values_do_not_grow_without_a_limit():
    text = "a=bc\n" + "a=$a$a$a\n" * 200
    assert sum(len(line) for _, line in expanded_lines(text)) < 200 * 500


def test_only_words_with_joints_are_left():
    assert words_in_pieces(f"a cu{JOINT}rl b{JOINT}") == f"cu{JOINT}rl"


@pytest.mark.parametrize(
    "text",
    [
        "a=cu; b=rl\n$a$b https://x.invalid",
        "x = 'ev' + 'al'",
        "A=/dev/t\nB=cp/203.0.113.9/4\ncat < $A$B",
    ],
)
def test_a_command_in_pieces_is_found(text):
    assert "obfuscated-code" in {item.rule for item in scan_text(text)}


@pytest.mark.parametrize("text", ["x = 'a' + 'b'", "d=build; n=app\ncp $d$n out", "src + url"])
def test_other_words_in_pieces_are_left_alone(text):
    assert [*scan_text(text)] == []
