"""Split and load the front matter of a SKILL.md with the `SkillHandler`."""

from contextlib import suppress
from typing import TYPE_CHECKING

from satchel.diagnostics import Diagnostic
from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.utf8_text import decode
from satchel.formats.yaml_reader import YamlMap
from satchel.lazy_dataclass import dataclass
from satchel.settings import Limits

if TYPE_CHECKING:
    from satchel.formats.skill_handler import SkillHandler


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The two parts of a SKILL.md: the YAML between the fences and the Markdown below."""

    text: str
    body: str
    first_line: int
    """The line of the file, counted from 1, on which `text` begins."""


class FrontmatterError(ValueError):
    """The front matter cannot be read; `diagnostics` has the reasons."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__("\n".join(map(str, diagnostics)))
        self.diagnostics = diagnostics


def split_front_matter(data: bytes, path: str, limits: Limits) -> ReadResult[FrontMatter]:
    """Decode a SKILL.md and split it at its fences, which are lines of only `---`."""
    if len(data) > limits.skill_file:
        collector = DiagnosticCollector(path)
        collector.add(
            "skill-too-large",
            f"it has more than {limits.skill_file:,} bytes (limit skill_file)",
            "Move long parts into files beside SKILL.md and name them there.",
        )
        return ReadResult(None, collector.diagnostics)
    decoded = decode(data, path, "skill-not-utf8")
    if decoded.value is None:
        return ReadResult(None, decoded.diagnostics)
    handler = _handler(path, limits)
    try:
        text, body = handler.split(decoded.value)
    except FrontmatterError as error:
        return ReadResult(None, error.diagnostics)
    return ReadResult(FrontMatter(text, body, handler.first_line), ())


def load_frontmatter(front: FrontMatter, path: str, limits: Limits) -> ReadResult[YamlMap]:
    """Parse the fields of a front matter, with the line of each key."""
    handler = _handler(path, limits)
    handler.first_line = front.first_line
    with suppress(FrontmatterError):  # `handler.reading` has the diagnostics
        handler.load(front.text)
    return handler.reading


def _handler(path: str, limits: Limits) -> "SkillHandler":
    # Lazy: it loads python-frontmatter and YAML, which are needed only for skills.
    from satchel.formats.skill_handler import SkillHandler

    return SkillHandler(path, limits)
