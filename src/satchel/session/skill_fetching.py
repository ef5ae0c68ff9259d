"""The instructions of a skill, wherever they are."""

from dataclasses import replace

from satchel.catalog import SkillEntry
from satchel.formats import SkillManifest, split_front_matter
from satchel.settings import Limits
from satchel.sources.skill_files import ServedFile
from satchel.sources.skill_scan import SKILL_FILE


async def fetch_skill(entry: SkillEntry, limits: Limits) -> SkillEntry:
    """Return a skill with its instructions; those at a server are fetched. Raises `ToolError`."""
    if entry.manifest is None or not entry.server:
        return entry
    return _with(entry.manifest, await entry.reader.fetch(SKILL_FILE, limits), entry, limits)


def fetch_skill_async(entry: SkillEntry, limits: Limits) -> SkillEntry:
    """Return the same, for those who may wait. Raises `ToolError`."""
    if entry.manifest is None or not entry.server:
        return entry
    return _with(entry.manifest, entry.reader.read(SKILL_FILE, limits), entry, limits)


def _with(
    manifest: SkillManifest, file: ServedFile, entry: SkillEntry, limits: Limits
) -> SkillEntry:
    front = split_front_matter(file.data, entry.path, limits).value
    return replace(entry, manifest=replace(manifest, body=front.body if front else ""))
