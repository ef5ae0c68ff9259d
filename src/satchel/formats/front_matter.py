"""Where the frontmatter of a SKILL.md begins and ends."""

import re
from dataclasses import dataclass

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.utf8_text import decode
from satchel.settings import Limits

# Some editors leave a blank line or two on top; a page of them is no longer a slip.
_OPENING = re.compile(r"(?:[ \t]*\n){0,8}---[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A SKILL.md in two: the YAML between the fences, and the Markdown below them."""

    text: str
    body: str
    first_line: int
    """The line of the file, counted from 1, on which `text` begins."""


def split_front_matter(data: bytes, path: str, limits: Limits) -> ReadResult[FrontMatter]:
    """Decode a SKILL.md and split it at its fences, lines that are only `---`."""
    problems = DiagnosticCollector(path)
    if len(data) > limits.skill_file:
        problems.add(
            "skill-too-large",
            f"it has {len(data):,} bytes, more than {limits.skill_file:,} (limit skill_file)",
            "Move long parts into files beside SKILL.md and name them there.",
        )
        return ReadResult(None, problems.found)
    decoded = decode(data, path, "skill-not-utf8")
    if decoded.value is None:
        return ReadResult(None, decoded.diagnostics)
    return _split(decoded.value, problems)


def _split(text: str, problems: DiagnosticCollector) -> ReadResult[FrontMatter]:
    opening = _OPENING.match(text)
    if opening is None:
        problems.add(
            "skill-no-frontmatter",
            "it does not begin with a line '---'",
            "Begin with a line '---', then 'name:' and 'description:', then a line '---'.",
            line=1,
        )
        return ReadResult(None, problems.found)
    first_line = text.count("\n", 0, opening.end()) + 1
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        problems.add(
            "skill-frontmatter-open",
            "no second line '---' ends the frontmatter",
            "Put a line '---' below the last field.",
            line=first_line - 1 or 1,
        )
        return ReadResult(None, problems.found)
    body = text[closing.end() :].removeprefix("\n")
    return ReadResult(FrontMatter(text[opening.end() : closing.start()], body, first_line), ())
