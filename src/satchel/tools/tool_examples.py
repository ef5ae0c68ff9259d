"""Examples: arguments with which `satchel test` calls a tool."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from satchel.errors import DefinitionError

Examples = tuple[Mapping[str, Any], ...]


def validate_examples(examples: Any, place: str) -> Examples:
    """Return a frozen copy of examples. Raises `DefinitionError` if they are not plain JSON."""
    if examples is None:
        return ()
    fix = 'for instance examples=[{"city": "Oslo"}]'
    is_list = isinstance(examples, list | tuple)
    if not is_list or not all(isinstance(item, Mapping) for item in examples):
        raise DefinitionError("examples must be a list of mappings", where=place, fix=fix)
    try:
        # The copy is plain JSON, as a model would send it.
        copies = json.loads(json.dumps(examples, default=_as_dict, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise DefinitionError(
            "examples contain a value that JSON cannot represent", where=place, fix=fix
        ) from None
    return tuple(map(_frozen, copies))


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def _frozen(value: Any) -> Any:
    match value:
        case dict():
            return MappingProxyType({key: _frozen(item) for key, item in value.items()})
        case list():
            return tuple(map(_frozen, value))
    return value
