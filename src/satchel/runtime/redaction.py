"""Remove injected values, secrets and the home folder from text for a log."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"""(?ix)
    ( (?: api[_-]?key | access[_-]?key | token | secret | passw(?:or)?d | authorization )
      ["']? \s* [=:] \s* (?: bearer \s+ | basic \s+ )? ["']? )
    (?: (?<=") [^"\n]+ | (?<=') [^'\n]+ | [^\s"',;}]+ )
    """
)
_IN_ADDRESS = re.compile(r"(://[^\s:/@]*:)[^\s/@]+(@)")
_MARK = "[redacted]"
_SHORTEST = 4
"""Shorter values occur everywhere, and are easy to guess."""


def redacted(text: str, injected: Mapping[str, Any]) -> str:
    """Return a text without secrets, with `~` for the home folder and `.` for the current one."""
    for value in sorted({*_texts(injected.values()), *_environment()}, key=len, reverse=True):
        for spelling in (value, repr(value)[1:-1]):
            text = text.replace(spelling, _MARK)
    text = _ASSIGNED.sub(rf"\1{_MARK}", text)
    text = _IN_ADDRESS.sub(rf"\1{_MARK}\2", text)
    for folder, short in ((current_folder(), "."), (os.path.expanduser("~"), "~")):
        if len(folder) > 1:
            text = text.replace(folder, short)
    return text


def current_folder() -> str:
    """Return the current folder, `""` if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _environment() -> Iterable[str]:
    return (
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name)
    )


def _texts(values: Iterable[Any]) -> Iterable[str]:
    """Yield the texts inside values, also of pydantic's secrets."""
    for value in values:
        match value:
            case str() if len(value) >= _SHORTEST:
                yield value
            case bytes() | bytearray():
                yield from _texts([bytes(value).decode(errors="replace")])
            case Mapping():
                yield from _texts((*value.keys(), *value.values()))
            case list() | tuple() | set() | frozenset():
                yield from _texts(value)
            case _ if hasattr(type(value), "get_secret_value"):
                yield from _texts([value.get_secret_value()])
            case int() if not isinstance(value, bool) and len(str(value)) >= _SHORTEST:
                yield str(value)
            case _ if is_dataclass(value) or hasattr(type(value), "model_fields"):
                yield from _texts(getattr(value, "__dict__", {}).values())
