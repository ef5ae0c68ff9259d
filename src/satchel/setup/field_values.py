"""Values for a plugin's fields, checked and made the text that its file holds."""

import os
from collections.abc import Iterable
from typing import Any

from satchel.errors import DefinitionError
from satchel.formats import FIELD_NAME, ConfigField
from satchel.names import near_misses
from satchel.sources.configuration import convert_value


def field_of(fields: Iterable[ConfigField], key: str) -> ConfigField | None:
    """Return the field that is declared for a key; capitals do not count."""
    return next((item for item in fields if item.key == key.lower()), None)


def as_text(fields: tuple[ConfigField, ...], key: str, value: Any) -> str:
    """Return a value as a plugin's file holds it; a path is made absolute.

    Raises `DefinitionError`, which never quotes the value: for one that is not allowed, and for a
    key that is none of the declared ones, if there are any.
    """
    item = field_of(fields, key)
    if item is None and fields:
        near = near_misses(key.lower(), [known.key for known in fields])
        raise DefinitionError(
            f"no field {key!r} is declared",
            fix=f"did you mean {', '.join(near)}?" if near else _names(fields),
        )
    if not FIELD_NAME.fullmatch(key):
        raise DefinitionError(f"{key!r} is no key: letters, digits and '_' only")
    is_path = item is not None and item.type == "path"
    text = _plain(key, os.fspath(value) if isinstance(value, os.PathLike) else value)
    if not text:
        raise DefinitionError(f"the value of {key!r} is empty, which counts as none")
    if is_path and not text.startswith("~"):
        text = os.path.abspath(text)
    if item is not None:
        try:
            convert_value(item, text)
        except DefinitionError as problem:
            told = f"the value of {item.name!r} {problem.message}"
            raise DefinitionError(told, fix=problem.fix) from None
    return text


def _plain(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        fault = f"the value of {key!r} is a {type(value).__name__}, which a file cannot hold"
        raise DefinitionError(fault, fix="give a text, a number, true or false, or a path")
    return str(value)


def _names(fields: Iterable[ConfigField]) -> str:
    return f"the fields are {', '.join(item.name for item in fields)}"
