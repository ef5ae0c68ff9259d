"""Describe schema keywords in a sentence, for providers that do not support them."""

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
"""Keywords whose values are written without JSON quotes."""

_LONGEST_VALUE = 200


def about(schema: Mapping[str, Any], keywords: Iterable[str]) -> list[str]:
    """Return a sentence for each of the keywords that a schema has."""
    return [
        _SENTENCES[key].format(_plain(schema[key]) if key in _NAMES else _in_json(schema[key]))
        for key in keywords
        if schema.get(key) is not None and (key, schema[key]) != ("uniqueItems", False)
    ]


def join_texts(*texts: Any) -> str:
    """Join texts, without empty ones and repetitions."""
    parts: list[str] = []
    for text in texts:
        if isinstance(text, str) and text.strip() and not any(text in part for part in parts):
            parts.append(text.rstrip())
    return " ".join(parts)


def _in_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    return shorten(visible(text), _LONGEST_VALUE)


def _plain(value: Any) -> str:
    return shorten(visible(value), _LONGEST_VALUE) if isinstance(value, str) else _in_json(value)
