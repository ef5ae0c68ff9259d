"""A project: a folder whose skills, plugins and settings others may have written."""

import os
from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum

from satchel.errors import DefinitionError
from satchel.files.file_reader import real_path
from satchel.lazy_dataclass import dataclass

SERVERS_FILE = ".mcp.json"
"""The file with a project's MCP servers, which other clients read too."""


class TrustLevel(StrEnum):
    """What the user allows for a project or a folder."""

    NONE = "none"
    """Nothing of it is loaded."""
    DATA = "data"
    """Its skills, notes and descriptions are used. Nothing is imported, started or connected."""
    CODE = "code"
    """Its plugins are imported, its servers are started, and its settings count, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder with skills, plugins, a `satchel.toml` and a `.mcp.json`, and how far it is trusted.

    Without `trust`, the record of `satchel trust` decides. `"none"`, `"data"` and `"code"` decide
    instead of the record, for all content and for later edits. `variables` are the environment
    variables that its files may use, in addition to the recorded ones. `claude` adds
    `.claude/skills`. Raises `DefinitionError` for an empty path and an unknown level.
    """

    path: str | os.PathLike[str] = field(kw_only=False)
    trust: str | None = None
    variables: Iterable[str] = ()
    claude: bool = False
    folder: str = field(init=False)
    """The absolute path without links: a link that appears later leads to another project."""

    def __post_init__(self) -> None:
        text = os.fspath(self.path)
        if not text.strip():
            raise DefinitionError("the project has an empty path", fix="use '.' for this one")
        levels = [level.value for level in TrustLevel]
        if self.trust is not None and self.trust not in levels:
            raise DefinitionError(
                f"the trust of a project is one of {', '.join(levels)}, not {self.trust!r}",
                fix="leave it out to use the record of 'satchel trust'",
            )
        names = (self.variables,) if isinstance(self.variables, str) else tuple(self.variables)
        object.__setattr__(self, "variables", names)
        folder = real_path(os.path.abspath(os.path.expanduser(text)))
        object.__setattr__(self, "folder", folder)
