"""What a lock file says about the things that were found."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, field, replace
from functools import lru_cache
from hashlib import pbkdf2_hmac, sha256
from typing import TYPE_CHECKING

from satchel.catalog.catalog_entries import Status
from satchel.errors import SatchelError
from satchel.files.file_reader import UnreadableFileError
from satchel.formats.lock_file import Lock, LockEntry
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.server_instructions import INSTRUCTIONS, notes_of
from satchel.mcp_servers.server_offers import OfferedPrompt, OfferedResource
from satchel.setup.source_records import origins
from satchel.sources.search_roots import Precedence, full_path
from satchel.trust.server_outline import server_outline
from satchel.trust.tree_digest import digest_of_finding

if TYPE_CHECKING:
    from satchel.formats.toolkit_manifest import PluginManifest
    from satchel.loader.pass_provider import Candidate
    from satchel.loader.scan_cache import ScanCache
    from satchel.mcp_servers.server_contributions import ServerOffer
    from satchel.mcp_servers.server_options import ServerConfig
    from satchel.mcp_servers.tool_definitions import ToolDefinition
    from satchel.sources.package_scan import PackageFinding
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.skill_findings import SkillFinding

_ROUNDS = 200_000
_MOVE = "move one below the folder of the lock file"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockPlaces:
    """Names paths without the parts that differ between machines."""

    base: str
    """The folder of the lock file, without links."""
    home: str
    file: str = ""
    """The lock file, which is part of no digest."""
    origins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Where added folders came from, by their path."""

    def of(self, path: str) -> str:
        """Return a path relative to the lock file or the home folder; else its last two parts."""
        for folder, prefix in ((self.base, ""), (self.home, "~/")):
            below = os.path.relpath(path, folder)
            if not below.startswith(os.pardir):
                return prefix + below.replace(os.sep, "/")
        return "/".join(path.replace(os.sep, "/").split("/")[-2:])

    def without_folders(self, text: str, folder: str) -> str:
        """Return JSON in which the paths of a folder and of the home folder are marked."""
        for number, path in enumerate((folder, self.home)):
            name = re.escape(json.dumps(path)[1:-1])
            # JSON has no such character. A name in an address is not the folder `/name`.
            text = re.sub(rf"(?<![\w.-]){name}(?![\w.-])", f"\0{number}", text)
        return text

    def origin(self, path: str) -> Mapping[str, str]:
        """Return where a folder came from and who signed that, as fields of its entry."""
        return self.origins.get(path, {})


def lock_places(file: str | os.PathLike[str]) -> LockPlaces:
    """Return the places of a lock file at a path."""
    path = full_path(file)
    return LockPlaces(base=os.path.dirname(path), home=full_path("~"), file=path, origins=origins())


def skill_entry(finding: SkillFinding, places: LockPlaces) -> LockEntry | None:
    """Return the entry of a skill or command; `None` if it is broken."""
    if finding.manifest is None:
        return None
    root = finding.root
    if root.scope is Precedence.PLUGIN:
        below = os.path.join(os.path.basename(root.path), *finding.key.split("/"))
        place = f"plugin {root.source}/{below.replace(os.sep, '/').rstrip('/')}"
    else:
        place = places.of(finding.path)
    digest, problem = _digest(finding, places.file)
    values = {"digest": digest, **places.origin(finding.path)}
    name = finding.manifest.name
    return LockEntry(kind="skill", place=place, name=name, values=values, problem=problem)


def plugin_entries(
    plugin: Candidate, places: LockPlaces, configured: Mapping[str, object]
) -> tuple[LockEntry, ...]:
    """Return the entries of a plugin and of the notes of its groups; none if it is broken.

    `configured` are its values in the project's `satchel.toml`, of which the file has a hash.
    """
    finding, read = plugin.finding, plugin.contribution
    if finding is None or read.state is Status.FAILED:
        return ()
    digest, problem = _digest(finding, places.file)
    values = {"digest": digest, **places.origin(read.path)}
    if read.version:
        values["version"] = read.version
    if configured:
        text = json.dumps(dict(configured), sort_keys=True, default=str)
        values["config"] = _slow_hash(text, read.name)
    is_package = read.scope is Precedence.PLUGIN
    place = f"distribution {read.source}" if is_package else places.of(read.path)
    entry = LockEntry(kind="plugin", place=place, name=read.name, values=values, problem=problem)
    return entry, *_group_entries(entry, finding.part.manifest if finding.part else None)


def server_entry(server: ServerConfig, places: LockPlaces) -> LockEntry:
    """Return the entry of a declared MCP server: a hash of its declaration, and an outline."""
    # A `.mcp.json` is read with its folder and the home folder filled in.
    declared = places.without_folders(server.declared, os.path.dirname(server.path))
    values = {
        "digest": _slow_hash(declared, server.name),
        "reached": server_outline(server.origin.reached),
    }
    place = declared_in(server.owner, server.path, places)
    return LockEntry(kind="server", place=place, name=server.name, values=values)


def lock_of(
    cache: ScanCache,
    declared: Iterable[ServerConfig],
    offered: Collection[ServerOffer],
    places: LockPlaces,
    disabled: Collection[str] = (),
) -> Lock:
    """Return the lock of everything that a pass found, and of what connected servers offer.

    `disabled` are the units of skills and plugins that are disabled, and so not in it. Raises
    `SatchelError` for two folders that would have the same entry.
    """
    findings = (finding for scan in cache.skills.values() for finding in scan.findings.values())
    skills = (finding for finding in findings if finding.path not in disabled)
    plugins = (
        item
        for answer in cache.answers.values()
        for item in answer.candidates
        if item.contribution.state is not Status.DISABLED and item.contribution.unit not in disabled
    )
    entries = [
        *filter(
            None, (skill_entry(finding, places) for finding in skills if not finding.access.origin)
        ),
        *(
            entry
            for item in plugins
            for entry in plugin_entries(
                item, places, cache.selection.layer(item.contribution.name).values
            )
        ),
    ]
    connected = []
    for server in declared:
        entry = server_entry(server, places)
        entries.append(entry)
        for item in offered:
            if item.config.origin == server.origin and item.snapshot.is_up:
                connected.append(offers_place(entry))
                entries += (tool_entry(entry, tool) for tool in item.wanted)
                if item.config.options.lazy:
                    continue  # the rest is not known until its first call
                entries += (offer_entry(entry, one) for one in item.snapshot.prompts)
                entries += (offer_entry(entry, one) for one in item.snapshot.resources)
                if notes := notes_of(server.name, item.snapshot):
                    entries.append(instructions_entry(entry, notes))
    lock = Lock(entries, connected)
    for entry in entries:
        if lock.entries[entry.key].served != entry.served:
            raise SatchelError(f"two folders are called {entry} in a lock file", fix=_MOVE)
    return lock


def declared_in(plugin: str, path: str, places: LockPlaces) -> str:
    """Return where a server is declared: in a plugin or in a file."""
    return f"plugin {plugin}" if plugin else places.of(path)


def tool_entry(server: LockEntry, tool: ToolDefinition) -> LockEntry:
    """Return the entry of a tool of an MCP server."""
    return _offer_entry(server, tool.name, tool.text)


def instructions_entry(server: LockEntry, notes: str) -> LockEntry:
    """Return the entry of an MCP server's instructions, which no tool has the name of."""
    return _offer_entry(server, INSTRUCTIONS, notes)


def offer_entry(server: LockEntry, offered: OfferedPrompt | OfferedResource) -> LockEntry:
    """Return the entry of a prompt or resource of an MCP server, without fields for clients."""
    text = json.dumps(asdict(replace(offered, mcp_fields={})), sort_keys=True)
    if isinstance(offered, OfferedPrompt):
        return _offer_entry(server, offered.name, text, kind="prompt")
    return _offer_entry(server, offered.uri, text, kind="resource")


def offers_place(server: LockEntry) -> str:
    """Return the place of what an MCP server offers."""
    return f"{server.name} of {server.place}"


def _offer_entry(server: LockEntry, name: str, text: str, *, kind: str = "tool") -> LockEntry:
    values = {"digest": _hash(text)}
    return LockEntry(kind=kind, place=offers_place(server), name=name, values=values)


def _group_entries(plugin: LockEntry, manifest: PluginManifest | None) -> Iterable[LockEntry]:
    if manifest is None:
        return
    notes = {manifest.name or plugin.name: manifest.notes}
    notes |= {group.name: group.notes for group in manifest.groups}
    for group, text in notes.items():
        if text:
            values = {"notes": _hash(text)}
            yield LockEntry(kind="group", place=plugin.place, name=group, values=values)


def _digest(finding: SkillFinding | PluginFinding | PackageFinding, file: str) -> tuple[str, str]:
    """Return the digest of its content, `""` if that cannot be read, and why."""
    try:
        return digest_of_finding(finding, file), ""
    except UnreadableFileError as error:
        return "", str(error)


@lru_cache(256)
def _slow_hash(text: str, salt: str) -> str:
    """Return a hash that takes long to make: the file is shared, and the text may have a password.

    Leaving the values out would not do: some, such as `NODE_OPTIONS`, name code that runs.
    """
    data, extra = text.encode(errors="replace"), salt.encode(errors="replace")
    return f"pbkdf2:{pbkdf2_hmac('sha256', data, extra, _ROUNDS).hex()}"


def _hash(text: str) -> str:
    return f"sha256:{sha256(text.encode(errors='replace')).hexdigest()}"
