"""Convert values to read-only copies, and back to plain values for JSON."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def frozen(value: Any) -> Any:
    """Return a read-only copy: mapping proxies for mappings, tuples for lists."""
    # Most are texts and dicts, and the check for any mapping is slow.
    if isinstance(value, str):
        return value
    if type(value) is dict:
        if not value:
            return _NOTHING
        return MappingProxyType({key: frozen(item) for key, item in value.items()})
    match value:
        case Mapping():
            return MappingProxyType({key: frozen(item) for key, item in value.items()})
        case list() | tuple():
            return tuple(map(frozen, value))
    return value


def to_plain(value: Any) -> Any:
    """Return a copy with plain dicts and lists, for JSON."""
    match value:
        case Mapping():
            return {key: to_plain(item) for key, item in value.items()}
        case list() | tuple():
            return [*map(to_plain, value)]
    return value
