"""Cut values that are nested too deep out of messages, so that one costs only its own tool.

JSON parsers refuse a whole message for one such value: a list of tools for the schema of one tool.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

from satchel.tools.callables import in_thread

CUT = 150
"""Levels that are kept of a message: more than of a schema, fewer than parsers read."""

_SHORTEST = 2 * CUT
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)


def is_too_deep(data: bytes) -> bool:
    """Return whether a parser refuses a text because it is nested too deep."""
    from pydantic_core import from_json

    if len(data) < _SHORTEST:
        return False
    try:
        from_json(data)
    except ValueError as problem:
        return "recursion limit" in str(problem)
    return False


def cut_deep(data: bytes) -> bytes:
    """Return a JSON text with `null` in place of everything below the level `CUT`.

    Run it in a thread: a large text takes long.
    """
    kept, depth, start = [], 0, 0
    for token in _TOKENS.finditer(data):
        match token[0][:1]:
            case b"{" | b"[":
                depth += 1
                if depth == CUT + 1:
                    kept += [data[start : token.start()], b"null"]
            case b"}" | b"]":
                if depth == CUT + 1:
                    start = token.end()
                depth -= 1
    return b"".join((*kept, data[start:]))


async def within_depth(data: bytes) -> bytes:
    """Return a text, cut if a parser would refuse it for its depth."""
    return await in_thread(lambda: cut_deep(data)) if is_too_deep(data) else data


async def lines_within_depth(parts: Any, longest: int) -> AsyncIterator[bytes]:
    """Yield the parts of an event stream, with the data of each event cut if it is too deep.

    A line of more than `longest` bytes is passed on as it comes.
    """
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield b"data:" + await within_depth(line[5:]) + b"\n"
            else:
                yield line + b"\n"
        if len(rest) > longest:
            yield rest
            rest = b""
    if rest:
        yield rest
