"""Read a SKILL.md that needs no diagnostic, several times faster than `read_skill` reads it.

Whatever this module reads, `read_skill` reads in the same way and without a diagnostic. It leaves
everything else alone: tests compare both on all real files, and on random ones.
"""

from satchel.formats.simple_yaml import read_simple_yaml
from satchel.formats.yaml_builder import YamlValue
from satchel.formats.yaml_reader import UNPRINTABLE
from satchel.names import skill_name_fault
from satchel.settings import Limits
from satchel.text import may_have_hidden

COMPATIBILITY_LENGTH = 500
"""Longest compatibility note of the Agent Skills format, in characters."""

_FENCE = "---\n"
_LONGEST_LETTER = 4  # bytes in UTF-8
_TEXTS = frozenset({"name", "description", "license", "compatibility"})


def read_simple_skill(
    data: bytes, folder: str, limits: Limits
) -> tuple[dict[str, YamlValue], str] | None:
    """Return the fields and the body of a SKILL.md, or `None` if it is not simple."""
    parts = _split(data, limits)
    if parts is None:
        return None
    front, body = parts
    simple = read_simple_yaml(front, 2, limits.yaml_nodes) if limits.yaml_depth > 0 else None
    if simple is None:
        return None
    values = simple[0]
    is_plain = _TEXTS.issuperset(values) and all(type(value) is str for value in values.values())
    if not is_plain or values.get("name") != folder or skill_name_fault(folder):
        return None
    description, compatibility = values.get("description"), values.get("compatibility", "-")
    is_short = _is_within(description, limits.description_shown, limits.description_accepted)
    return (values, body) if is_short and _is_within(compatibility, COMPATIBILITY_LENGTH) else None


def _split(data: bytes, limits: Limits) -> tuple[str, str] | None:
    """Return the text between two plain fences, and the text below."""
    if len(data) > limits.skill_file or b"\0" in data or b"\r" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    end = text.find("\n---\n", len(_FENCE) - 1)
    if not text.startswith(_FENCE) or end < 0:
        return None
    front, body = text[len(_FENCE) : end + 1], text[end + 1 + len(_FENCE) :]
    is_doubtful = may_have_hidden(front) or UNPRINTABLE.search(front) is not None
    is_doubtful = is_doubtful or len(front) * _LONGEST_LETTER > limits.frontmatter
    if is_doubtful or not body or body.isspace() or "[" in front or "{" in front:
        return None
    return front, body


def _is_within(value: YamlValue, *lengths: int) -> bool:
    """Return whether a value is a text of at most these lengths, and not blank."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= min(lengths)
