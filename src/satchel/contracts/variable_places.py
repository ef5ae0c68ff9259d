"""Find and fill the places of variables in a text."""

import re
from collections.abc import Mapping

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""The name of a prompt variable."""

_PLACE = re.compile(r"\{\{(" + VARIABLE.pattern + r")\}\}")


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the variables in a text, without duplicates."""
    return tuple(dict.fromkeys(_PLACE.findall(text)))


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """Insert the values. A value that contains `{{NAME}}` is not expanded again."""
    return _PLACE.sub(lambda match: values.get(match[1], ""), text) if "{{" in text else text
