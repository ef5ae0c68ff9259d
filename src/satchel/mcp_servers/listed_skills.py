"""Read the skill list of a server, within the limits for untrusted servers.

In the extension `io.modelcontextprotocol/skills` an entry of the list has the front matter of a
SKILL.md, and the size and digest of every file of the skill. The files are read on demand.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from satchel.diagnostics import Diagnostic, Severity, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.files.secret_files import is_secret_file
from satchel.formats.skill_manifest import SkillManifest, read_listed_skill, read_skill
from satchel.formats.typed_front_matter import typed_front_matter
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.list_reader import REPORT, ListedItems, read_list
from satchel.mcp_servers.tool_definitions import ServerSnapshot
from satchel.settings import MIB, Limits
from satchel.sources.folder_reader import is_skipped
from satchel.sources.skill_files import is_file_name
from satchel.sources.skill_findings import SKILL_FILE
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from mcp import Client

EXTENSION = "io.modelcontextprotocol/skills"
SCHEME = "skill://"

MOST_FILES = 512
MOST_BYTES = 16 * MIB
"""The extension's limits: clients need not accept larger skills."""

_MAX_URI_LENGTH = 1_024
_URI = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)")
_YES, _NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A file of a skill, as its server lists it."""

    name: str
    """Its path inside the skill, separated by `/`."""
    uri: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSkill:
    """A skill as its server lists it."""

    uri: str
    """The address of its SKILL.md at the server."""
    address: str
    """The address of its folder in this satchel, unique among servers."""
    frontmatter: Mapping[str, Any] = field(hash=False)
    files: tuple[SkillFile, ...]
    manifest: SkillManifest = field(hash=False)
    """From the front matter; without the instructions, which are read on demand."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def file(self, name: str) -> SkillFile | None:
        """Return the listed file of that name, or `None`."""
        return next((file for file in self.files if file.name == name), None)


async def list_skills(
    client: "Client", server: str, where: Where, limits: Limits
) -> ServerSnapshot:
    """Return the skills that a server lists, alone; none without the skills extension.

    A list that cannot be read is a diagnostic: the server's tools still work. Raises an error if
    the connection is broken.
    """
    if EXTENSION not in (client.server_capabilities.extensions or {}):
        return ServerSnapshot()

    def check(entry: Any) -> tuple[str, ListedSkill, int]:
        skill = read_entry(entry, server, limits)
        size = len(str(skill.frontmatter)) + sum(len(file.uri) for file in skill.files)
        return skill.address, skill, size

    items = ListedItems(
        "skill",
        where,
        check,
        count_limit=(limits.mcp_skills, "mcp_skills"),
        size_limit=(limits.mcp_message, "mcp_message"),
    )
    if message := await read_list(partial(_page, client), "skills", items, limits.mcp_connect):
        # No skills: a part of the list would look complete.
        diagnostic = make_diagnostic("mcp-skills-unlisted", where, message, REPORT)
        return ServerSnapshot(diagnostics=(diagnostic,))
    return ServerSnapshot(skills=items.values, diagnostics=items.diagnostics, ttl=items.ttl)


async def _page(client: "Client", cursor: str | None) -> Any:
    from mcp_types import PaginatedRequestParams, Request

    request = Request[PaginatedRequestParams, str](
        method="skills/list", params=PaginatedRequestParams(cursor=cursor)
    )
    return await client.session.send_request(request, _page_type())


@cache
def _page_type() -> Any:
    from mcp_types import PaginatedResult

    class SkillsPage(PaginatedResult):
        skills: list[Any]
        # An invalid one must not cost the skills; `ListedItems` reads them.
        next_cursor: Any = None
        ttl_ms: Any = 0

    return SkillsPage


def read_entry(entry: Any, server: str, limits: Limits) -> ListedSkill:
    """Return one entry of a list as a skill. Raises `DefinitionError`.

    The rules are those for local skills.
    """
    if not isinstance(entry, Mapping):
        raise DefinitionError("its entry is not an object")
    uri, front = entry.get("uri"), entry.get("frontmatter")
    folder, parts = _folder_of(uri)
    if not isinstance(front, Mapping):
        raise DefinitionError("its entry has no 'frontmatter'")
    files = _files(entry.get("resources"), folder, limits)
    address = f"{SCHEME}{server}/{folder.removeprefix(SCHEME).replace('://', '/')}"
    try:
        reading = read_listed_skill(front, parts[-1], f"{address}/{SKILL_FILE}", limits)
    except (RecursionError, TypeError, ValueError):
        raise DefinitionError("its front matter cannot be read") from None
    if reading.value is None:
        fatal = (item for item in reading.diagnostics if item.severity is Severity.ERROR)
        raise DefinitionError(next(fatal).message)
    return ListedSkill(
        uri=str(uri),
        address=address,
        frontmatter=front,
        files=files,
        manifest=reading.value.without_leave,
        diagnostics=reading.diagnostics,
    )


def _folder_of(uri: Any) -> tuple[str, list[str]]:
    if not isinstance(uri, str) or not _is_plain(uri) or not uri.endswith(f"/{SKILL_FILE}"):
        raise DefinitionError("its address is not the address of a SKILL.md")
    folder = uri.removesuffix(f"/{SKILL_FILE}")
    match = _URI.fullmatch(folder)
    parts = [_unquoted(part) for part in match[2].split("/")] if match else []
    if not _are_plain(parts) or not is_file_name("/".join(parts)):
        raise DefinitionError("its address is not the address of a SKILL.md")
    return folder, parts


def _files(listed: Any, folder: str, limits: Limits) -> tuple[SkillFile, ...]:
    if listed == "dynamic":
        raise DefinitionError("its files are dynamic, so they cannot be verified")
    if not isinstance(listed, list):
        raise DefinitionError("its entry lists no files")
    limit = min(MOST_FILES, limits.files_per_skill)
    if len(listed) > limit:
        raise DefinitionError(f"it has {len(listed):,} files, more than {limit:,}")
    files: dict[str, SkillFile] = {}
    for item in listed:
        file = _file(item, folder)
        if files.setdefault(file.name, file) is not file:
            raise DefinitionError(f"it lists {file.name!r} twice")
    if SKILL_FILE not in files:
        raise DefinitionError(f"it lists no {SKILL_FILE}")
    if files[SKILL_FILE].size > limits.skill_file:
        raise DefinitionError(
            f"its {SKILL_FILE} has more than {limits.skill_file:,} bytes (limit skill_file)"
        )
    if sum(file.size for file in files.values()) > MOST_BYTES:
        raise DefinitionError(f"its files have more than {MOST_BYTES:,} bytes together")
    # The same names are skipped as in local folders.
    kept = (file for file in files.values() if not any(map(_is_left_out, file.name.split("/"))))
    return tuple(sorted(kept, key=lambda file: file.name))


def _file(item: Any, folder: str) -> SkillFile:
    uri = item.get("uri") if isinstance(item, Mapping) else None
    if not isinstance(uri, str) or not _is_plain(uri) or not uri.startswith(f"{folder}/"):
        raise DefinitionError("it lists a file that is not in its folder")
    parts = [_unquoted(part) for part in uri.removeprefix(f"{folder}/").split("/")]
    name = "/".join(parts)
    # Skipped names may break the rules for file names, but must never lead out of the folder.
    skipped = [_is_left_out(part) and not part.startswith("..") for part in parts]
    checked = "/".join("x" if skip else part for skip, part in zip(skipped, parts, strict=True))
    if not _are_plain(parts) or not is_file_name(checked) or one_line(name) != name:
        raise DefinitionError(
            f"it lists {shorten(one_line(name), 100)!r}, which is not a valid file name"
        )
    size, digest = item.get("size"), item.get("digest")
    if type(size) is not int or size < 0:
        raise DefinitionError(f"it lists {name!r} without its size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise DefinitionError(f"it lists {name!r} without its digest")
    return SkillFile(name=name, uri=uri, size=size, digest=digest)


def _are_plain(parts: list[str]) -> bool:
    return bool(parts) and all(parts) and "." not in parts


def _is_left_out(part: str) -> bool:
    return is_skipped(part) or is_secret_file(part)


def _is_plain(uri: str) -> bool:
    """Return whether an address is printable, and has no query, fragment or backslash."""
    return len(uri) <= _MAX_URI_LENGTH and one_line(uri) == uri and not set(uri) & set("?#\\")


def _unquoted(part: str) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise DefinitionError("it has an address that is not valid UTF-8") from None
    if "/" in text or "\\" in text:
        raise DefinitionError("it has an address with a quoted slash in a name")
    return text


def verify_file(skill: ListedSkill, file: SkillFile, data: bytes, limits: Limits) -> str:
    """Return how the content of a file differs from what its server lists, or `""`."""
    if len(data) != file.size:
        return f"it has {len(data):,} bytes, and {file.size:,} are listed"
    if f"sha256:{sha256(data).hexdigest()}" != file.digest:
        return "its digest differs from the listed one"
    if file.name == SKILL_FILE:
        if not _same_yaml(typed_front_matter(data, limits), skill.frontmatter):
            return "its front matter differs from the listed one"
        if read_skill(data, "", "", limits).value is None:
            return "it is not a valid SKILL.md"
    return ""


def _same_yaml(local: Any, listed: Any) -> bool:
    """Compare two parsings of one YAML text: parsers differ in the types of plain scalars."""
    if isinstance(local, Mapping) and isinstance(listed, Mapping):
        same_keys = local.keys() == listed.keys()
        return same_keys and all(_same_yaml(local[key], listed[key]) for key in local)
    if isinstance(local, list) and isinstance(listed, list):
        return len(local) == len(listed) and all(map(_same_yaml, local, listed))
    if isinstance(listed, bool):
        return str(local).lower() in (_YES if listed else _NO)
    return bool(local == listed) or str(local) == str(listed)
