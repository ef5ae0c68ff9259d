"""A fingerprint of configuration values."""

from collections.abc import Mapping
from typing import Any


def fingerprint(values: Mapping[str, Any]) -> str:
    """Return a hash that changes with any value.

    Python salts it for each process, so it reveals no secret.
    """
    return f"{hash(tuple(map(_text, sorted(values.items())))):x}"


def _text(item: tuple[str, Any]) -> str:
    try:
        return repr(item)
    except Exception:
        return f"{item[0]} {id(item[1]):x}"  # A value may have no working repr.
