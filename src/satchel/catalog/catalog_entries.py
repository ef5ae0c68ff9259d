"""The entries of a catalog: what is served, and what is not and why."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from satchel.contracts import ToolContract
from satchel.diagnostics import Diagnostic
from satchel.formats import ConfigField, McpServerManifest, SkillManifest
from satchel.sources.file_reader import UnitFile
from satchel.sources.plugin_formats import TOOLKIT, FormatPolicy
from satchel.sources.search_roots import Precedence
from satchel.sources.skill_files import LocalSkillReader, SkillReader
from satchel.sources.skill_scan import SkillFinding
from satchel.tools import Tool

HOST = "host"
"""The source of everything that the host adds in code."""


class Status(StrEnum):
    """The status of an entry, and of the contribution that it is built from."""

    OK = "ok"
    STALE = "stale"
    """The newest version is broken or degraded, and the last good one is served. Entries only."""
    DEGRADED = "degraded"
    """Some of its tools are refused; the rest is served unless a last good version is."""
    SETTLING = "settling"
    """It may be half written or is still being imported; the catalog keeps what it served before.

    Contributions only.
    """
    REVOKED = "revoked"
    """It must not be used, whatever its content; no last good version is served."""
    FAILED = "failed"
    """Broken. The last good version is served, if there is one."""
    SHADOWED = "shadowed"
    """Another entry of the same name is served; this one is reachable as `source:name`.

    Entries only.
    """
    DISABLED = "disabled"
    """Present, but not enabled."""
    HELD = "held"
    """It waits: a tool for approval, the tools of a plugin for a missing configuration value."""

    @property
    def is_served(self) -> bool:
        """Tell whether an entry of this status reaches the model."""
        return self in {Status.OK, Status.STALE, Status.DEGRADED}

    @property
    def falls_back(self) -> bool:
        """Tell whether the last good version is served in place of such a contribution."""
        return self in {Status.DEGRADED, Status.SETTLING, Status.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What every entry tells of itself."""

    name: str
    description: str
    source: str
    """Where it comes from: a place as the user wrote it, a plugin's name, or `host`."""
    scope: Precedence
    path: str
    """Where a person finds it: the folder of a skill or plugin, the file of a tool.

    What a remote server brings has an address instead.
    """
    unit: str
    """What it is a part of, in every generation: a folder, or an entry point's full name."""
    rank: tuple[Any, ...] = field(compare=False)
    """Its place in the order of precedence within its scope."""
    state: Status = Status.OK
    generation: int = 0
    """The generation in which it became what it is."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def address(self) -> str:
        """Return the name that stays its own when another entry takes the short one."""
        return f"{self.source}:{self.name}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return every long name that it answers to."""
        return (self.address,)

    @property
    def is_served(self) -> bool:
        """Tell whether the model gets to see it, once its group is active."""
        return self.state.is_served

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return what makes it the same entry in another generation."""
        return (type(self).__name__, self.scope, self.source, self.unit, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillEntry(Entry):
    """A skill; `manifest` is `None` when it never could be read."""

    groups: tuple[str, ...] = ()
    """The groups that it belongs to; the model sees one that belongs to none always."""
    manifest: SkillManifest | None
    key: str
    """Its folder below its place, which tells two of one name in one place apart."""
    digest: str
    """Names the newest content that was read, good or broken."""
    version: str = ""
    """Names the content that is served; a broken edit does not change it."""
    files: tuple[UnitFile, ...] = field(default=(), compare=False)
    finding: SkillFinding | None = field(default=None, compare=False, repr=False)
    """What it was made of; the same finding makes the same entry."""

    @property
    def reader(self) -> SkillReader:
        """Return what reads its files."""
        return self.finding.reader if self.finding else LocalSkillReader(self.path, self.path)

    @property
    def server(self) -> str:
        """Return the name of the remote server that it is of, or `""`.

        Its instructions are then still there, and nothing of it is ever run.
        """
        return self.reader.server

    @property
    def is_for_model(self) -> bool:
        """Tell whether a model may see and load it; the others are for the host alone."""
        return self.manifest is not None and self.manifest.is_for_model

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return `source:name` and, for a folder among others, `source:folder`."""
        return (self.address, f"{self.source}:{self.key}") if self.key else (self.address,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry(Entry):
    """A tool; `tool` is `None` where its code was read but not run."""

    groups: tuple[str, ...]
    """The groups that it belongs to, the first being the one that it is listed under."""
    version: str
    """Differs when the tool does: its schema, its code, or the host's registration of it."""
    tool: Tool | None = field(default=None, compare=False)
    contract: ToolContract | None = field(default=None, compare=False, repr=False)
    """What calls of it are held to; known once its code was loaded."""
    supply: "ToolContribution | None" = field(default=None, compare=False, repr=False)
    """What it was made of; the same makes the same entry."""

    @property
    def group(self) -> str:
        """Return the group that it is listed under."""
        return self.groups[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry(Entry):
    """A tool group."""

    notes: str = ""
    active: bool = False
    """Whether a new session has it switched on."""
    tools: tuple[str, ...] = ()
    """The names of its served tools."""
    skills: tuple[str, ...] = ()
    """The names of its served skills."""
    missing: tuple[str, ...] = ()
    """Keys of the configuration that it requires and that have no value."""

    @property
    def is_available(self) -> bool:
        """Tell whether it can be active."""
        return not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContribution:
    """One plugin's part of the catalog: what it brings, or why it brings nothing.

    It is what a source hands to the catalog, imported or merely read.
    """

    name: str
    source: str
    scope: Precedence
    path: str
    unit: str
    rank: tuple[Any, ...] = field(compare=False)
    digest: str
    """Names the content of code and manifest; equal digests bring equal things."""
    version: str = ""
    description: str = ""
    groups: tuple["Group", ...] = ()
    tools: tuple["ToolContribution", ...] = ()
    skills: tuple[str, ...] = ()
    """Folders to search for the skills it brings."""
    config: tuple[ConfigField, ...] = ()
    """The fields of its configuration that it declares."""
    servers: tuple[McpServerManifest, ...] = ()
    """MCP servers that it declares."""
    sections: tuple[str, ...] = ()
    """Texts that end the system prompt."""
    layers: tuple[Any, ...] = field(default=(), compare=False)
    """Middleware around calls; like commands and life, the catalog only carries it."""
    commands: tuple[Any, ...] = field(default=(), compare=False)
    """Commands for the command line."""
    offers: tuple[Any, ...] = field(default=(), compare=False)
    """Prompts and resources for MCP clients."""
    life: Any = field(default=None, compare=False, repr=False)
    """Its startup and shutdown, if it has any."""
    started_with: str = ""
    """Names the values that its startup got."""
    policy: FormatPolicy = TOOLKIT
    """What its format does differently."""
    diagnostics: tuple[Diagnostic, ...] = ()
    state: Status = Status.OK
    code: Any = field(default=None, compare=False)
    """A handle to the imported version; the catalog only carries it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group as its owner describes it."""

    name: str
    description: str = ""
    notes: str = ""
    active: bool = False
    tools: tuple[str, ...] = ()
    """Names of the owner's tools that belong to it."""
    skills: tuple[str, ...] = ()
    """Names of the owner's skills that belong to it; the host owns all."""
    requires: tuple[str, ...] = ()
    """Keys of the owner's configuration without which it cannot be used."""
    missing: tuple[str, ...] = ()
    """Those of them that have no value; the loader fills it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContribution:
    """A tool as its owner offers it; `tool` is `None` where no code was run."""

    name: str
    description: str
    path: str
    version: str
    """Differs when the tool does."""
    groups: tuple[str, ...] = ()
    """The groups that it names itself."""
    tool: Tool | None = field(default=None, compare=False)
    contract: ToolContract | None = field(default=None, compare=False, repr=False)
    """What the tool is bound to."""
    state: Status = Status.OK
    """`ok`, or `held` while it waits for approval."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginEntry(Entry):
    """A plugin: a folder, an installed package, or the host's own code."""

    version: str
    digest: str
    """Names the newest content that was tried, good or broken."""
    supply: PluginContribution
    """What is served of it: the newest good version, if there is one."""

    @property
    def servers(self) -> tuple[McpServerManifest, ...]:
        """Return the MCP servers that it declares."""
        return self.supply.servers
