"""What a schema can no longer say by keywords, said in words."""

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from satchel.text import shorten, visible

_SENTENCES = MappingProxyType(
    {
        "default": "Default: {}.",
        "format": "Format: {}.",
        "maxLength": "Length at most {}.",
        "minLength": "Length at least {}.",
        "pattern": "Matches the pattern {}.",
        "uniqueItems": "No duplicates.",
    }
)
_NAMES = frozenset({"format", "pattern"})
"""Keywords whose values are read as they are, not as JSON strings."""

_LONGEST_VALUE = 200


def about(schema: Mapping[str, Any], keywords: Iterable[str]) -> list[str]:
    """Say those of the keywords that a schema has and that restrict or help."""
    return [
        _SENTENCES[key].format(_plain(schema[key]) if key in _NAMES else _in_json(schema[key]))
        for key in keywords
        if schema.get(key) is not None and (key, schema[key]) != ("uniqueItems", False)
    ]


def join_texts(*texts: Any) -> str:
    """Join what is there into one text, without saying a thing twice."""
    said: list[str] = []
    for text in texts:
        if isinstance(text, str) and text.strip() and not any(text in one for one in said):
            said.append(text.rstrip())
    return " ".join(said)


def _in_json(value: Any) -> str:
    """Write a value as JSON, shortened, and fit for a prompt."""
    text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    return shorten(visible(text), _LONGEST_VALUE)


def _plain(value: Any) -> str:
    return shorten(visible(value), _LONGEST_VALUE) if isinstance(value, str) else _in_json(value)
