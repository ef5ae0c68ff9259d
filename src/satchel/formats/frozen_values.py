"""Values that nobody can change, and their plain form for JSON."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


def frozen(value: Any) -> Any:
    """Copy a value so that nobody can change it: mappings to be read only, tuples for lists."""
    match value:
        case Mapping():
            return MappingProxyType({key: frozen(item) for key, item in value.items()})
        case list() | tuple():
            return tuple(map(frozen, value))
    return value


def to_plain(value: Any) -> Any:
    """Copy a frozen value into plain dicts and lists, as JSON wants them."""
    match value:
        case Mapping():
            return {key: to_plain(item) for key, item in value.items()}
        case list() | tuple():
            return [*map(to_plain, value)]
    return value
