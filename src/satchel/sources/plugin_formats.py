"""The formats of plugin folders and their policies."""

import os
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from satchel.files.file_reader import read_or_none
from satchel.lazy_dataclass import dataclass

MANIFEST_FILE = "toolkit.yaml"
_LARGEST_MANIFEST = 2**20

NAMESPACE = "dev.satchel"
"""The namespace of Satchel's extension to open plugins, and the name of its folder."""


class PluginFormat(StrEnum):
    """A format of plugin folders; the value is the path of its manifest inside the folder."""

    OPEN = "plugin.json"
    TOOLKIT = MANIFEST_FILE
    CLAUDE = ".claude-plugin/plugin.json"
    GEMINI = "gemini-extension.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatPolicy:
    """The differences between the formats when a plugin folder is loaded."""

    code_folder: str = NAMESPACE
    """The folder with toolkit.yaml and Python files, by its path inside the plugin."""
    has_code: bool = True
    files: frozenset[str] = frozenset()
    """Files that are always read, in addition to those in the code folder."""
    is_judged_by_content: bool = False
    """Whether equal files always give an equal finding, so that it can be reused."""
    is_contained: bool = True
    """Whether links among its skills must stay inside the plugin."""
    has_strict_skills: bool = False
    """Whether skills must be directly in `skills` and strictly follow the format."""
    command_suffix: str = ""
    """The suffix of its commands; `""` if it has none."""
    has_extension: bool = False
    """Whether the code is an extension, so that the plugin can be served without it."""


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
            has_code=False,
            files=frozenset({PluginFormat.CLAUDE, ".mcp.json"}),
            command_suffix=".md",
        ),
        PluginFormat.GEMINI: FormatPolicy(
            has_code=False,
            files=frozenset({PluginFormat.GEMINI, "GEMINI.md"}),
            command_suffix=".toml",
        ),
    }
)


def policy_of(form: PluginFormat) -> FormatPolicy:
    """Return the policy of a format."""
    return _POLICIES[form]


def format_of(folder: str) -> PluginFormat | None:
    """Return the format of a plugin folder, `None` if the folder is not a plugin.

    The open format wins: beside a plugin.json, other manifests are ignored. A plugin.json without
    `$schema` is not of the open format, so it does not win.
    """
    present = [
        candidate
        for candidate in PluginFormat
        if os.path.lexists(os.path.join(folder, *candidate.split("/")))
    ]
    if len(present) > 1 and present[0] is PluginFormat.OPEN and _has_no_schema(folder):
        return present[1]
    return present[0] if present else None


def format_of_listed(folder: str) -> PluginFormat | None:
    """Return the format of a folder that a marketplace lists.

    Its entry is a manifest, so a plugin.json without `$schema` is not needed as one.
    """
    form = format_of(folder)
    return None if form is PluginFormat.OPEN and _has_no_schema(folder) else form


def _has_no_schema(folder: str) -> bool:
    """Return whether plugin.json is valid JSON without `$schema`; a half-written one is not."""
    import json  # lazy: few folders have two manifests

    manifest = read_or_none(os.path.join(folder, PluginFormat.OPEN), _LARGEST_MANIFEST) or b""
    try:
        value = json.loads(manifest)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "$schema" not in value
