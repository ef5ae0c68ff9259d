"""Make JSON readable that is valid and that strict parsers refuse, as one bad tool may write it.

Without this, one tool with a schema of 200 levels takes all tools of its server away. Values that
are too deep become `null`, so do numbers that are too long; half a character becomes U+FFFD. What
is left of the bad tool is checked, and left out, as any other definition.
"""

import re
from collections.abc import Iterator

_DEEPEST = 150
"""More than a valid schema has, and fewer than the parser can read."""
_LONGEST_NUMBER = 400
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^"\[\]{}]+', re.DOTALL)
_LONG_NUMBER = re.compile(rb"-?[0-9][0-9.eE+-]{%d,}" % _LONGEST_NUMBER)
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(rb"\\\\|" + _HIGH + _LOW + rb"|" + _HIGH + rb"|" + _LOW)
_PAIR = 12
"""The length of an escaped pair of halves, which is one character."""


def tamed(data: bytes | str) -> bytes:
    """Return JSON that a strict parser can read, if there is only such a fault in it."""
    return b"".join(_tokens(bytes_of(data)))


def bytes_of(data: bytes | str) -> bytes:
    """Return JSON as bytes; half a character stays, and no parser takes it."""
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data


def readable(data: bytes) -> bytes:
    """Return JSON as it is if it can be parsed, else tamed."""
    from pydantic_core import from_json  # lazy: as heavy as its use

    try:
        from_json(data)
    except ValueError:
        return tamed(data)
    return data


def _tokens(text: bytes) -> Iterator[bytes]:
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        first = token[:1]
        if first in b"]}":
            if depth <= _DEEPEST:
                yield token
            depth -= 1
        elif first in b"[{":
            depth += 1
            if depth <= _DEEPEST:
                yield token
            elif depth == _DEEPEST + 1:
                yield b"null"
        elif depth <= _DEEPEST:
            yield _HALF.sub(_whole, token) if first == b'"' else _LONG_NUMBER.sub(b"null", token)


def _whole(match: re.Match[bytes]) -> bytes:
    text = match.group()
    return text if text == b"\\\\" or len(text) == _PAIR else b"\\ufffd"
