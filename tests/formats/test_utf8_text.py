import pytest

from satchel.formats.utf8_text import decode


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\nb", "a\nb"),
        (b"\xef\xbb\xbfa", "a"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        ("é".encode(), "é"),
        (b"", ""),
    ],
)
def test_utf8_is_read_with_or_without_bom_and_every_line_end_becomes_lf(data, text):
    assert decode(data, "f", "skill-not-utf8").value == text


@pytest.mark.parametrize(
    ("data", "line", "word"),
    [
        (b"a\nb\xff", 2, "0xff"),
        (b"\xef\xbb\xbfa\n\n\xff", 3, "0xff"),
        (b"a\n\xed\xa0\x80", 2, "0xed"),
        (b"a\n\nb\0", 3, "NUL"),
        ("a".encode("utf-16"), 1, "UTF-16"),
    ],
)
def test_anything_else_is_refused_with_its_line_and_the_code_of_the_caller(data, line, word):
    reading = decode(data, "f", "plugin-unreadable")
    (diagnostic,) = reading.diagnostics
    assert reading.value is None
    assert (diagnostic.code, diagnostic.where.line) == ("plugin-unreadable", line)
    assert word in diagnostic.message
    assert diagnostic.fix
