"""The frontmatter of a SKILL.md with the types that a client reads in it.

Satchel itself keeps every scalar as text. The skills extension has clients parse the YAML and
compare, so here a plain `3` is a number, as in the core schema of YAML 1.2.
"""

import re
from typing import Any

from satchel.formats.front_matter import split_front_matter
from satchel.formats.yaml_reader import read_yaml
from satchel.settings import Limits

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True} | {
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_BASED = re.compile(r"0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")


def typed_front_matter(data: bytes, limits: Limits) -> dict[str, Any] | None:
    """Return the frontmatter of a SKILL.md, `None` where a YAML parser would not take it."""
    front = split_front_matter(data, "", limits).value
    # What is read so is free of aliases and tags, and not nested too deeply for the parser.
    if front is None or read_yaml(front.text, "", limits).value is None:
        return None
    import yaml  # lazy: heavy third-party

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = _value(yaml.compose(front.text, Loader=loader))
    except (yaml.YAMLError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _value(node: Any) -> Any:
    # By name, so that the heavy package stays out of this module's head.
    match type(node).__name__:
        case "MappingNode":
            return {str(key.value): _value(value) for key, value in node.value}
        case "SequenceNode":
            return [_value(item) for item in node.value]
        case _:
            return _scalar(node.value) if not node.style else node.value


def _scalar(text: str) -> Any:
    """Return what a plain scalar is; what JSON has no word for stays text."""
    if text in _NULLS:
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
