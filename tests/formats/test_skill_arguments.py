import pytest

from satchel.formats.skill_arguments import takes_arguments, with_arguments


@pytest.mark.parametrize(
    ("text", "arguments", "filled"),
    [
        ("Fix $ARGUMENTS now", "a  'b c'", "Fix a  'b c' now"),
        ("$2 before $1", "one 'two three'", "two three before one"),
        ("[$3]", "one two", "[]"),
        ("$ARGUMENTS[0] [$ARGUMENTS[9]]", "one two", "one []"),
        ("[$ARGUMENTS]", "", "[]"),
        (r"\$1 and \$ARGUMENTS of $1", "x", "$1 and $ARGUMENTS of x"),
        ("$1 $2", "$2 $ARGUMENTS", "$2 $ARGUMENTS"),
        ("$1", "don't panic", "don't"),
        ("costs $10 and $ARGUMENTSX", "", "costs $10 and $ARGUMENTSX"),
        ("Do it.\n", "now please", "Do it.\n\nARGUMENTS: now please\n"),
        ("Do it.\n", " ", "Do it.\n"),
    ],
)
def test_arguments_are_put_in_their_place(text, arguments, filled):
    assert with_arguments(text, arguments) == filled


@pytest.mark.parametrize(
    ("text", "is_asking"),
    [
        ("Fix $ARGUMENTS now", True),
        ("Fix $2", True),
        ("Fix $ARGUMENTS[0]", True),
        (r"Fix \$1 and $1", True),
        (r"Fix \$1", False),
        ("It costs $10", False),
        ("", False),
    ],
)
def test_a_text_takes_arguments_if_it_has_a_place_for_them(text, is_asking):
    assert takes_arguments(text) is is_asking
