"""Examples: arguments that a tool is called with to see that it works."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from satchel.errors import DefinitionError

Examples = tuple[Mapping[str, Any], ...]


def good_examples(given: Any, place: str) -> Examples:
    """Return a frozen copy of examples. Raises `DefinitionError` for what no model could send."""
    if given is None:
        return ()
    if not isinstance(given, list | tuple) or not all(isinstance(item, Mapping) for item in given):
        raise _not_examples("are a list of mappings", place)
    try:
        # The copy is what a model would have sent: plain JSON.
        copies = json.loads(json.dumps(given, default=_as_dict, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise _not_examples("hold what JSON cannot carry", place) from None
    return tuple(map(_frozen, copies))


def _not_examples(fault: str, place: str) -> DefinitionError:
    return DefinitionError(
        f"examples {fault}", where=place, fix='for instance examples=[{"city": "Oslo"}]'
    )


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
