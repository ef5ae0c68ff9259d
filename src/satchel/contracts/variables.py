"""Values of the state in the system prompt: `{{VARIABLE}}` and what takes its place."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from satchel.contracts.contract import ToolContract
from satchel.contracts.records import VARIABLE
from satchel.text import visible

_PLACE = re.compile(r"\{\{(" + VARIABLE.pattern + r")\}\}")
# Inside JSON, so that a value can neither close a tag nor open a variable.
_ESCAPES = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the variables that a text has places for, each once."""
    return tuple(dict.fromkeys(_PLACE.findall(text)))


def keys_of(contracts: Iterable[ToolContract]) -> dict[str, tuple[str, ...]]:
    """Return each prompt variable with the keys that it stands for: of several the first counts."""
    found: dict[str, dict[str, None]] = {}
    for contract in contracts:
        for item in contract.state_effects:
            if item.prompt_template_var is not None:
                found.setdefault(item.prompt_template_var, {})[item.key] = None
    return {name: tuple(keys) for name, keys in found.items()}


def filled(text: str, value_of: Callable[[str], str]) -> str:
    """Put values in their places, once: what looks like a place in a value is left as it is."""
    return _PLACE.sub(lambda found: value_of(found[1]), text)


def as_prompt_text(value: Any, most: int) -> str:
    """Write a value as JSON that can stand in a prompt, of `most` characters; `None` is `""`.

    Raises `ValueError` for a value that contains itself or is nested too deeply.
    """
    if value is None:
        return ""
    try:
        text = json.dumps(value, ensure_ascii=False, default=_named)
    except (RecursionError, TypeError) as problem:
        raise ValueError("it cannot be written as JSON") from problem
    text = _escaped(visible(text))
    if len(text) > most:
        return f"{text[:most]} [cut: {len(text) - most} of {len(text)} characters left out]"
    return text


def _escaped(text: str) -> str:
    for letter, escape in _ESCAPES.items():
        text = text.replace(letter, escape)
    # JSON itself never has two braces in a row that open, so these stand in a text.
    return text.replace("{{", r"{\u007b")


def _named(value: Any) -> str:
    """Stand for what JSON has no word for; its own text may be anything."""
    return f"({type(value).__name__})"
