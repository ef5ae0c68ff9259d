"""Skills as resources, and as entries of the extension `io.modelcontextprotocol/skills`.

Every file of a skill is a resource, `skill://NAME/PATH`. An entry of the extension lists them
with the digests of their current content.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote

from satchel.catalog.catalog_entries import SkillEntry
from satchel.errors import ToolError
from satchel.formats.typed_front_matter import typed_front_matter
from satchel.groups.group_activation import View
from satchel.mcp_servers.listed_skills import MOST_BYTES, MOST_FILES, SCHEME
from satchel.names import skill_name_fault
from satchel.settings import Limits
from satchel.sources.skill_files import media_type_of
from satchel.sources.skill_findings import SKILL_FILE
from satchel.text import visible, xml_path

TEMPLATE = {
    "uriTemplate": "skill://{name}/{+path}",
    "name": "skill-file",
    "description": "A file of a skill, by the skill's name and the file's path in its folder.",
}


def uri_of(skill: str, path: str = SKILL_FILE) -> str:
    """Return the URI of a file of a skill; with an empty path, that of its folder."""
    return SCHEME + "/".join(quote(part, safe="") for part in (skill, *path.split("/")) if part)


def address_of(skill: SkillEntry, path: str = SKILL_FILE) -> str:
    """Return the URI of a file of a skill; a renamed skill has its original name as a folder."""
    own = _own_name(skill)
    return uri_of(skill.name, f"{own}/{path}" if own != skill.name else path)


def _own_name(skill: SkillEntry) -> str:
    """Return the name in the SKILL.md; a skill may have another name here."""
    return skill.access.own_name or skill.name


def resources_of(skills: Iterable[SkillEntry]) -> Iterator[dict[str, Any]]:
    """Yield the SKILL.md of each skill as a resource; the template covers its other files."""
    for skill in skills:
        yield {
            "uri": address_of(skill),
            "name": skill.name,
            "description": visible(skill.description),
            "mimeType": "text/markdown",
        }


def find_file(uri: str, view: View) -> tuple[SkillEntry, str] | None:
    """Return the skill of the file at a URI, and the file's path in it.

    `None` if it is no file of a visible skill.
    """
    skill, path = _find(uri, view)
    is_file = skill is not None and any(file.name == path for file in skill.files)
    return (skill, path) if skill and is_file else None


def _find(uri: str, view: View) -> tuple[SkillEntry | None, str]:
    """Return the visible skill that a URI names, and the path in its folder."""
    if not uri.startswith(SCHEME):
        return None, ""
    name, *parts = (unquote(part) for part in uri.removeprefix(SCHEME).rstrip("/").split("/"))
    skill = next((item for item in view.skills if item.name == name), None)
    if skill is not None and (own := _own_name(skill)) != skill.name:
        if parts[:1] != [own]:
            return None, ""
        parts = parts[1:]
    return skill, "/".join(parts)


async def read_file(uri: str, skill: SkillEntry, path: str, limits: Limits) -> dict[str, Any]:
    """Return the current bytes of a file as a resource. Raises `ToolError`."""
    file = await skill.reader.fetch(path, limits)
    content = {"uri": uri, "mimeType": media_type_of(file.name, file.data)}
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return {**content, "blob": b64encode(file.data).decode()}
    return {**content, "text": text}


def list_folder(uri: str, view: View) -> list[dict[str, Any]]:
    """Return the files and folders directly in a folder of a skill; `[]` for another URI.

    Format: the extension `io.modelcontextprotocol/skills`.
    """
    skill, path = _find(uri, view)
    if skill is None:
        return []
    start = f"{path}/" if path else ""
    below = [file.name[len(start) :] for file in skill.files if file.name.startswith(start)]
    return [
        {
            "uri": address_of(skill, f"{start}{name}"),
            "name": name,
            **(_likely_kind(name) if name in below else {"mimeType": "inode/directory"}),
        }
        for name in sorted({path.split("/")[0] for path in below})
    ]


def _likely_kind(name: str) -> dict[str, str]:
    """Return the media type that a file name suggests; for images the bytes are needed."""
    kind = media_type_of(name, b"")
    return {} if kind == "text/plain" else {"mimeType": kind}


class SkillEntryCache:
    """Makes the entries of skills, and caches the digests of unchanged files."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[tuple[object, ...], tuple[str, int]] = {}

    def listed(self, skills: Iterable[SkillEntry]) -> list[dict[str, Any]]:
        """Return the entries of the skills that clients can verify; this reads their files."""
        entries = (self.entry(skill) for skill in skills)
        return [entry for entry in entries if entry is not None]

    def entry(self, skill: SkillEntry) -> dict[str, Any] | None:
        """Return the entry of one skill.

        Returns `None` if it breaks the format, is too large or has an unreadable file: no client
        could verify it.
        """
        own = _own_name(skill)
        if skill_name_fault(own) or len(skill.files) > MOST_FILES:
            return None
        try:
            front = skill.access.front_matter
            if front is None:
                data = skill.reader.read(SKILL_FILE, self._limits).data
                front = typed_front_matter(data, self._limits) or {}
            files: list[dict[str, Any]] = [
                {"uri": address_of(skill, name), "digest": digest, "size": size}
                for name, (digest, size) in self._files(skill)
            ]
        except ToolError:
            return None
        is_named = front.get("name") == own and isinstance(front.get("description"), str)
        if not is_named or sum(file["size"] for file in files) > MOST_BYTES:
            return None
        return {"uri": address_of(skill), "frontmatter": front, "resources": files}

    def _files(self, skill: SkillEntry) -> Iterator[tuple[str, tuple[str, int]]]:
        for file in skill.files:
            if skill.access.has_digests:
                # Not fetched yet: the file is verified by this digest when it is read.
                yield file.name, (file.digest, file.size)
                continue
            key = (skill.path, file.name, file.version, file.stamp)
            if (content := self._known.get(key)) is None:
                served = skill.reader.read(file.name, self._limits)
                content = (f"sha256:{hashlib.sha256(served.data).hexdigest()}", len(served.data))
                # A file that was only listed is content by its stamp, once that is old enough.
                is_listed = not file.digest and file.stamp.inode
                if file.digest == served.digest or (is_listed and file.stamp.is_settled()):
                    self._known[key] = content
            yield file.name, content

    def forget_all_but(self, skills: Iterable[SkillEntry]) -> None:
        """Forget files that no longer exist."""
        there = {
            (skill.path, file.name, file.version, file.stamp)
            for skill in skills
            for file in skill.files
        }
        # A copy: another thread may be listing skills.
        contents = self._known.copy()
        self._known = {key: content for key, content in contents.items() if key in there}


def without_folders(text: str, skills: Iterable[SkillEntry]) -> str:
    """Replace the paths of skills on this machine by URIs that clients can read."""
    addresses = {
        path: address_of(skill, "")
        for skill in skills
        for path in (skill.path, xml_path(skill.path))
    }
    # The path of one folder may be a prefix of another.
    for path in sorted(addresses, key=len, reverse=True):
        text = text.replace(path, addresses[path])
    return text
