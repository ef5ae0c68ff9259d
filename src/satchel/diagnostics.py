"""Diagnostics: every skip, repair, conflict and refusal as a value, and the list of their codes.

A code is part of our interface: it never changes its meaning, and a code that is no longer
used is not used again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class Severity(StrEnum):
    """How much a diagnostic matters: an error takes a unit out, a warning does not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Where:
    """A place that a person can open: a path or the name of a source, lines counted from 1."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is not as it should be: where it is, what it is, and how to mend it."""

    severity: Severity
    code: str
    where: Where
    message: str
    fix: str = ""

    def __str__(self) -> str:
        mend = f" -> {self.fix}" if self.fix else ""
        return f"{self.where}: {self.severity}[{self.code}]: {self.message}{mend}"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of a diagnostic."""
        return {
            "severity": str(self.severity),
            "code": self.code,
            "path": self.where.path,
            "line": self.where.line,
            "column": self.where.column,
            "message": self.message,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class Rule:
    """What a code means, how severe it is when loading, and how severe to a strict author."""

    meaning: str
    loading: Severity
    strict: Severity


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        # YAML, wherever it stands
        "yaml-invalid": Rule("The text is not YAML.", _E, _E),
        "yaml-repaired": Rule("The text became YAML once a value was quoted for it.", _W, _E),
        "yaml-unsafe": Rule("It has an anchor, alias, tag, merge or second document.", _E, _E),
        "yaml-duplicate-key": Rule("One mapping gives the same key twice.", _E, _E),
        "yaml-too-large": Rule("It is larger, deeper or has more nodes than the limit.", _E, _E),
        "yaml-not-a-mapping": Rule("The top level is not a mapping of keys to values.", _E, _E),
        # SKILL.md
        "skill-unreadable": Rule("SKILL.md cannot be read as a regular file.", _E, _E),
        "skill-too-large": Rule("SKILL.md is larger than the limit.", _E, _E),
        "skill-not-utf8": Rule("SKILL.md is not UTF-8 text, or holds NUL characters.", _E, _E),
        "skill-no-frontmatter": Rule("SKILL.md does not begin with a line '---'.", _E, _E),
        "skill-frontmatter-open": Rule("The frontmatter has no closing line '---'.", _E, _E),
        "skill-name-missing": Rule("No name is given; the folder's name serves.", _W, _E),
        "skill-name-unsafe": Rule("The name could pass for another name or a path.", _E, _E),
        "skill-name-shape": Rule("The name is not in the shape of the format.", _W, _E),
        "skill-name-folder": Rule("The name is not the folder's name.", _W, _E),
        "skill-description-missing": Rule("No description is given.", _E, _E),
        "skill-description-long": Rule("The description is longer than the format allows.", _W, _E),
        "skill-description-too-long": Rule("The description is longer than is accepted.", _E, _E),
        "skill-compatibility-long": Rule("The compatibility note is empty or too long.", _W, _E),
        "skill-field-type": Rule("A field holds a value of the wrong type.", _W, _E),
        "skill-field-unknown": Rule("A field is not part of the format; it is kept.", _I, _E),
        "skill-body-empty": Rule("There are no instructions below the frontmatter.", _W, _W),
        "skill-text-hidden": Rule("A shown field has invisible or control characters.", _W, _E),
        "skill-file-case": Rule("A file is nearly named SKILL.md; the name must be exact.", _W, _E),
        "skill-shadowed": Rule("Another skill of the same name is served instead.", _W, _W),
        "skill-duplicate": Rule("The same skill, byte for byte, was found twice.", _I, _I),
        # Finding
        "source-missing": Rule("A folder that was named does not exist.", _W, _E),
        "source-empty": Rule("Neither a skill nor a plugin was found there.", _I, _E),
        "source-unreadable": Rule("A folder or file cannot be read.", _W, _E),
        "source-too-many": Rule("More folders or files than the limit; the rest is out.", _W, _E),
        "source-too-deep": Rule("Folders below the depth limit are not looked into.", _I, _W),
        "source-link-outside": Rule("A link leaves the folder that was named.", _W, _E),
        "source-link-loop": Rule("A folder link leads back to a folder above it.", _I, _W),
        "source-special-file": Rule("Neither a file nor a folder; it is never read.", _W, _W),
        "source-name-not-utf8": Rule("A file name is not UTF-8; the file is left out.", _W, _W),
        # Plugins
        "plugin-unreadable": Rule("The manifest or the code cannot be read.", _E, _E),
        "plugin-manifest-missing": Rule(
            "A folder looks like a plugin without toolkit.yaml.", _W, _E
        ),
        "plugin-field-missing": Rule("The manifest lacks a field.", _E, _E),
        "plugin-field-type": Rule("A field of the manifest has a value that does not fit.", _E, _E),
        "plugin-field-unknown": Rule("The manifest has a field that nobody reads.", _W, _E),
        "plugin-json-invalid": Rule("plugin.json is no JSON object, or too large.", _E, _E),
        "plugin-schema-unknown": Rule("plugin.json is of a version that is not known.", _E, _E),
        "plugin-toolkit-ignored": Rule("A toolkit.yaml beside plugin.json is not read.", _W, _E),
        "plugin-parts-ignored": Rule("A Claude bundle has parts that are not read.", _I, _I),
        "mcp-invalid": Rule("mcp.json cannot be used; the plugin is without servers.", _W, _E),
        "mcp-server-invalid": Rule("An MCP server cannot be used; it is left out.", _W, _E),
        "mcp-not-started": Rule("MCP servers are known, and not started.", _I, _I),
        "mcp-server-down": Rule("A carried MCP server cannot be reached.", _E, _E),
        "mcp-too-many-tools": Rule("An MCP server offers more tools than the limit.", _W, _W),
        "mcp-tool-invalid": Rule("A tool of an MCP server cannot be used; it is left out.", _E, _E),
        "mcp-choice-unknown": Rule("A choice for an MCP server is for no tool of it.", _W, _W),
        "mcp-tool-held": Rule("A tool of an MCP server waits to be approved.", _W, _W),
        "mcp-tool-changed": Rule("A tool of an MCP server is not as it was first seen.", _W, _W),
        "mcp-pins-unreadable": Rule("What MCP servers said first cannot be kept.", _E, _E),
        "mcp-tool-renamed": Rule("A tool of an MCP server got another name here.", _I, _I),
        "mcp-skill-invalid": Rule(
            "A skill of an MCP server cannot be used; it is left out.", _E, _E
        ),
        "mcp-skills-unlisted": Rule("The skills of an MCP server cannot be known.", _E, _E),
        "mcp-too-many-skills": Rule("An MCP server lists more skills than the limit.", _W, _W),
        "mcp-skill-unverified": Rule(
            "A file of a skill is not what its MCP server listed; it is not shown.", _E, _E
        ),
        "mcp-skill-renamed": Rule("A skill of an MCP server got another name here.", _I, _I),
        "plugin-name-shape": Rule("The plugin's name cannot be used.", _E, _E),
        "plugin-name-folder": Rule(
            "The plugin's name is not that of its folder or entry point.", _I, _W
        ),
        "plugin-syntax": Rule("Python code does not compile.", _E, _E),
        "plugin-import-failed": Rule("The plugin's code raised while it was imported.", _E, _E),
        "plugin-import-timeout": Rule("The plugin's code took too long to import.", _E, _E),
        "plugin-hook-failed": Rule("A hook of the plugin raised or returned nonsense.", _E, _E),
        "plugin-not-isolated": Rule(
            "A plugin that asks for its own process brings what cannot be had that way.", _W, _W
        ),
        "plugin-install-failed": Rule(
            "What the process of a plugin depends on cannot be installed.", _E, _E
        ),
        "plugin-worker-down": Rule("The process of a plugin does not run.", _E, _E),
        "plugin-startup-failed": Rule("The plugin could not be started.", _E, _E),
        "plugin-meddled": Rule(
            "Importing it changed what all code shares; that was put back.", _W, _W
        ),
        "plugin-tool-invalid": Rule("A tool cannot be described to a model.", _E, _E),
        "plugin-group-unknown": Rule("A tool or group is named that the plugin lacks.", _W, _E),
        "plugin-not-enabled": Rule("An installed plugin that nobody enabled.", _I, _I),
        "plugin-not-installed": Rule("A plugin was named but is not installed.", _E, _E),
        "plugin-contested": Rule("Two distributions offer one plugin; neither is used.", _E, _E),
        "plugin-shadowed": Rule("Another plugin of the same name is used instead.", _W, _W),
        "contract-invalid": Rule("A contract is not as a contract must be.", _E, _E),
        "contract-tool-unknown": Rule("A contract names no tool of its plugin.", _W, _E),
        "contract-shadowed": Rule("A tool has two contracts; the first counts.", _W, _W),
        "contract-unused": Rule("A contract is there that nobody names; it does not hold.", _W, _E),
        "contract-unfit": Rule("A contract does not fit its tool; the tool is left out.", _E, _E),
        "prompt-variable-unknown": Rule(
            "Notes, or a section, name a {{VARIABLE}} that no contract fills; it is left empty.",
            _W,
            _W,
        ),
        "prompt-variable-contested": Rule(
            "Two contracts fill one {{VARIABLE}} from different keys; the first counts.", _W, _W
        ),
        "tool-example-unfit": Rule("An example is no call that a model could make.", _I, _E),
        "tool-state-missing": Rule("A tool needs a value that nobody configured.", _E, _E),
        "tool-unfit": Rule("A configured value, or an added model, does not fit a tool.", _E, _E),
        "tool-replaces-own": Rule("A tool takes the place of one of the session's own.", _W, _W),
        "config-unreadable": Rule("A plugin's configuration file cannot be read.", _E, _E),
        "config-invalid": Rule(
            "A plugin's configured value is not allowed, or a required one is missing.", _E, _E
        ),
        "tool-shadowed": Rule("Another tool of the same name is served instead.", _W, _W),
        "group-unavailable": Rule("A group requires a value that nobody configured.", _W, _W),
        "group-declared-twice": Rule("Two sources describe one group; the first counts.", _W, _W),
        # What the user chose
        "disabled": Rule("The user switched it off.", _I, _I),
        "choices-unreadable": Rule("A satchel.toml cannot be read.", _E, _E),
        "choices-unknown": Rule("A satchel.toml has a key that nobody reads.", _W, _W),
        # Sessions
        "saved-group-missing": Rule("A saved session names a group that is gone.", _W, _W),
        "saved-skill-missing": Rule("A saved session names a skill that is gone.", _W, _W),
        # Serving and watching
        "last-good": Rule("The newest version is broken; the last good one is served.", _W, _W),
        "watcher-failed": Rule("The watcher died and was started again.", _W, _W),
        "watcher-polling": Rule("No notification from the system; files are compared.", _W, _W),
    }
)
"""Every code that Satchel reports."""


def report(code: str, where: Where, message: str, fix: str = "") -> Diagnostic:
    """Make a diagnostic with the severity that its code has when loading."""
    return Diagnostic(RULES[code].loading, code, where, message, fix)


def strictly(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Judge diagnostics as `satchel validate` does: by the letter of the format."""
    return tuple(replace(item, severity=RULES[item.code].strict) for item in found)


def has_error(found: Iterable[Diagnostic]) -> bool:
    """Tell whether any diagnostic is an error."""
    return any(item.severity is Severity.ERROR for item in found)
