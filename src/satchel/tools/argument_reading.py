"""Read the arguments that a model sent."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from satchel.tools.argument_errors import ArgumentError, ArgumentFault

if TYPE_CHECKING:
    from satchel.tools.base_tool import Tool

_PLAIN = frozenset({int, float, bool, type(None)})


def read_arguments(tool: str, arguments: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return the arguments as a mapping; `""` and `null` are no arguments, as models send them.

    Raises `ArgumentError`.
    """
    if isinstance(arguments, str):
        arguments = _parse(tool, arguments)
        if type(arguments) is dict:  # the parser refuses invalid characters
            return arguments
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        if not isinstance(arguments, Mapping):
            raise ArgumentError(tool, [ArgumentFault("", "they must be one JSON object")])
        arguments = dict(arguments)
    for key, value in arguments.items():
        kind = type(value)  # not `_is_plain`: this runs in each call
        is_plain = value.isascii() if kind is str else kind in _PLAIN
        if is_plain and type(key) is str and key.isascii():
            continue
        if not isinstance(key, str):
            raise ArgumentError(tool, [ArgumentFault("", "they must be one JSON object")])
        if _has_surrogate(key) or _has_surrogate(value):
            fault = ArgumentFault("", "their text contains an invalid Unicode character")
            raise ArgumentError(tool, [fault])
    return arguments


def checked_arguments(tool: "Tool", arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return the arguments that a model sent, validated by the tool. Raises `ArgumentError`."""
    return tool.check(read_arguments(tool.name, arguments))


@cache
def _parser() -> Callable[..., Any]:
    from pydantic_core import from_json

    return from_json


def _parse(tool: str, text: str) -> Any:
    try:
        return _parser()(text.strip() or "{}", allow_inf_nan=False)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        raise ArgumentError(tool, [ArgumentFault("", "they are not valid JSON")]) from None


def _has_surrogate(value: Any) -> bool:
    """Return whether text in a value has a lone surrogate: UTF-8 cannot encode it."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
    elif isinstance(value, dict):
        for key, item in value.items():
            if _is_plain(key) and _is_plain(item):
                continue
            if _has_surrogate(key) or _has_surrogate(item):
                return True
    elif isinstance(value, list | tuple):
        return any(map(_has_surrogate, value))
    return False


def _is_plain(value: Any) -> bool:
    """Return whether a value is surely fine; a fast path for nearly all values."""
    return value.isascii() if type(value) is str else type(value) in _PLAIN
