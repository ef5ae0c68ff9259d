"""Read the front matter of a SKILL.md with typed scalars.

Satchel itself keeps every scalar as text. With the MCP skills extension, clients parse the YAML
and compare, so here a plain `3` is a number, as in the core schema of YAML 1.2.
"""

import re
from typing import Any

from satchel.formats.front_matter import split_front_matter
from satchel.formats.yaml_builder import NULLS
from satchel.formats.yaml_reader import read_yaml
from satchel.settings import Limits

_BOOLEANS = {"true": True, "True": True, "TRUE": True} | {
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_BASED = re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")


def typed_front_matter(data: bytes, limits: Limits) -> dict[str, Any] | None:
    """Return the front matter of a SKILL.md, `None` if it is not valid YAML."""
    front = split_front_matter(data, "", limits).value
    # Text that passes `read_yaml` has no aliases or tags, and is safe for the parser.
    if front is None or read_yaml(front.text, "", limits).value is None:
        return None
    import yaml  # lazy: heavy third-party

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        fields = _value(yaml.compose(front.text, Loader=loader))
    except (yaml.YAMLError, ValueError):
        return None
    return fields if isinstance(fields, dict) else None


def _value(node: Any) -> Any:
    # By name, so that this module need not import the heavy package at the top.
    match type(node).__name__:
        case "MappingNode":
            return {str(key.value): _value(value) for key, value in node.value}
        case "SequenceNode":
            return [_value(item) for item in node.value]
        case _:
            return _scalar(node.value) if not node.style else node.value


def _scalar(text: str) -> Any:
    """Return the typed value of a plain scalar; values that JSON lacks stay text."""
    if text in NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text
