"""Making a frozen value quickly, where one is made for every call.

The `__init__` of a frozen dataclass takes several times as long as a small tool.
"""

from typing import Any, TypeVar

T = TypeVar("T")


def construct_fast(cls: type[T], **values: Any) -> T:
    """Make a value of a frozen dataclass; what is not named stays the default of its class.

    Only for dataclasses without slots and without `__post_init__`. A field with a default
    factory must be named.
    """
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", values)
    return made
