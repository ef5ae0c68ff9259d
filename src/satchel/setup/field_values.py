"""Check values of a plugin's configuration fields, and convert them to text."""

import os
from collections.abc import Iterable
from typing import Any

from satchel.configuration.configuration import convert_value
from satchel.errors import DefinitionError
from satchel.formats.config_fields import FIELD_NAME, ConfigField
from satchel.names import near_misses


def field_of(fields: Iterable[ConfigField], key: str) -> ConfigField | None:
    """Return the declared field of a key, ignoring case."""
    return next((item for item in fields if item.key == key.lower()), None)


def as_text(fields: tuple[ConfigField, ...], key: str, value: Any) -> str:
    """Return a value as text for the plugin's file; paths become absolute.

    Raises `DefinitionError` for an invalid value, and for an undeclared key if the plugin declares
    fields. The message never contains the value.
    """
    item = field_of(fields, key)
    if item is None and fields:
        near = near_misses(key.lower(), [declared.key for declared in fields])
        names = ", ".join(declared.name for declared in fields)
        fix = f"did you mean {', '.join(near)}?" if near else f"the fields are {names}"
        raise DefinitionError(f"no field {key!r} is declared", fix=fix)
    if not FIELD_NAME.fullmatch(key):
        raise DefinitionError(f"{key!r} is not a valid key: use only letters, digits and '_'")
    is_path = item is not None and item.type == "path"
    text = _plain(key, os.fspath(value) if isinstance(value, os.PathLike) else value)
    if not text:
        raise DefinitionError(f"the value of {key!r} is empty, which counts as not set")
    if is_path and not text.startswith("~"):
        text = os.path.abspath(text)
    if item is not None:
        try:
            convert_value(item, text)
        except DefinitionError as problem:
            message = f"the value of {item.name!r} {problem.message}"
            raise DefinitionError(message, fix=problem.fix) from None
    return text


def _plain(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        message = f"the value of {key!r} is a {type(value).__name__}, which cannot be stored"
        raise DefinitionError(message, fix="give a string, a number, true or false, or a path")
    return str(value)
