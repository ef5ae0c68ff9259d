"""Values of the state in the system prompt: `{{VARIABLE}}` and what takes its place."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from satchel.contracts.contract_parts import VARIABLE
from satchel.contracts.tool_contract import ToolContract
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.text import replace_hidden

_PLACE = re.compile(r"\{\{(" + VARIABLE.pattern + r")\}\}")
# So that a value can neither close a tag nor open a variable; it stays the same JSON.
_ESCAPES = (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026"), ("{{", r"{\u007b"))
_UNFIT = "(a value that JSON cannot carry)"


class Filled(NamedTuple):
    """A text whose variables have their values, and what could not be filled in."""

    text: str
    diagnostics: tuple[Diagnostic, ...]


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the variables that a text has places for, each once."""
    return tuple(dict.fromkeys(_PLACE.findall(text)))


def keys_of(contracts: Iterable[ToolContract]) -> dict[str, tuple[str, ...]]:
    """Return each prompt variable with the keys that want to fill it; the first of them does."""
    found: dict[str, dict[str, None]] = {}
    for contract in contracts:
        for item in contract.state_effects:
            if item.prompt_template_var is not None:
                found.setdefault(item.prompt_template_var, {})[item.key] = None
    return {name: tuple(keys) for name, keys in found.items()}


def values_of(
    names: Iterable[str], keys: Mapping[str, tuple[str, ...]], state: Mapping[str, Any], most: int
) -> dict[str, str]:
    """Return what stands for variables now, each of `most` characters; for unknown ones nothing."""
    return {name: as_prompt_text(state.get(keys[name][0]), most) for name in names if name in keys}


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """Put values in their places, once: what looks like a place in a value is left as it is."""
    return _PLACE.sub(lambda found: values.get(found[1], ""), text) if "{{" in text else text


def unknown_variable(name: str, path: str) -> Diagnostic:
    """Report a place that nothing is put into."""
    return make_diagnostic(
        "prompt-variable-unknown",
        Where(path),
        f"no contract fills {{{{{name}}}}}; it is left empty",
        "name it in a ToolStateEffect, or put blanks around the name to show it as it is",
    )


def as_prompt_text(value: Any, most: int) -> str:
    """Write a value as JSON that can stand in a prompt; `None` is `""`."""
    if value is None:
        return ""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_named)
    except Exception:  # what a tool keeps may be anything
        return _UNFIT
    text = replace_hidden(text, _seen)
    for letters, escape in _ESCAPES:
        text = text.replace(letters, escape)
    if len(text) > most:
        return f"{text[:most]} [cut: {len(text) - most} of {len(text)} characters left out]"
    return text


def _seen(letter: str) -> str:
    """Write a letter that cannot be seen as JSON's escape for it."""
    return json.dumps(letter)[1:-1]


def _named(value: Any) -> str:
    """Stand for what JSON has no word for; its own text may be anything."""
    return f"({type(value).__name__})"
