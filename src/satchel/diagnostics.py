"""Diagnostics: every skip, repair, conflict and refusal as a value, and their codes.

Codes are public: a code never changes its meaning, and a retired code is not used again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from satchel.lazy_dataclass import dataclass


class Severity(StrEnum):
    """How severe a diagnostic is: only an error removes a skill, plugin or tool."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Where:
    """A path or the name of a source; lines count from 1."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem: where it is, what happened, and how to fix it."""

    severity: Severity
    code: str
    where: Where
    message: str
    fix: str = ""

    def __str__(self) -> str:
        fix = f" -> {self.fix}" if self.fix else ""
        return f"{self.where}: {self.severity}[{self.code}]: {self.message}{fix}"

    def as_dict(self) -> dict[str, Any]:
        """Return the diagnostic as JSON-compatible data."""
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
class DiagnosticRule:
    """The meaning of a code, and its severity when loading and in `satchel validate`."""

    meaning: str
    loading: Severity
    strict: Severity


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

RULES: Mapping[str, DiagnosticRule] = MappingProxyType(
    {
        # YAML, in any file
        "yaml-invalid": DiagnosticRule("The text is not valid YAML.", _E, _E),
        "yaml-repaired": DiagnosticRule("The YAML became valid after a value was quoted.", _W, _E),
        "yaml-unsafe": DiagnosticRule(
            "The YAML has an anchor, alias, tag, merge or second document.", _E, _E
        ),
        "yaml-duplicate-key": DiagnosticRule("A mapping has the same key twice.", _E, _E),
        "yaml-too-large": DiagnosticRule(
            "The YAML exceeds the limit for size, depth or nodes.", _E, _E
        ),
        "yaml-not-a-mapping": DiagnosticRule(
            "The top level is not a mapping of keys to values.", _E, _E
        ),
        # SKILL.md
        "skill-unreadable": DiagnosticRule("SKILL.md cannot be read as a regular file.", _E, _E),
        "skill-too-large": DiagnosticRule("SKILL.md is larger than the limit.", _E, _E),
        "skill-not-utf8": DiagnosticRule(
            "SKILL.md is not UTF-8 text, or contains NUL characters.", _E, _E
        ),
        "skill-no-frontmatter": DiagnosticRule(
            "SKILL.md does not begin with a line '---'.", _E, _E
        ),
        "skill-frontmatter-open": DiagnosticRule(
            "The front matter has no closing line '---'.", _E, _E
        ),
        "skill-name-missing": DiagnosticRule(
            "The name is missing; the folder's name is used.", _W, _E
        ),
        "skill-name-unsafe": DiagnosticRule(
            "The name could be mistaken for another name or a path.", _E, _E
        ),
        "skill-name-shape": DiagnosticRule(
            "The name does not follow the rules of the format.", _W, _E
        ),
        "skill-name-folder": DiagnosticRule("The name differs from the folder's name.", _W, _E),
        "skill-description-missing": DiagnosticRule("The description is missing.", _E, _E),
        "skill-description-long": DiagnosticRule(
            "The description is longer than the format allows.", _W, _E
        ),
        "skill-description-too-long": DiagnosticRule(
            "The description is longer than Satchel accepts.", _E, _E
        ),
        "skill-compatibility-long": DiagnosticRule(
            "The compatibility field is empty or too long.", _W, _E
        ),
        "skill-field-type": DiagnosticRule("A field has a value of the wrong type.", _W, _E),
        "skill-field-unknown": DiagnosticRule(
            "A field is not part of the format; it is kept.", _I, _E
        ),
        "skill-field-foreign": DiagnosticRule(
            "A field belongs to other clients; it is kept.", _I, _I
        ),
        "skill-field-form": DiagnosticRule(
            "A field is written as other clients write it; it is understood.", _I, _W
        ),
        "skill-body-empty": DiagnosticRule(
            "There are no instructions below the front matter.", _W, _W
        ),
        "skill-text-hidden": DiagnosticRule(
            "A field that is shown contains invisible or control characters.", _W, _E
        ),
        "skill-file-case": DiagnosticRule(
            "A file's name resembles SKILL.md but is not exactly that.", _W, _E
        ),
        "skill-file-secret": DiagnosticRule(
            "A file of a skill usually holds secrets; it is never listed or served.", _I, _W
        ),
        "skill-shadowed": DiagnosticRule(
            "Another skill of the same name is served instead.", _W, _W
        ),
        "skill-duplicate": DiagnosticRule(
            "The same skill was found twice: its SKILL.md, and files of the same names and sizes.",
            _I,
            _I,
        ),
        "skill-inside-skill": DiagnosticRule(
            "A skill contains other skills, which are only its files.", _I, _I
        ),
        "skill-file-lost": DiagnosticRule(
            "SKILL.md is gone, but the skill's other files are there.", _E, _E
        ),
        "skill-mirrored": DiagnosticRule(
            "A hidden folder has another version of a skill; the visible one is served.", _I, _I
        ),
        # Folders and files that are searched
        "source-missing": DiagnosticRule("A configured folder does not exist.", _W, _E),
        "source-empty": DiagnosticRule(
            "A configured folder contains no skill and no plugin.", _I, _E
        ),
        "source-unreadable": DiagnosticRule("A folder or file cannot be read.", _W, _E),
        "source-unmounted": DiagnosticRule(
            "The file system with a folder is gone; what the folder had is still served.", _W, _E
        ),
        "source-too-many": DiagnosticRule(
            "There are more folders or files than the limit; the rest is not loaded.", _W, _E
        ),
        "source-too-deep": DiagnosticRule(
            "Folders below the depth limit are not searched.", _I, _W
        ),
        "source-link-outside": DiagnosticRule("A link leads out of the configured folder.", _W, _E),
        "source-link-broken": DiagnosticRule("A link leads to nothing; it is skipped.", _W, _E),
        "source-link-loop": DiagnosticRule(
            "A folder link leads back to a folder above it.", _I, _W
        ),
        "source-special-file": DiagnosticRule(
            "A special file (pipe, socket or device) is never read.", _W, _W
        ),
        "source-name-not-utf8": DiagnosticRule(
            "A file name is not UTF-8; the file is skipped.", _W, _W
        ),
        # Plugins
        "plugin-unreadable": DiagnosticRule("The manifest or the code cannot be read.", _E, _E),
        "plugin-manifest-missing": DiagnosticRule(
            "A folder looks like a plugin but has no toolkit.yaml.", _W, _E
        ),
        "plugin-file-lost": DiagnosticRule(
            "A file of a running plugin became empty or is gone, but its folder is there.", _E, _E
        ),
        "plugin-field-missing": DiagnosticRule("The manifest lacks a required field.", _E, _E),
        "plugin-field-type": DiagnosticRule(
            "A field of the manifest has an invalid value.", _E, _E
        ),
        "plugin-field-unknown": DiagnosticRule(
            "The manifest has an unknown field; it is ignored.", _W, _E
        ),
        "plugin-json-invalid": DiagnosticRule(
            "plugin.json is not a JSON object, or is too large.", _E, _E
        ),
        "plugin-schema-unknown": DiagnosticRule("plugin.json has an unknown version.", _E, _E),
        "plugin-toolkit-ignored": DiagnosticRule(
            "A toolkit.yaml beside plugin.json is ignored.", _W, _E
        ),
        "plugin-parts-ignored": DiagnosticRule(
            "Some parts of a plugin for another client are ignored.", _I, _I
        ),
        "plugin-unused": DiagnosticRule("Satchel uses no part of the plugin.", _W, _W),
        "command-invalid": DiagnosticRule(
            "A command of a plugin cannot be read; it is left out.", _W, _E
        ),
        "marketplace-invalid": DiagnosticRule("marketplace.json cannot be read.", _E, _E),
        "marketplace-entry-invalid": DiagnosticRule(
            "An entry of a marketplace is invalid; it is left out.", _W, _E
        ),
        "marketplace-remote": DiagnosticRule(
            "A marketplace lists plugins that are not in its folder.", _I, _I
        ),
        "mcp-invalid": DiagnosticRule(
            "mcp.json is invalid; none of the plugin's servers are used.", _W, _E
        ),
        "mcp-server-invalid": DiagnosticRule(
            "An MCP server's entry is invalid; the server is not used.", _W, _E
        ),
        "mcp-disabled": DiagnosticRule("An MCP server's entry says that it is disabled.", _I, _I),
        "mcp-secret-unused": DiagnosticRule(
            "An MCP server's entry has an OAuth client secret, but no issuer for it.", _W, _W
        ),
        "mcp-not-started": DiagnosticRule("MCP servers are declared but not started.", _I, _I),
        "mcp-login-needed": DiagnosticRule(
            "A connected MCP server does not accept requests without a login.", _E, _E
        ),
        "mcp-server-starting": DiagnosticRule("An MCP server is not connected yet.", _I, _I),
        "mcp-server-down": DiagnosticRule("A connected MCP server cannot be reached.", _E, _E),
        "mcp-too-many-tools": DiagnosticRule(
            "An MCP server offers more tools than the limit.", _W, _W
        ),
        "mcp-instructions-changed": DiagnosticRule(
            "The instructions of an MCP server differ from what was approved.", _W, _W
        ),
        "mcp-tool-invalid": DiagnosticRule(
            "A tool of an MCP server is invalid; it is not served.", _E, _E
        ),
        "mcp-choice-unknown": DiagnosticRule(
            "A setting for an MCP server names a tool that the server does not have.", _W, _W
        ),
        "mcp-tool-held": DiagnosticRule("A tool of an MCP server waits for approval.", _W, _W),
        "mcp-tool-changed": DiagnosticRule(
            "A tool of an MCP server changed since it was first seen.", _W, _W
        ),
        "mcp-pins-unreadable": DiagnosticRule(
            "The file of pinned MCP tools cannot be read or written.", _E, _E
        ),
        "mcp-tool-renamed": DiagnosticRule(
            "Tools of an MCP server are served under other names.", _I, _I
        ),
        "mcp-skill-invalid": DiagnosticRule(
            "A skill of an MCP server is invalid; it is not served.", _E, _E
        ),
        "mcp-skills-unlisted": DiagnosticRule(
            "The skills of an MCP server cannot be listed.", _E, _E
        ),
        "mcp-too-many-skills": DiagnosticRule(
            "An MCP server lists more skills than the limit.", _W, _W
        ),
        "mcp-skill-unverified": DiagnosticRule(
            "A skill's file differs from what its MCP server listed; it is not shown.", _E, _E
        ),
        "mcp-skill-renamed": DiagnosticRule(
            "A skill of an MCP server is served under another name.", _I, _I
        ),
        "plugin-name-shape": DiagnosticRule("The plugin's name is invalid.", _E, _E),
        "plugin-name-folder": DiagnosticRule(
            "The plugin's name differs from its folder or entry point.", _I, _W
        ),
        "plugin-syntax": DiagnosticRule("Python code does not compile.", _E, _E),
        "plugin-import-failed": DiagnosticRule(
            "The plugin's code raised an exception while it was imported.", _E, _E
        ),
        "plugin-import-timeout": DiagnosticRule(
            "The plugin's code took too long to import.", _E, _E
        ),
        "plugin-hook-failed": DiagnosticRule(
            "A hook of the plugin raised an exception or returned an invalid value.", _E, _E
        ),
        "plugin-not-isolated": DiagnosticRule(
            "A plugin with its own process has a part that cannot work there.", _W, _W
        ),
        "plugin-install-failed": DiagnosticRule(
            "The dependencies of a plugin's process cannot be installed.", _E, _E
        ),
        "plugin-worker-down": DiagnosticRule("The plugin's process is not running.", _E, _E),
        "plugin-startup-failed": DiagnosticRule("The plugin could not be started.", _E, _E),
        "plugin-meddled": DiagnosticRule(
            "The import changed the state of the whole process; this was undone where possible.",
            _W,
            _W,
        ),
        "plugin-text-long": DiagnosticRule(
            "A description or notes are longer than the limit; the rest is left out.", _W, _E
        ),
        "plugin-tool-invalid": DiagnosticRule("A tool cannot be described to a model.", _E, _E),
        "plugin-group-unknown": DiagnosticRule(
            "The plugin names a tool or group that it does not have.", _W, _E
        ),
        "plugin-not-enabled": DiagnosticRule("An installed plugin is not enabled.", _I, _I),
        "plugin-not-installed": DiagnosticRule("A requested plugin is not installed.", _E, _E),
        "plugin-contested": DiagnosticRule(
            "Two distributions offer the same plugin; neither is used.", _E, _E
        ),
        "plugin-name-held": DiagnosticRule(
            "A new plugin has the name of one that was served before; it waits for a choice.",
            _W,
            _W,
        ),
        "plugin-shadowed": DiagnosticRule(
            "Another plugin of the same name is used instead.", _W, _W
        ),
        "contract-invalid": DiagnosticRule("A contract is invalid.", _E, _E),
        "contract-tool-unknown": DiagnosticRule("A contract names no tool of its plugin.", _W, _E),
        "contract-shadowed": DiagnosticRule("A tool has two contracts; the first is used.", _W, _W),
        "contract-unused": DiagnosticRule(
            "A contract is not attached to any tool; its rules do not apply.", _W, _E
        ),
        "contract-unfit": DiagnosticRule(
            "A contract does not match its tool; the tool is not served.", _E, _E
        ),
        "prompt-variable-unknown": DiagnosticRule(
            "Notes or a prompt section use a {{VARIABLE}} that no contract fills; it stays empty.",
            _W,
            _W,
        ),
        "prompt-variable-contested": DiagnosticRule(
            "Two contracts fill one {{VARIABLE}} from different keys; the first is used.", _W, _W
        ),
        "tool-example-unfit": DiagnosticRule("An example is not a valid call of its tool.", _I, _E),
        "tool-undescribed": DiagnosticRule(
            "The description of a tool says no more than its name.", _I, _W
        ),
        "tool-state-missing": DiagnosticRule(
            "A tool needs a value that is not configured.", _E, _E
        ),
        "tool-unfit": DiagnosticRule(
            "A configured value, or an added model, does not match a tool.", _E, _E
        ),
        "tool-replaces-own": DiagnosticRule(
            "A tool replaces one of the session's built-in tools.", _W, _W
        ),
        "config-unreadable": DiagnosticRule(
            "A plugin's configuration file cannot be read.", _E, _E
        ),
        "config-invalid": DiagnosticRule(
            "A plugin's configured value is invalid, or a required value is missing.", _E, _E
        ),
        "tool-name-held": DiagnosticRule(
            "A new tool has the name of one that was served before; it waits for a choice.", _W, _W
        ),
        "tool-shadowed": DiagnosticRule("Another tool of the same name is served instead.", _W, _W),
        "group-unavailable": DiagnosticRule(
            "A group requires a value that is not configured.", _W, _W
        ),
        "group-declared-twice": DiagnosticRule(
            "Two sources describe the same group; the first is used.", _W, _W
        ),
        "provider-failed": DiagnosticRule(
            "A provider raised an exception, hung or returned an invalid value.", _E, _E
        ),
        "provider-item-invalid": DiagnosticRule(
            "One item of a provider is invalid; it is left out.", _E, _E
        ),
        # The user's satchel.toml
        "disabled": DiagnosticRule("The user disabled it.", _I, _I),
        "choices-unreadable": DiagnosticRule("A satchel.toml cannot be read.", _E, _E),
        "choices-unknown": DiagnosticRule(
            "A satchel.toml has an unknown key; it is ignored.", _W, _W
        ),
        # The trust in a project
        "project-untrusted": DiagnosticRule(
            "A project was not trusted by the user; nothing of it is loaded.", _W, _W
        ),
        "code-untrusted": DiagnosticRule(
            "The user trusts a project's data, but not its code.", _I, _I
        ),
        "code-held": DiagnosticRule(
            "Code of a project changed after the user trusted it; it waits.", _W, _W
        ),
        "trust-unreadable": DiagnosticRule(
            "A record of trust cannot be used; the project counts as not trusted.", _E, _E
        ),
        "source-nested-repository": DiagnosticRule(
            "A repository inside a project is not loaded with the project.", _W, _W
        ),
        # The lock file
        "lock-new": DiagnosticRule("It is not in the lock file; it is not used.", _E, _E),
        "lock-changed": DiagnosticRule(
            "It differs from the lock file; this version is not used.", _E, _E
        ),
        # Sessions
        "saved-group-missing": DiagnosticRule(
            "A saved session names a group that no longer exists.", _W, _W
        ),
        "saved-skill-missing": DiagnosticRule(
            "A saved session names a skill that no longer exists.", _W, _W
        ),
        # Serving and watching
        "last-good": DiagnosticRule(
            "The newest version is broken; the last good one is served.", _W, _W
        ),
        "watcher-failed": DiagnosticRule("The watcher failed and was started again.", _W, _W),
        "sandbox-missing": DiagnosticRule(
            "The system has no sandbox that works; programs run with the rights of the user.",
            _W,
            _W,
        ),
        "watcher-polling": DiagnosticRule(
            "The system sends no change events; Satchel compares files instead.", _W, _W
        ),
        # Calls on other machines
        "runner-unknown": DiagnosticRule(
            "A tool names a runner that the host has not registered; it runs in the host.", _W, _W
        ),
        "remote-no-worker": DiagnosticRule("No worker runs this version of a plugin.", _W, _W),
        "remote-unreachable": DiagnosticRule("The redis of the workers does not answer.", _W, _W),
        "remote-message-refused": DiagnosticRule("A message of a worker was not accepted.", _W, _W),
        "remote-call-lost": DiagnosticRule("Redis does not have a call any more.", _W, _W),
        "remote-may-have-run": DiagnosticRule("The answer of a remote call is lost.", _W, _W),
    }
)
"""Every code that Satchel reports."""


def make_diagnostic(code: str, where: Where, message: str, fix: str = "") -> Diagnostic:
    """Return a diagnostic with the severity that its code has when loading."""
    return Diagnostic(
        severity=RULES[code].loading, code=code, where=where, message=message, fix=fix
    )


def strictly(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with the severities of `satchel validate`."""
    return tuple(replace(item, severity=RULES[item.code].strict) for item in diagnostics)


def has_error(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether any diagnostic is an error."""
    return any(item.severity is Severity.ERROR for item in diagnostics)
