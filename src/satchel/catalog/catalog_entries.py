"""The entries of a catalog, and the contributions that they are built from."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from satchel.lazy_dataclass import dataclass
from satchel.sources.plugin_formats import TOOLKIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.contracts.tool_contract import ToolContract
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import UnitFile
    from satchel.formats.config_fields import ConfigField
    from satchel.formats.mcp_json import McpServerManifest
    from satchel.formats.skill_manifest import SkillManifest
    from satchel.sources.plugin_formats import FormatPolicy
    from satchel.sources.search_roots import Precedence
    from satchel.sources.skill_files import SkillAccess, SkillReader
    from satchel.sources.skill_findings import SkillFinding
    from satchel.tools import Tool

HOST = "host"
"""The source of everything that the application adds in code."""


class Status(StrEnum):
    """The status of an entry, and of the contribution that it is built from."""

    OK = "ok"
    STALE = "stale"
    """The newest version is broken or degraded, and the last good one is served. Entries only."""
    DEGRADED = "degraded"
    """Some of its tools are invalid. The last good version is served; without one, the rest."""
    SETTLING = "settling"
    """It may be half written or is still being imported; the catalog keeps what it served before.

    Contributions only.
    """
    REVOKED = "revoked"
    """It must not be used, even if it is valid, and no last good version is served."""
    FAILED = "failed"
    """Broken. The last good version is served, if there is one."""
    SHADOWED = "shadowed"
    """Another entry of the same name is served; this one is reachable as `source:name`.

    Entries only.
    """
    DISABLED = "disabled"
    """Present, but not enabled."""
    HELD = "held"
    """It waits: a tool for approval, the tools of a plugin for a missing configuration value.

    A unit whose name others served before waits for a choice of the user.
    """

    @property
    def falls_back(self) -> bool:
        """Whether the last good version is served in place of such a contribution."""
        return self in {Status.DEGRADED, Status.SETTLING, Status.FAILED}


# A tuple finds the usual status by identity; a set would hash it, for each of many entries.
SERVED = (Status.OK, Status.STALE, Status.DEGRADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The fields of every entry."""

    name: str
    description: str
    source: str
    """Where it comes from: a search root as the user wrote it, a plugin's name, or `host`."""
    scope: Precedence
    path: str
    """The folder of a skill or plugin, or the file of a tool; the address of an MCP server."""
    unit: str
    """Identifies its origin in every catalog: a folder, or the full name of an entry point."""
    rank: tuple[Any, ...] = field(compare=False)
    """Its position in the order of precedence within its scope."""
    state: Status = Status.OK
    generation: int = 0
    """The generation in which it last changed."""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def address(self) -> str:
        """The long name, `source:name`, which also finds a shadowed entry."""
        return f"{self.source}:{self.name}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """All long names."""
        return (self.address,)

    @property
    def selectors(self) -> tuple[str, ...]:
        """All that a pattern may match: the name, the addresses and the source."""
        return (self.name, *self.addresses, self.source)

    @property
    def is_served(self) -> bool:
        """Whether the model can see it while its group is active."""
        return self.state in SERVED

    @property
    def identity(self) -> tuple[Any, ...]:
        """The key of the same entry in another catalog."""
        return (type(self).__name__, self.scope, self.source, self.unit, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillEntry(Entry):
    """A skill; `manifest` is `None` if it could never be read."""

    groups: tuple[str, ...] = ()
    """Its groups; the model always sees a skill without groups."""
    manifest: SkillManifest | None
    key: str
    """Its folder below the search root; it distinguishes skills of the same name."""
    digest: str
    """Digest of the newest content, good or broken."""
    version: str = ""
    """Digest of the served content; a broken edit does not change it."""
    files: tuple[UnitFile, ...] = field(default=(), compare=False)
    finding: SkillFinding | None = field(default=None, compare=False, repr=False)
    """The finding that it was built from; the same finding gives the same entry."""
    is_for_model: bool = field(init=False, compare=False, repr=False)
    """Whether a model may see and load it; other skills are for the host."""

    def __post_init__(self) -> None:
        is_for_model = self.manifest is not None and self.manifest.is_for_model
        object.__setattr__(self, "is_for_model", is_for_model)

    @property
    def reader(self) -> SkillReader:
        """The reader of its files."""
        from satchel.sources.skill_files import LocalSkillReader  # lazy: needed only with skills

        return self.finding.reader if self.finding else LocalSkillReader(self.path, self.path)

    @property
    def access(self) -> SkillAccess:
        """What can be done with it and its files, wherever they are."""
        if self.finding is None:
            from satchel.sources.skill_files import IN_FOLDER  # lazy: needed only with skills

            return IN_FOLDER
        return self.finding.access

    @property
    def folder(self) -> str:
        """Its folder on this machine; `""` if it has none."""
        return self.path if self.access.has_folder else ""

    @property
    def addresses(self) -> tuple[str, ...]:
        """`source:name` and, for a folder in a search root, `source:folder`."""
        return (self.address, f"{self.source}:{self.key}") if self.key else (self.address,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry(Entry):
    """A tool; `tool` is `None` if its code was read but not run."""

    groups: tuple[str, ...]
    """Its groups. Listings show the tool under the first one."""
    version: str
    """Changes with its schema, its code, or the host's registration of it."""
    tool: Tool | None = field(default=None, compare=False)
    contract: ToolContract | None = field(default=None, compare=False, repr=False)
    """The contract of its calls; known once its code was loaded."""
    contribution: ToolContribution | None = field(default=None, compare=False, repr=False)
    """The contribution that it was built from; the same one gives the same entry."""

    @property
    def group(self) -> str:
        """The group that it is listed under."""
        return self.groups[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry(Entry):
    """A tool group."""

    notes: str = ""
    active: bool = False
    """Whether it is active in a new session."""
    is_off: bool = False
    """Whether its owner says that it is not, so that only who names it gets it."""
    tools: tuple[str, ...] = ()
    """The names of its served tools."""
    skills: tuple[str, ...] = ()
    """The names of its served skills."""
    missing: tuple[str, ...] = ()
    """Required configuration keys without a value."""
    runner: str = ""
    """The name of the host's runner that runs its tools, if it names one."""

    @property
    def is_available(self) -> bool:
        """Whether it can be activated."""
        return not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContribution:
    """What one plugin contributes to the catalog, imported or only read."""

    name: str
    source: str
    scope: Precedence
    path: str
    unit: str
    rank: tuple[Any, ...] = field(compare=False)
    digest: str
    """Digest of code and manifest; equal digests give equal contributions."""
    version: str = ""
    description: str = ""
    runner: str = ""
    """The name of the host's runner that runs its tools, if they and their groups name none."""
    runners: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The runners that its manifest names for single tools; they come before those of the code."""
    compatible_with: tuple[str, ...] = ()
    """The digests of other versions whose calls it may answer on a worker."""
    groups: tuple[Group, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Notes for groups that others may describe, by group."""
    tools: tuple[ToolContribution, ...] = ()
    unusable: tuple[ToolContribution, ...] = ()
    """Tools that cannot be served now, each with its state and the diagnostic that says why."""
    skills: tuple[str, ...] = ()
    """Folders to search for its skills."""
    missing_skills: tuple[str, ...] | None = None
    """Those that do not exist; `None` if it is no plugin folder."""
    command_paths: tuple[str, ...] = ()
    """Files and folders with the commands of a plugin for another client."""
    config: tuple[ConfigField, ...] = ()
    """The configuration fields that it declares."""
    servers: tuple[McpServerManifest, ...] = ()
    """The MCP servers that it declares."""
    sections: tuple[str, ...] = ()
    """Sections at the end of the system prompt."""
    middleware: tuple[Any, ...] = field(default=(), compare=False)
    """Middleware around calls. The catalog does not use it, nor `commands` and `life`."""
    providers: tuple[Any, ...] = field(default=(), compare=False)
    """Providers that it offers."""
    commands: tuple[Any, ...] = field(default=(), compare=False)
    """Commands for the command line."""
    offers: tuple[Any, ...] = field(default=(), compare=False)
    """Prompts and resources for MCP clients."""
    lifecycle: Any = field(default=None, compare=False, repr=False)
    """Its lifecycle, if it has startup, shutdown or catalog hooks."""
    keeps_groups: bool = False
    """Whether its groups stay while it is revoked, without its tools."""
    started_with: str = ""
    """Fingerprint of the values that its startup received."""
    policy: FormatPolicy = TOOLKIT
    """The rules of its format."""
    diagnostics: tuple[Diagnostic, ...] = ()
    state: Status = Status.OK
    is_server: bool = False
    """Whether it is a connected MCP server."""
    is_untrusted: bool = False
    """Whether its code is neither imported nor started, because the user did not trust it so."""
    has_code: bool = False
    """Whether it is a folder or package with code, which `code` imports."""
    imports_nothing: bool = False
    """Whether its code imports nothing, so that it has no tools and no hooks."""
    code: Any = field(default=None, compare=False)
    """The handle of the imported version (`ImportedCode`); the catalog does not use it."""

    @property
    def brings_nothing(self) -> bool:
        """Whether it has no part that can be used, as far as its code is known."""
        is_code_known = not self.has_code or self.code is not None or self.imports_nothing
        if self.missing_skills is None or not is_code_known:
            return False
        # A default group is made of the plugin's name alone.
        own = any(group.name != self.name or group.notes for group in self.groups)
        prompt = (*self.notes, *self.sections)
        skills = {*self.skills}.difference(self.missing_skills)
        files = (*skills, *self.command_paths, *self.servers)
        hooked = (*self.middleware, *self.providers, *self.commands, *self.offers, self.lifecycle)
        return not (own or self.tools or self.unusable or prompt or files or any(hooked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group as its owner describes it."""

    name: str
    description: str = ""
    notes: str = ""
    active: bool = False
    is_off: bool = False
    """Whether the owner says `active: false`."""
    tools: tuple[str, ...] = ()
    """Names of tools of the owner."""
    skills: tuple[str, ...] = ()
    """Names of skills of the owner; the host owns all skills."""
    requires: tuple[str, ...] = ()
    """Configuration keys of the owner that it needs."""
    missing: tuple[str, ...] = ()
    """Required keys without a value; filled in by the loader."""
    runner: str = ""
    """The name of the host's runner that runs its tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContribution:
    """A tool as its owner contributes it; `tool` is `None` if its code was not run."""

    name: str
    description: str
    path: str
    version: str
    """Changes whenever the tool changes."""
    groups: tuple[str, ...] = ()
    """The groups that the tool itself names."""
    tool: Tool | None = field(default=None, compare=False)
    contract: ToolContract | None = field(default=None, compare=False, repr=False)
    """The contract that it is bound to."""
    state: Status = Status.OK
    """`ok`; `stale`; `held` while it waits for approval or a value; `failed`."""
    needs: tuple[str, ...] = ()
    """The configuration keys that it needs, as far as its code says so without being run."""
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginEntry(Entry):
    """A plugin: a folder, an installed package, an MCP server, or the host's own code."""

    version: str
    digest: str
    """Digest of the newest content, good or broken."""
    contribution: PluginContribution
    """The served contribution: the newest good version, if there is one."""

    @property
    def is_server(self) -> bool:
        """Whether it is a connected MCP server."""
        return self.contribution.is_server

    @property
    def servers(self) -> tuple[McpServerManifest, ...]:
        """The MCP servers that it declares."""
        return self.contribution.servers

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that it brings now."""
        is_kept = self.contribution.keeps_groups and self.state is Status.REVOKED
        return self.contribution.groups if self.is_served or is_kept else ()
