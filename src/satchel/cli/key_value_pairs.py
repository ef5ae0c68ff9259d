"""Parse `KEY=VALUE` arguments and options."""

import sys
from collections.abc import Iterable, Mapping

import click


def parse_pairs(texts: Iterable[str], *, ignore_case: bool = False) -> dict[str, str]:
    """Return the values by key. Errors do not quote the text: it may be a secret."""
    values: dict[str, str] = {}
    seen: set[str] = set()
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.UsageError("give KEY=VALUE, the key first")
        if (folded := key.lower() if ignore_case else key) in seen:
            raise click.UsageError(f"{key!r} is given twice")
        seen.add(folded)
        values[key] = value
    return values


def field_values(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of configuration fields; '-' is replaced with stdin."""
    return with_stdin(parse_pairs(texts, ignore_case=True))


def with_stdin(values: Mapping[str, str]) -> dict[str, str]:
    """Replace the value '-' with the content of stdin, without its last line break."""
    if list(values.values()).count("-") > 1:
        raise click.UsageError("only one value can be read from stdin; give '-' once")
    return {
        key: sys.stdin.read().removesuffix("\n").removesuffix("\r") if value == "-" else value
        for key, value in values.items()
    }
