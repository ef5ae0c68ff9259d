"""Parse `KEY=VALUE` arguments and options."""

import sys
from collections.abc import Iterable, Mapping

import click


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Return the values by key. Errors do not quote the text: it may be a secret."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.UsageError("give KEY=VALUE, the key first")
        if key in values:
            raise click.UsageError(f"{key!r} is given twice")
        values[key] = value
    return values


def field_values(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of configuration fields; '-' is replaced with stdin."""
    values = parse_pairs(texts)
    require_distinct(values)
    return with_stdin(values)


def require_distinct(keys: Iterable[str]) -> None:
    """Raise `click.UsageError` for keys that differ only in case."""
    seen: set[str] = set()
    for key in keys:
        if key.lower() in seen:
            raise click.UsageError(f"{key!r} is given twice")
        seen.add(key.lower())


def with_stdin(values: Mapping[str, str]) -> dict[str, str]:
    """Replace the value '-' with the content of stdin, without its last line break."""
    if list(values.values()).count("-") > 1:
        raise click.UsageError("only one value can be read from stdin; give '-' once")
    return {key: _from_stdin() if value == "-" else value for key, value in values.items()}


def _from_stdin() -> str:
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")
