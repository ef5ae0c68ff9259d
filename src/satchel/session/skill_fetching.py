"""Fetch the instructions of a skill that are not in its manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from satchel.formats.front_matter import split_front_matter
from satchel.sources.skill_findings import SKILL_FILE

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.formats.skill_manifest import SkillManifest
    from satchel.settings import Limits
    from satchel.sources.skill_files import ServedFile


async def fetch_skill(entry: SkillEntry, limits: Limits) -> SkillEntry:
    """Return a skill with its instructions, fetched if needed. Raises `ToolError`."""
    if entry.manifest is None or not entry.access.is_fetched:
        return entry
    file = await entry.reader.fetch(SKILL_FILE, limits)
    return _with_instructions(entry, entry.manifest, file, limits)


def fetch_skill_blocking(entry: SkillEntry, limits: Limits, arguments: str = "") -> SkillEntry:
    """Return the same as `fetch_skill`; blocks until it is fetched. Raises `ToolError`.

    `arguments` go to a source that puts them into the text.
    """
    if entry.manifest is None or not entry.access.is_fetched:
        return entry
    reader: Any = entry.reader
    reader = reader.filled(arguments) if entry.access.fills_arguments else reader
    file: ServedFile = reader.read(SKILL_FILE, limits)
    return _with_instructions(entry, entry.manifest, file, limits)


def _with_instructions(
    entry: SkillEntry, manifest: SkillManifest, file: ServedFile, limits: Limits
) -> SkillEntry:
    front = split_front_matter(file.data, entry.path, limits).value
    body = front.body if front else ""
    return replace(entry, manifest=replace(manifest, body=body))
