"""Reading the arguments that a model sent."""

from collections.abc import Mapping
from typing import Any

from satchel.tools.argument_errors import ArgumentError, ArgumentFault

_PLAIN = frozenset({int, float, bool, type(None)})


def read_arguments(tool: str, arguments: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    """Return arguments as a mapping; models that have none to send also send `""` or `null`.

    Raises `ArgumentError`.
    """
    if isinstance(arguments, str):
        arguments = _parsed(tool, arguments)
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        if not isinstance(arguments, Mapping):
            raise ArgumentError(tool, [ArgumentFault("", "they must be one JSON object")])
        arguments = dict(arguments)
    for key, value in arguments.items():
        if _is_plain(key) and _is_plain(value) and type(key) is str:
            continue
        if not isinstance(key, str):
            raise ArgumentError(tool, [ArgumentFault("", "they must be one JSON object")])
        if _is_broken(key) or _is_broken(value):
            raise ArgumentError(tool, [ArgumentFault("", "their text holds a broken character")])
    return arguments


def _parsed(tool: str, text: str) -> Any:
    from pydantic_core import from_json

    try:
        return from_json(text.strip() or "{}", allow_inf_nan=False)
    except ValueError:
        raise ArgumentError(tool, [ArgumentFault("", "they are not valid JSON")]) from None


def _is_broken(value: Any) -> bool:
    """Tell whether some text in a value cannot be sent anywhere, such as half of an emoji."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
    elif isinstance(value, dict):
        for key, item in value.items():
            if not (_is_plain(key) and _is_plain(item)) and (_is_broken(key) or _is_broken(item)):
                return True
    elif isinstance(value, list | tuple):
        return any(map(_is_broken, value))
    return False


def _is_plain(value: Any) -> bool:
    """Tell quickly that a value is fine; nearly every one is."""
    return value.isascii() if type(value) is str else type(value) in _PLAIN
