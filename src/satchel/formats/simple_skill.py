"""Read a SKILL.md with simple front matter, several times faster than by a YAML parser.

Whatever this module reads, `read_any_skill` reads in the same way. It leaves everything else
alone: tests compare both on all real files, and on random ones.
"""

import re
from typing import NamedTuple

from satchel.formats.simple_yaml import SIMPLE_DEPTH, read_simple_yaml
from satchel.formats.yaml_builder import KeyPath, YamlValue
from satchel.formats.yaml_reader import MAX_BRACKETS
from satchel.names import skill_name_fault
from satchel.settings import Limits
from satchel.text import may_have_hidden

COMPATIBILITY_LENGTH = 500
"""Longest compatibility note of the Agent Skills format, in characters."""

_FENCE = b"---\n"
_CLOSING = b"\n---\n"
_LONGEST_LETTER = 4  # bytes in UTF-8
_PLAIN_FIELDS = frozenset({"name", "description", "license", "compatibility", "metadata"})
_ONLY_TEXTS = frozenset({str})
_INK = re.compile(rb"[^\s\x1c-\x1f\x80-\xff]")


class SimpleSkill(NamedTuple):
    """A SKILL.md with simple YAML between plain fences."""

    fields: dict[str, YamlValue]
    lines: dict[KeyPath, int]
    body: bytes
    """The text below the fences, which is UTF-8 and not blank."""

    def is_in_order(self, folder: str, limits: Limits, others: frozenset[str]) -> bool:
        """Return whether it is all in order for a folder of that name.

        It may also have fields that are in `others`, if they are texts.
        """
        values = self.fields
        if values.get("name") != folder or skill_name_fault(folder):
            return False
        for key, value in values.items():
            if key == "metadata":
                if type(value) is not dict or not _ONLY_TEXTS.issuperset(map(type, value.values())):
                    return False
            elif type(value) is not str or not (key in _PLAIN_FIELDS or key in others):
                return False
        longest = min(limits.description_shown, limits.description_accepted)
        return _is_within(values.get("description", ""), longest) and _is_within(
            values.get("compatibility", "-"), COMPATIBILITY_LENGTH
        )


def read_simple_skill(data: bytes, limits: Limits) -> SimpleSkill | None:
    """Return the parts of a SKILL.md, or `None` if it is not simple."""
    end = data.find(_CLOSING, len(_FENCE) - 1)
    if end < 0 or not data.startswith(_FENCE) or b"\0" in data or b"\r" in data:
        return None
    body = data[end + len(_CLOSING) :]
    try:
        front = data[len(_FENCE) : end + 1].decode()
        if not body.isascii():
            body.decode()
    except UnicodeDecodeError:
        return None
    is_too_long = len(data) > limits.skill_file or len(front) > min(
        limits.frontmatter // _LONGEST_LETTER, MAX_BRACKETS
    )
    is_doubtful = not front.isascii() and may_have_hidden(front)
    if is_too_long or is_doubtful or limits.yaml_depth < SIMPLE_DEPTH or not _INK.search(body):
        return None
    simple = read_simple_yaml(front, 2, limits.yaml_nodes)
    return SimpleSkill(*simple, body) if simple else None


def _is_within(value: YamlValue, length: int) -> bool:
    """Return whether a value is a text of at most this length, and not blank."""
    return isinstance(value, str) and len(value) <= length and bool(value.strip())
