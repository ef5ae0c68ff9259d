"""Serve only what a lock file has: each thing is compared as it was read, before it is used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from satchel.catalog.catalog_entries import Status
from satchel.diagnostics import Severity, Where, left_out_server, make_diagnostic
from satchel.errors import SatchelError
from satchel.files.file_reader import UnreadableFileError, is_inside, read_regular
from satchel.files.state_files import exists
from satchel.formats.lock_file import SERVER_OFFERS, Lock, read_lock
from satchel.loader.lock_entries import (
    LockPlaces,
    instructions_entry,
    lock_places,
    offer_entry,
    plugin_entries,
    server_entry,
    skill_entry,
    tool_entry,
)
from satchel.plugins.plugin_diagnostics import failed_contribution
from satchel.settings import MIB
from satchel.sources.search_roots import full_path
from satchel.trust.locked_skill_reader import LockedSkillReader

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, ToolContribution
    from satchel.diagnostics import Diagnostic
    from satchel.formats.lock_file import LockDifference, LockEntry
    from satchel.loader.pass_provider import Candidate
    from satchel.mcp_servers.remote_tool import RemoteTool
    from satchel.mcp_servers.server_offers import RemotePrompt, RemoteResource
    from satchel.mcp_servers.server_options import ServerConfig
    from satchel.sources.skill_findings import SkillFinding

_MOST_SHOWN = 10
_LARGEST = 64 * MIB
_NOT_LOCKED = "skills of MCP servers cannot be locked; it is not used"


class LockGuard:
    """Compares what was found with a lock. Findings that did not change are compared once."""

    def __init__(self, lock: Lock, file: str, places: LockPlaces, *, is_frozen: bool) -> None:
        self.lock, self.file, self.is_frozen = lock, file, is_frozen
        self._places = places
        self.declared: tuple[ServerConfig, ...] = ()
        """All servers that were declared in the last pass, also those that may not be used."""
        self._seen: dict[tuple[str, str], tuple[Any, Any]] = {}

    def plugin(
        self,
        candidate: Candidate,
        declared: Iterable[ServerConfig],
        configured: Mapping[str, object],
    ) -> PluginContribution:
        """Return a plugin, failed if other files are locked, or without tools that differ.

        `configured` are its values in the project's `satchel.toml`.
        """
        contribution, finding = candidate.contribution, candidate.finding
        if finding is not None:

            def check(_: object) -> tuple[Diagnostic | None, Status]:
                entries = plugin_entries(candidate, self._places, configured)
                # A last good version would get the new configuration, too.
                is_other = any(self._is_configured_otherwise(entry) for entry in entries)
                reason = self._drift(entries, contribution.path)
                return reason, Status.REVOKED if is_other else Status.FAILED

            reason, state = self._once(
                "plugin", f"{contribution.unit}\0{configured}", finding, check
            )
            if reason is None:
                return contribution
            return replace(failed_contribution(contribution, reason), state=state)
        owner = next((item for item in declared if item.origin == candidate.origin), None)
        return contribution if owner is None else self._with_locked_offers(contribution, owner)

    def skill(self, finding: SkillFinding) -> SkillFinding:
        """Return a skill whose files are read as they are locked, or a broken one with a reason."""
        judged: SkillFinding = self._once("skill", finding.path, finding, self._judge_skill)
        return judged

    def servers(
        self, declared: Iterable[ServerConfig]
    ) -> tuple[tuple[ServerConfig, ...], tuple[Diagnostic, ...]]:
        """Return the servers that may be connected, and why others may not."""
        self.declared = tuple(declared)
        kept, problems = [], []
        for server in self.declared:
            reason = self._drift([server_entry(server, self._places)], server.path)
            if reason is None:
                kept.append(server)
            else:
                problems.append(reason)
        return tuple(kept), tuple(problems)

    def require(self, now: Lock, diagnostics: Iterable[Diagnostic]) -> None:
        """Raise `SatchelError` for a difference; if frozen, only for something that is missing.

        What a server offers counts only if it is connected; later, each tool is compared. The
        `diagnostics` of what was read say whether trust is missing, which is then the reason.
        """
        differences = self.lock.differences(now)
        held = [item.now for item in differences if item.now and item.now.kind == "plugin"]
        owners = tuple(f"plugin {plugin.name}" for plugin in held)
        groups = {("group", plugin.place) for plugin in held}
        drift = [
            item
            for item in differences
            if (item.entry.kind not in SERVER_OFFERS or item.entry.place in now.connected)
            and (item.now is None or not self.is_frozen)
            and (item.entry.kind != "resource" or not self.is_frozen)  # they come and go
            and (item.entry.kind, item.entry.place) not in groups
            and not _is_part_of(item.entry.place, owners)
        ]
        if not drift:
            return
        shown = "; ".join(map(str, drift[:_MOST_SHOWN]))
        rest = f"; {len(drift) - _MOST_SHOWN} more" if len(drift) > _MOST_SHOWN else ""
        message, where, fix = "does not fit what is there", self.file, _REVIEW
        if any(item.is_loss for item in drift):
            fix = _REVIEW_LOSS
        if (reason := why_not_locked(diagnostics, drift, self._places)) is not None:
            message = f"{reason.message}; so {self.file} does not fit"
            where, fix = reason.where.path, reason.fix
        raise SatchelError(f"{message}: {shown}{rest}", where=where, fix=fix)

    def _once(self, kind: str, path: str, finding: Any, check: Any) -> Any:
        before = self._seen.get((kind, path))
        if before is None or before[0] is not finding:
            self._seen[kind, path] = before = finding, check(finding)
        return before[1]

    def _judge_skill(self, finding: SkillFinding) -> SkillFinding:
        if finding.access.is_fetched:
            where, fix = Where(finding.path), "copy it into a folder"
            problem = make_diagnostic("lock-new", where, _NOT_LOCKED, fix)
            return replace(finding, manifest=None, diagnostics=(*finding.diagnostics, problem))
        entry = None if finding.access.origin else skill_entry(finding, self._places)
        if entry is None:
            return finding  # it is broken, or given in code
        if reason := self._drift([entry], finding.path):
            return replace(finding, manifest=None, diagnostics=(*finding.diagnostics, reason))
        if finding.remote is not None:
            return finding  # a command, whose only file is in memory
        try:
            reader = LockedSkillReader.of(finding, self._places.file)
        except UnreadableFileError:
            reader = None
        if reader is None or reader.digest != entry.values["digest"]:
            # It changed since it was compared.
            entry = replace(entry, values={**entry.values, "digest": ""})
            reasons = filter(None, [self._drift([entry], finding.path)])
            return replace(finding, manifest=None, diagnostics=(*finding.diagnostics, *reasons))
        return replace(finding, remote=reader)

    def _with_locked_offers(
        self, contribution: PluginContribution, server: ServerConfig
    ) -> PluginContribution:
        """Return a server without what differs: tools, prompts, resources and instructions."""
        entry = server_entry(server, self._places)
        offers = cast("tuple[RemotePrompt | RemoteResource, ...]", contribution.offers)
        reasons = [
            self._drift([offer_entry(entry, it.offered)], contribution.path) for it in offers
        ]
        contribution = replace(
            contribution,
            offers=tuple(it for it, reason in zip(offers, reasons, strict=True) if not reason),
            diagnostics=(*contribution.diagnostics, *filter(None, reasons)),
        )
        instructions = {*contribution.notes.values(), *(it.notes for it in contribution.groups)}
        notes = [instructions_entry(entry, text) for text in instructions if text]
        if (reason := self._drift(notes, contribution.path)) is not None:
            groups = tuple(replace(group, notes="") for group in contribution.groups)
            diagnostics = (*contribution.diagnostics, reason)
            contribution = replace(contribution, groups=groups, notes={}, diagnostics=diagnostics)
        judged = [self._judge_tool(entry, tool) for tool in contribution.tools]
        tools = tuple(tool for tool in judged if tool.state is not Status.HELD)
        held = tuple(tool for tool in judged if tool.state is Status.HELD)
        return replace(contribution, tools=tools, unusable=(*contribution.unusable, *held))

    def _judge_tool(self, server: LockEntry, tool: ToolContribution) -> ToolContribution:
        definition = cast("RemoteTool", tool.tool).definition
        reason = self._drift([tool_entry(server, definition)], tool.path)
        if reason is None:
            return tool
        return replace(tool, tool=None, state=Status.HELD, diagnostics=(*tool.diagnostics, reason))

    def _is_configured_otherwise(self, entry: LockEntry) -> bool:
        locked = self.lock.entries.get(entry.key)
        return locked is not None and locked.values.get("config") != entry.values.get("config")

    def _drift(self, entries: Iterable[LockEntry], path: str) -> Diagnostic | None:
        """Return the first difference between what was found and the lock."""
        for entry in entries:
            locked = self.lock.entries.get(entry.key)
            if locked is None:
                message = f"{entry} is not in {self.file}; it is not used"
                return make_diagnostic("lock-new", Where(path), message, _FIX)
            if locked.served != entry.served or not all(entry.served.values()):
                message = f"{entry} differs from {self.file}; this version is not used"
                return make_diagnostic("lock-changed", Where(path), message, _FIX)
        return None


def load_guard(path: str | os.PathLike[str], *, is_frozen: bool) -> LockGuard:
    """Return the guard of a lock file. Raises `SatchelError` if it is missing or broken."""
    file = os.fspath(path)
    return LockGuard(lock_at(file), file, lock_places(file), is_frozen=is_frozen)


def lock_at(file: str) -> Lock:
    """Read a lock file. Raises `SatchelError` if it is missing or broken."""
    try:
        data, _ = read_regular(full_path(file), _LARGEST)
    except UnreadableFileError as problem:
        fix = "" if exists(full_path(file)) else "run 'satchel lock' where it should be"
        raise SatchelError(f"cannot be read: {problem}", where=file, fix=fix) from None
    return read_lock(data, file)


UNTRUSTED = ("project-untrusted", "code-untrusted")
"""Codes of the diagnostics that trust is missing."""
_NOTHING_READ = (*UNTRUSTED, "mcp-invalid", "choices-unreadable")
"""Codes of diagnostics that may take away anything, the first reason first."""


def why_not_locked(
    diagnostics: Iterable[Diagnostic], differences: Iterable[LockDifference], places: LockPlaces
) -> Diagnostic | None:
    """Return why something that is locked is gone or changed, if a diagnostic says so.

    Held code comes first. If something is lost, so do missing trust and a file of settings that
    cannot be read; then what is wrong with the skill, plugin or server that is gone.
    """
    lost = [item for item in differences if item.is_loss]
    gone = [item.entry for item in lost if item.now is None]
    codes = ("code-held", *(_NOTHING_READ if lost else ()))
    diagnostics = list(diagnostics)
    reasons = [item for code in codes for item in diagnostics if item.code == code]
    reasons += [it for it in diagnostics if any(_concerns(it, entry, places) for entry in gone)]
    return next(iter(reasons), None)


def _concerns(item: Diagnostic, entry: LockEntry, places: LockPlaces) -> bool:
    """Return whether a diagnostic may say why something that is locked is gone."""
    if item.code == "disabled":
        kind = r"plugin '\w+:" if entry.kind == "server" else f"{entry.kind} '"
        return re.match(f"{kind}{re.escape(entry.name)}' ", item.message) is not None
    if entry.kind == "server":
        return left_out_server(item) == entry.name
    if item.severity is Severity.INFO or item.code.startswith("lock-"):
        return False
    # Its file, itself, or a folder that it is in.
    place = places.of(full_path(item.where.path))
    return is_inside(place, entry.place) or is_inside(entry.place, place)


def _is_part_of(place: str, owners: Iterable[str]) -> bool:
    return any(place == owner or place.startswith(f"{owner}/") for owner in owners)


_REVIEW = "review it with 'satchel lock --diff', then run 'satchel lock'"
_REVIEW_LOSS = "review it with 'satchel lock --diff', then run 'satchel lock --prune'"
_FIX = f"undo the change, or {_REVIEW}"
