"""A python-frontmatter handler for SKILL.md files."""

import re
from collections.abc import Mapping
from typing import Any

import yaml
from frontmatter import Post
from frontmatter.default_handlers import BaseHandler

from satchel.formats.front_matter import FrontmatterError
from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.formats.yaml_reader import YamlMap
from satchel.formats.yaml_repair import read_repairing
from satchel.settings import Limits

# Some editors leave a few blank lines at the top.
_OPENING = re.compile(r"\ufeff?(?:[ \t]*\n){0,8}---[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)
# Fields that may hold a list or mapping: quoting their value would hide a mistake.
_STRUCTURED = frozenset({"allowed-tools", "metadata", "hooks"})


class SkillHandler(BaseHandler):
    """Read and write the front matter of a SKILL.md with python-frontmatter.

    `frontmatter.load(path, handler=SkillHandler())` reads strict YAML whose scalars stay text.
    Diagnostics show `path`. After `load`, `reading` has the fields, the line of each key and all
    diagnostics. After `split`, `first_line` is the line where the front matter begins.
    """

    FM_BOUNDARY = _CLOSING
    START_DELIMITER = END_DELIMITER = "---"

    def __init__(self, path: str = "SKILL.md", limits: Limits | None = None) -> None:
        super().__init__()
        self.path, self.limits = path, limits or Limits()
        self.first_line = 1
        self.reading: ReadResult[YamlMap] = ReadResult(None, ())

    def detect(self, text: str) -> bool:
        """Return whether a text begins with a line `---`."""
        return _OPENING.match(text) is not None

    def split(self, text: str) -> tuple[str, str]:
        """Return the YAML between the fences and the text below. Raises `FrontmatterError`."""
        collector = DiagnosticCollector(self.path)
        opening = _OPENING.match(text)
        if opening is None:
            collector.add(
                "skill-no-frontmatter",
                "it does not begin with a line '---'",
                "Begin with a line '---', then 'name:' and 'description:', then a line '---'.",
                line=1,
            )
            raise FrontmatterError(collector.diagnostics)
        self.first_line = text.count("\n", 0, opening.end()) + 1
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            collector.add(
                "skill-frontmatter-open",
                "no second line '---' ends the front matter",
                "Put a line '---' below the last field.",
                line=self.first_line - 1 or 1,
            )
            raise FrontmatterError(collector.diagnostics)
        # The line end after the fence belongs to neither part.
        return text[opening.end() : closing.start()], text[closing.end() + 1 :]

    def load(self, fm: str) -> dict[str, Any]:
        """Return the fields of a front matter. Raises `FrontmatterError`."""
        self.reading = read_repairing(fm, self.path, self.limits, _STRUCTURED, self.first_line)
        if self.reading.value is None:
            raise FrontmatterError(self.reading.diagnostics)
        return dict(self.reading.value.values)

    def export(self, metadata: Mapping[str, object], **kwargs: Any) -> str:
        """Return the fields as YAML, in order; `kwargs` are options of `yaml.dump`."""
        options = {"sort_keys": False, "allow_unicode": True, "width": float("inf"), **kwargs}
        text: str = yaml.dump(dict(metadata), Dumper=_NoAnchors, **options)
        return text

    def format(self, post: Post, **kwargs: Any) -> str:
        """Return the text of a SKILL.md; the content of the post is kept exactly."""
        return f"---\n{self.export(post.metadata, **kwargs)}---\n{post.content}"


class _NoAnchors(yaml.SafeDumper):
    """Write no anchors: the format does not allow them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - pyyaml's signature
        return True
