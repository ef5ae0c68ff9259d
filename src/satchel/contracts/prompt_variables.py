"""Fill `{{VARIABLE}}` in prompt texts with values of the session's state."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from satchel.contracts.tool_contract import ToolContract
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.text import replace_hidden

# A value must not close a tag or start a variable. The escaped text is the same JSON.
_ESCAPES = (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026"), ("{{", r"{\u007b"))
_NOT_JSON = "(a value that cannot be written as JSON)"


class Filled(NamedTuple):
    """A text with its variables filled, and diagnostics for unknown variables."""

    text: str
    diagnostics: tuple[Diagnostic, ...]


def keys_of(contracts: Iterable[ToolContract]) -> dict[str, tuple[str, ...]]:
    """Map each prompt variable to its state keys; the first key fills it."""
    keys: dict[str, dict[str, None]] = {}
    for contract in contracts:
        for item in contract.state_effects:
            if item.prompt_template_var is not None:
                keys.setdefault(item.prompt_template_var, {})[item.key] = None
    return {name: tuple(names) for name, names in keys.items()}


def values_of(
    names: Iterable[str], keys: Mapping[str, tuple[str, ...]], state: Mapping[str, Any], most: int
) -> dict[str, str]:
    """Return the values of known variables, each cut to `most` characters."""
    return {name: as_prompt_text(state.get(keys[name][0]), most) for name in names if name in keys}


def unknown_variable(name: str, path: str) -> Diagnostic:
    """Report a variable that no contract fills."""
    return make_diagnostic(
        "prompt-variable-unknown",
        Where(path),
        f"no contract fills {{{{{name}}}}}; it is left empty",
        "name it in a ToolStateEffect, or put spaces around the name to show it literally",
    )


def as_prompt_text(value: Any, most: int) -> str:
    """Return a value as JSON that is safe in a prompt; `None` gives `""`."""
    if value is None:
        return ""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_type_name)
    except Exception:  # A tool may store any object.
        return _NOT_JSON
    text = replace_hidden(text, _escaped)
    for letters, escape in _ESCAPES:
        text = text.replace(letters, escape)
    if len(text) > most:
        return f"{text[:most]} [cut: {len(text) - most} of {len(text)} characters left out]"
    return text


def _escaped(letter: str) -> str:
    return json.dumps(letter)[1:-1]


def _type_name(value: Any) -> str:
    # Not `str(value)`: the text of an arbitrary object is not trusted.
    return f"({type(value).__name__})"
