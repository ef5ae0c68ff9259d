"""The formats of plugin folders, and what differs between them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

MANIFEST_FILE = "toolkit.yaml"

NAMESPACE = "dev.satchel"
"""The name of our extensions to open plugins, and of the folder in which they are."""


class PluginFormat(StrEnum):
    """What makes a folder a plugin: its manifest, by its path inside the folder."""

    OPEN = "plugin.json"
    TOOLKIT = MANIFEST_FILE
    CLAUDE = ".claude-plugin/plugin.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatPolicy:
    """What loading a plugin folder does differently from one format to another."""

    code_folder: str = NAMESPACE
    """The folder with toolkit.yaml and the Python files, by its path inside the plugin."""
    has_code: bool = True
    files: frozenset[str] = frozenset()
    """Files that are always read, beside those in the code folder."""
    is_judged_by_content: bool = False
    """Whether the same files always give the same finding, so that it can be reused."""
    is_contained: bool = True
    """Whether links among its skills must stay inside the plugin."""
    has_strict_skills: bool = False
    """Whether only folders directly in `skills` are skills, and none that breaks the format."""
    has_extension: bool = False
    """Whether the code is an extension: while it is broken, the rest of the plugin is served."""


TOOLKIT = FormatPolicy(code_folder="", is_judged_by_content=True, is_contained=False)

_POLICIES: Mapping[PluginFormat, FormatPolicy] = MappingProxyType(
    {
        PluginFormat.OPEN: FormatPolicy(
            files=frozenset({PluginFormat.OPEN, "mcp.json", "tools.py"}),
            has_strict_skills=True,
            has_extension=True,
        ),
        PluginFormat.TOOLKIT: TOOLKIT,
        PluginFormat.CLAUDE: FormatPolicy(
            has_code=False, files=frozenset({PluginFormat.CLAUDE, ".mcp.json"})
        ),
    }
)


def policy_of(form: PluginFormat) -> FormatPolicy:
    """Return the policy of a format."""
    return _POLICIES[form]


def format_of(folder: str) -> PluginFormat | None:
    """Return the format of a plugin folder, `None` for a folder that is no plugin.

    The open format comes first: beside plugin.json no other manifest may have a say.
    """
    for known in PluginFormat:
        if os.path.lexists(os.path.join(folder, *known.split("/"))):
            return known
    return None
