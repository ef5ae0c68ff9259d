"""Texts of the form KEY=VALUE, as arguments and options give them."""

import sys
from collections.abc import Iterable, Mapping

import click


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Take texts apart. What is none of the form is not quoted: it may be a secret."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.UsageError("give KEY=VALUE, the key first")
        if key in found:
            raise click.UsageError(f"{key!r} is given twice")
        found[key] = value
    return found


def field_values(texts: Iterable[str]) -> dict[str, str]:
    """Take values of fields apart, whose capitals do not count; '-' is read from stdin."""
    found = parse_pairs(texts)
    require_distinct(found)
    return with_stdin(found)


def require_distinct(keys: Iterable[str]) -> None:
    """Refuse keys that are one but for their capitals."""
    seen: set[str] = set()
    for key in keys:
        if key.lower() in seen:
            raise click.UsageError(f"{key!r} is given twice")
        seen.add(key.lower())


def with_stdin(values: Mapping[str, str]) -> dict[str, str]:
    """Put what stdin holds, without the end of its last line, in the place of '-'."""
    if list(values.values()).count("-") > 1:
        raise click.UsageError("stdin holds one value; give '-' once")
    return {key: _from_stdin() if value == "-" else value for key, value in values.items()}


def _from_stdin() -> str:
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")
