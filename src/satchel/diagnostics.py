"""Diagnostics: every skip, repair, conflict and refusal as a value, and their codes.

Codes are public: a code never changes its meaning, and a retired code is not used again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
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


_RULES = """
# YAML, in any file
yaml-invalid               E E The text is not valid YAML.
yaml-repaired              W E The YAML became valid after a value was quoted.
yaml-unsafe                E E The YAML has an anchor, alias, tag, merge or second document.
yaml-duplicate-key         E E A mapping has the same key twice.
yaml-too-large             E E The YAML exceeds the limit for size, depth or nodes.
yaml-not-a-mapping         E E The top level is not a mapping of keys to values.

# SKILL.md
skill-unreadable           E E SKILL.md cannot be read as a regular file.
skill-too-large            E E SKILL.md is larger than the limit.
skill-not-utf8             E E SKILL.md is not UTF-8 text, or contains NUL characters.
skill-no-frontmatter       E E SKILL.md does not begin with a line '---'.
skill-frontmatter-open     E E The front matter has no closing line '---'.
skill-name-missing         W E The name is missing; the folder's name is used.
skill-name-unsafe          E E The name could be mistaken for another name or a path.
skill-name-shape           W E The name does not follow the rules of the format.
skill-name-folder          W E The name differs from the folder's name.
skill-description-missing  E E The description is missing.
skill-description-long     W E The description is longer than the format allows.
skill-description-too-long E E The description is longer than Satchel accepts.
skill-compatibility-long   W E The compatibility field is empty or too long.
skill-field-type           W E A field has a value of the wrong type.
skill-field-unknown        I E A field is not part of the format; it is kept.
skill-field-foreign        I I A field belongs to other clients; it is kept.
skill-field-form           I W A field is written as other clients write it; it is understood.
skill-body-empty           W W There are no instructions below the front matter.
skill-text-hidden          W E A field that is shown contains invisible or control characters.
skill-file-case            W E A file's name resembles SKILL.md but is not exactly that.
skill-file-secret          I W A file of a skill usually holds secrets; it is never listed or
                               served.
skill-name-held            W W A new skill has the name of one that was served before; it waits for
                               a choice.
skill-shadowed             W W Another skill of the same name is served instead.
skill-duplicate            I I The same skill was found twice: its SKILL.md, and files of the same
                               names and sizes.
skill-inside-skill         I I A skill contains other skills, which are only its files.
skill-mirrored             I I A hidden folder has another version of a skill; the visible one is
                               served.

# Folders and files that are searched
source-missing             W E A configured folder does not exist.
source-empty               I E A configured folder contains no skill and no plugin.
source-unreadable          W E A folder or file cannot be read.
source-unmounted           W E The file system with a folder is gone; what the folder had is still
                               served.
source-too-many            W E There are more folders or files than the limit; the rest is not
                               loaded.
source-too-deep            I W Folders below the depth limit are not searched.
source-link-outside        W E A link leads out of the configured folder.
source-link-broken         W E A link leads to nothing; it is skipped.
source-link-loop           I W A folder link leads back to a folder above it.
source-special-file        W W A special file (pipe, socket or device) is never read.
source-name-not-utf8       W W A file name is not UTF-8; the file is skipped.

# Plugins
plugin-unreadable          E E The manifest or the code cannot be read.
plugin-manifest-missing    W E A folder looks like a plugin but has no toolkit.yaml.
plugin-file-lost           E E A file of a running plugin became empty or is gone, but its folder is
                               there.
plugin-field-missing       E E The manifest lacks a required field.
plugin-field-type          E E A field of the manifest has an invalid value.
plugin-field-unknown       W E The manifest has an unknown field; it is ignored.
plugin-json-invalid        E E plugin.json is not a JSON object, or is too large.
plugin-schema-unknown      E E plugin.json has an unknown version.
plugin-toolkit-ignored     W E A toolkit.yaml beside plugin.json is ignored.
plugin-parts-ignored       I I Some parts of a plugin for another client are ignored.
plugin-unused              W W Satchel uses no part of the plugin.
command-invalid            W E A command of a plugin cannot be read; it is left out.
command-not-run            I I A command of a plugin has parts that its client runs; they stay text.
marketplace-invalid        E E marketplace.json cannot be read.
marketplace-entry-invalid  W E An entry of a marketplace is invalid; it is left out.
marketplace-remote         I I A marketplace lists plugins that are not in its folder.
mcp-invalid                W E mcp.json is invalid; none of the plugin's servers are used.
mcp-server-invalid         W E An MCP server's entry is invalid; the server is not used.
mcp-disabled               I I An MCP server's entry says that it is disabled.
mcp-secret-unused          W W An MCP server's entry has an OAuth client secret, but no issuer for
                               it.
mcp-not-started            I I MCP servers are declared but not started.
mcp-login-needed           E E A connected MCP server does not accept requests without a login.
mcp-server-starting        I I An MCP server is not connected yet.
mcp-server-down            E E A connected MCP server cannot be reached.
mcp-too-many-tools         W W An MCP server offers more tools than the limit.
mcp-instructions-changed   W W The instructions of an MCP server differ from what was approved.
mcp-tool-invalid           E E A tool of an MCP server is invalid, or its list of tools is.
mcp-prompt-invalid         E E A prompt of an MCP server is invalid, or its list of prompts is.
mcp-too-many-prompts       W W An MCP server lists more prompts than the limit.
mcp-resource-invalid       E E A resource of an MCP server is invalid, or its list of resources is.
mcp-too-many-resources     W W An MCP server lists more resources than the limit.
mcp-choice-unknown         W W A setting for an MCP server names a tool that the server does not
                               have.
mcp-tool-held              W W A tool of an MCP server waits for approval.
mcp-tool-changed           W W A tool of an MCP server changed since it was first seen.
mcp-pins-unreadable        E E The file of pinned MCP tools cannot be read or written.
mcp-tool-renamed           I I Tools of an MCP server are served under other names.
mcp-skill-invalid          E E A skill of an MCP server is invalid, or its list of skills is.
mcp-skills-unlisted        E E The skills of an MCP server cannot be listed.
mcp-too-many-skills        W W An MCP server lists more skills than the limit.
mcp-skill-unverified       E E A skill's file differs from what its MCP server listed; it is not
                               shown.
mcp-skill-renamed          I I A skill of an MCP server is served under another name.
plugin-name-shape          E E The plugin's name is invalid.
plugin-name-folder         I W The plugin's name differs from its folder or entry point.
plugin-syntax              E E Python code does not compile.
plugin-import-failed       E E The plugin's code raised an exception while it was imported.
plugin-import-timeout      E E The plugin's code took too long to import.
plugin-hook-failed         E E A hook of the plugin raised an exception or returned an invalid
                               value.
plugin-not-isolated        W W A plugin with its own process has a part that cannot work there.
plugin-install-failed      E E The dependencies of a plugin's process cannot be installed.
plugin-worker-down         E E The plugin's process is not running.
plugin-startup-failed      E E The plugin could not be started.
plugin-meddled             W W The import changed the state of the whole process; this was undone
                               where possible.
plugin-text-long           W E A description or notes are longer than the limit; the rest is left
                               out.
plugin-tool-invalid        E E A tool cannot be described to a model.
plugin-group-unknown       W E The plugin names a tool or group that it does not have.
plugin-not-enabled         I I An installed plugin is not enabled.
plugin-not-installed       E E A requested plugin is not installed.
plugin-contested           E E Two distributions offer the same plugin; neither is used.
plugin-name-held           W W A new plugin has the name of one that was served before; it waits for
                               a choice.
plugin-shadowed            W W Another plugin of the same name is used instead.
contract-invalid           E E A contract is invalid.
contract-tool-unknown      W E A contract names no tool of its plugin.
contract-shadowed          W W A tool has two contracts; the first is used.
contract-unused            W E A contract is not attached to any tool; its rules do not apply.
contract-unfit             E E A contract does not match its tool; the tool is not served.
prompt-variable-unknown    W W Notes or a prompt section use a {{VARIABLE}} that no contract fills;
                               it stays empty.
prompt-variable-contested  W W Two contracts fill one {{VARIABLE}} from different keys; the first is
                               used.
tool-example-unfit         I E An example is not a valid call of its tool.
tool-undescribed           I W The description of a tool says no more than its name.
tool-state-missing         E E A tool needs a value that is not configured.
tool-unfit                 E E A configured value, or an added model, does not match a tool.
tool-replaces-own          W W A tool replaces one of the session's built-in tools.
config-unreadable          E E A plugin's configuration file cannot be read.
config-invalid             E E A plugin's configured value is invalid, or a required value is
                               missing.
tool-name-held             W W A new tool has the name of one that was served before; it waits for a
                               choice.
tool-shadowed              W W Another tool of the same name is served instead.
group-unavailable          W W A group requires a value that is not configured.
group-declared-twice       W W Two sources describe the same group; the first is used.
provider-failed            E E A provider raised an exception, hung or returned an invalid value.
provider-item-invalid      E E A provider's item is invalid; it is left out, or stays as it was.

# The user's satchel.toml
disabled                   I I The user disabled it.
choices-unreadable         E E A satchel.toml cannot be read.
choices-held               W W It waits: a satchel.toml cannot be read, so it is not known what the
                               user disabled.
choices-unknown            W W A satchel.toml has an unknown key; it is ignored.

# The trust in a project
project-untrusted          W W A project was not trusted by the user; nothing of it is loaded.
code-untrusted             I I The user trusts a project's data, but not its code.
code-held                  W W Code of a project changed after the user trusted it; it waits.
trust-unreadable           E E A record of trust cannot be used; the project counts as not trusted.
source-nested-repository   W W A repository inside a project is not loaded with the project.

# The lock file
lock-new                   E E It is not in the lock file; it is not used.
lock-changed               E E It differs from the lock file; this version is not used.

# Sessions
saved-group-missing        W W A saved session names a group that no longer exists.
saved-skill-missing        W W A saved session names a skill that no longer exists.

# Serving and watching
last-good                  W W The newest version is broken; the last good one is served.
watcher-failed             W W The watcher failed and was started again.
sandbox-missing            W W The system has no sandbox that works; programs run with the rights of
                               the user.
watcher-polling            W W The system sends no change events; Satchel compares files instead.

# Calls on other machines
runner-unknown             W W A tool names a runner that the host has not registered; it runs in
                               the host.
remote-no-worker           W W No worker runs this version of a plugin.
remote-unreachable         W W The redis of the workers does not answer.
remote-message-refused     W W A message of a worker was not accepted.
remote-call-lost           W W Redis does not have a call any more.
remote-may-have-run        W W The answer of a remote call is lost.
remote-state-lost          W W A remote tool's changes of the state are lost.
"""
"""Each code, its severity when loading and in `satchel validate`, and its meaning.

E is an error, W a warning, I an info. What continues a line is indented.
"""


def _read_rules() -> Iterator[tuple[str, DiagnosticRule]]:
    severities = {"E": Severity.ERROR, "W": Severity.WARNING, "I": Severity.INFO}
    for line in _RULES.replace("\n ", " ").splitlines():
        if line and line[0] != "#":
            code, loading, strict, *meaning = line.split()
            yield code, DiagnosticRule(" ".join(meaning), severities[loading], severities[strict])


RULES: Mapping[str, DiagnosticRule] = MappingProxyType(dict(_read_rules()))
"""Every code that Satchel reports."""


_SERVER = re.compile(r"server '([^']+)'")
_OUTAGES = {
    "mcp-server-starting": "is starting",
    "mcp-login-needed": "needs a login",
    "mcp-server-invalid": "is left out, because its settings need the user",
}


def make_diagnostic(code: str, where: Where, message: str, fix: str = "") -> Diagnostic:
    """Return a diagnostic with the severity that its code has when loading."""
    return Diagnostic(
        severity=RULES[code].loading, code=code, where=where, message=message, fix=fix
    )


def left_out_server(item: Diagnostic) -> str:
    """Return the MCP server that a diagnostic says is left out, or `""`."""
    match = _SERVER.match(item.message) if item.code == "mcp-server-invalid" else None
    return match[1] if match else ""


def outage_text(code: str) -> str:
    """Return what an MCP server that is down does, by the code of its diagnostic."""
    return _OUTAGES.get(code, "is restarting")


def strictly(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with the severities of `satchel validate`."""
    return tuple(replace(item, severity=RULES[item.code].strict) for item in diagnostics)


def has_error(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether any diagnostic is an error."""
    return any(item.severity is Severity.ERROR for item in diagnostics)
