"""Skills as a server lists them, within the limits that are held against strangers.

The extension `io.modelcontextprotocol/skills`: an entry of the list has the frontmatter of a
SKILL.md, and every file of the skill with its size and digest. Nothing is read ahead of need.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from satchel.diagnostics import Diagnostic, Severity, Where, make_diagnostic
from satchel.errors import DefinitionError
from satchel.formats import SkillManifest, read_listed_skill, read_skill
from satchel.formats.typed_front_matter import typed_front_matter
from satchel.settings import MIB, Limits
from satchel.sources.folder_reader import is_skipped
from satchel.sources.skill_files import is_file_name
from satchel.sources.skill_scan import SKILL_FILE
from satchel.text import one_line, shorten
from satchel.tools.callables import in_thread

if TYPE_CHECKING:
    from mcp import Client

EXTENSION = "io.modelcontextprotocol/skills"
SCHEME = "skill://"

MOST_FILES = 512
MOST_BYTES = 16 * MIB
"""Larger skills need not be accepted by any client of the extension."""

_MOST_PAGES = 1_000
_MOST_PROBLEMS = 20
_LONGEST_URI = 1_024
_URI = re.compile(r"([a-z][a-z0-9+.-]*)://(.+)")
_YES, _NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A file of a skill, as its server lists it."""

    name: str
    """Its path inside the skill, with `/`."""
    uri: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSkill:
    """A skill as its server lists it."""

    uri: str
    """The address of its SKILL.md at the server."""
    address: str
    """The address of its folder here: no two servers have the same."""
    frontmatter: Mapping[str, Any] = field(hash=False)
    files: tuple[SkillFile, ...]
    manifest: SkillManifest = field(hash=False)
    """What the frontmatter says; the instructions are still at the server."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def file(self, name: str) -> SkillFile | None:
        """Return the file of that name, if it is listed."""
        return next((file for file in self.files if file.name == name), None)


@dataclass(frozen=True, slots=True)
class SkillListing:
    """All skills that a server lists at one time, and what is wrong with others."""

    skills: tuple[ListedSkill, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    fresh: float | None = None
    """Seconds for which it holds, if the server says so."""


def offers_skills(client: "Client") -> bool:
    """Tell whether a server has the extension."""
    return EXTENSION in (client.server_capabilities.extensions or {})


async def listed_skills(client: "Client", server: str, where: str, limits: Limits) -> SkillListing:
    """Return all skills that a server lists, page by page; what goes wrong costs only them.

    Raises what tells that the connection is of no more use.
    """
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    collected = _Collected(server, where, limits)
    why = ""
    try:
        # One limit for all pages: the tools wait for the end of them.
        async with asyncio.timeout(limits.mcp_connect):
            await _pages(client, collected)
    except TimeoutError:
        why = f"it did not list them within {limits.mcp_connect:g} s (limit mcp_connect)"
    except MCPError as problem:
        if problem.code == CONNECTION_CLOSED:
            raise
        why = f"it refused: {shorten(one_line(problem.message), 300)}"
    except ValueError:  # of pydantic, too
        why = "its answer is no list of skills"
    return collected.unlisted(why) if why else collected.listing()


async def _pages(client: "Client", collected: "_Collected") -> None:
    from mcp_types import PaginatedRequestParams, Request
    from pydantic import TypeAdapter

    answers: Any = TypeAdapter(dict[str, Any])
    cursor, seen = None, set[str]()
    for _ in range(_MOST_PAGES):
        asked = Request[PaginatedRequestParams, str](
            method="skills/list", params=PaginatedRequestParams(cursor=cursor)
        )
        page: dict[str, Any] = await client.session.send_request(asked, answers)
        # In a thread: this is the loop of all servers, and a page may be long.
        has_room = await in_thread(partial(collected.take, page))
        cursor = page.get("nextCursor")
        if not has_room or not isinstance(cursor, str) or cursor in seen:
            return
        seen.add(cursor)


class _Collected:
    """What one listing found so far."""

    def __init__(self, server: str, where: str, limits: Limits) -> None:
        self._server, self._where, self._limits = server, where, limits
        self._found: dict[str, ListedSkill] = {}
        self._problems: list[Diagnostic] = []
        self._seen = self._size = self._untold = 0
        self._fresh: float | None = None

    def take(self, page: Mapping[str, Any]) -> bool:
        """Take the entries of a page; tell whether there is room for more. Raises `ValueError`."""
        entries = page.get("skills")
        if not isinstance(entries, list):
            raise ValueError("no list of skills")  # noqa: TRY004 - of a stranger, not of ours
        ttl = page.get("ttlMs")
        if isinstance(ttl, int | float) and ttl > 0:
            self._fresh = min(ttl / 1000, self._fresh or ttl / 1000)
        for entry in entries:
            if self._seen >= self._limits.mcp_skills or self._size > self._limits.mcp_message:
                self._problems.append(self._too_many())
                return False
            self._seen += 1
            self._take(entry)
        return True

    def _take(self, entry: Any) -> None:
        try:
            skill = read_entry(entry, self._server, self._limits)
        except DefinitionError as problem:
            self._leave_out(entry, problem.message)
            return
        if self._found.setdefault(skill.address, skill) is not skill:
            self._leave_out(entry, "another of that address comes before it")
            return
        self._size += len(str(skill.frontmatter)) + sum(len(file.uri) for file in skill.files)

    def _leave_out(self, entry: Any, why: str) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(invalid(self._where, _name_of(entry), why))
        else:
            self._untold += 1

    def listing(self) -> SkillListing:
        """Return all that was found."""
        problems = list(self._problems)
        if self._untold:
            told = f"{self._untold} more skills are left out"
            problems.append(make_diagnostic("mcp-skill-invalid", Where(self._where), told))
        skills = sorted(self._found.values(), key=lambda skill: skill.address)
        return SkillListing(tuple(skills), tuple(dict.fromkeys(problems)), self._fresh)

    def unlisted(self, why: str) -> SkillListing:
        """Return a listing of no skills: half of one would look like the whole."""
        told = f"the skills of MCP server {self._server!r} are not known: {why}"
        problem = make_diagnostic("mcp-skills-unlisted", Where(self._where), told, _TELL)
        return SkillListing(diagnostics=(problem,))

    def _too_many(self) -> Diagnostic:
        return make_diagnostic(
            "mcp-too-many-skills",
            Where(self._where),
            f"it lists more than {self._limits.mcp_skills} skills (limit mcp_skills), or more of "
            f"them than {self._limits.mcp_message // MIB} MiB (limit mcp_message); the rest is "
            "left out",
            "raise the limit, or have fewer listed",
        )


_TELL = "tell whoever runs the server"


def invalid(where: str, skill: str, why: str) -> Diagnostic:
    """Report a skill that cannot be used."""
    return make_diagnostic(
        "mcp-skill-invalid",
        Where(where),
        f"skill {shorten(one_line(skill), 100)!r} is left out: {shorten(one_line(why), 300)}",
        _TELL,
    )


def _name_of(entry: Any) -> str:
    uri = entry.get("uri") if isinstance(entry, Mapping) else None
    return uri if isinstance(uri, str) else "without an address"


def read_entry(entry: Any, server: str, limits: Limits) -> ListedSkill:
    """Read one entry of a list. Raises `DefinitionError` for what no local skill could be."""
    if not isinstance(entry, Mapping):
        raise DefinitionError("its entry is no object")
    uri, front = entry.get("uri"), entry.get("frontmatter")
    folder, parts = _folder_of(uri)
    if not isinstance(front, Mapping):
        raise DefinitionError("its entry has no frontmatter")
    files = _files(entry.get("resources"), folder, limits)
    address = f"{SCHEME}{server}/{folder.removeprefix(SCHEME).replace('://', '/')}"
    try:
        reading = read_listed_skill(front, parts[-1], f"{address}/{SKILL_FILE}", limits)
    except (RecursionError, TypeError, ValueError):
        raise DefinitionError("its frontmatter cannot be read") from None
    if reading.value is None:
        fatal = (item for item in reading.diagnostics if item.severity is Severity.ERROR)
        raise DefinitionError(next(fatal).message)
    manifest = reading.value.without_leave
    return ListedSkill(
        uri=str(uri),
        address=address,
        frontmatter=front,
        files=files,
        manifest=manifest,
        diagnostics=reading.diagnostics,
    )


def _folder_of(uri: Any) -> tuple[str, list[str]]:
    """Return the address of the folder of a SKILL.md, and the parts of its path."""
    if not isinstance(uri, str) or not _is_plain(uri) or not uri.endswith(f"/{SKILL_FILE}"):
        raise DefinitionError("its address is none of a SKILL.md")
    folder = uri.removesuffix(f"/{SKILL_FILE}")
    match = _URI.fullmatch(folder)
    parts = [_unquoted(part) for part in match[2].split("/")] if match else []
    if not _are_plain(parts) or not is_file_name("/".join(parts)):
        raise DefinitionError("its address is none of a SKILL.md")
    return folder, parts


def _files(listed: Any, folder: str, limits: Limits) -> tuple[SkillFile, ...]:
    """Return the files of a skill, in the order of their names."""
    if listed == "dynamic":
        raise DefinitionError("its files are made when they are read, so nothing can be verified")
    if not isinstance(listed, list):
        raise DefinitionError("its entry lists no files")
    most = min(MOST_FILES, limits.files_per_skill)
    if len(listed) > most:
        raise DefinitionError(f"it has {len(listed):,} files, more than {most:,}")
    found: dict[str, SkillFile] = {}
    for item in listed:
        file = _file(item, folder)
        if found.setdefault(file.name, file) is not file:
            raise DefinitionError(f"it lists {file.name!r} twice")
    if SKILL_FILE not in found:
        raise DefinitionError(f"it lists no {SKILL_FILE}")
    if found[SKILL_FILE].size > limits.skill_file:
        raise DefinitionError(
            f"its {SKILL_FILE} has more than {limits.skill_file:,} bytes (limit skill_file)"
        )
    if sum(file.size for file in found.values()) > MOST_BYTES:
        raise DefinitionError(f"its files have more than {MOST_BYTES:,} bytes together")
    # What is never looked at in a folder here is not there either.
    kept = (file for file in found.values() if not any(map(is_skipped, file.name.split("/"))))
    return tuple(sorted(kept, key=lambda file: file.name))


def _file(item: Any, folder: str) -> SkillFile:
    uri = item.get("uri") if isinstance(item, Mapping) else None
    if not isinstance(uri, str) or not _is_plain(uri) or not uri.startswith(f"{folder}/"):
        raise DefinitionError("it lists a file that is not in its folder")
    parts = [_unquoted(part) for part in uri.removeprefix(f"{folder}/").split("/")]
    name = "/".join(parts)
    # The name is judged without what is merely skipped, and never without what leads out.
    judged = "/".join("x" if _is_only_skipped(part) else part for part in parts)
    if not _are_plain(parts) or not is_file_name(judged) or one_line(name) != name:
        raise DefinitionError(f"it lists {shorten(one_line(name), 100)!r}, which is no file name")
    size, digest = item.get("size"), item.get("digest")
    if type(size) is not int or size < 0:
        raise DefinitionError(f"it lists {name!r} without its size")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise DefinitionError(f"it lists {name!r} without its digest")
    return SkillFile(name=name, uri=uri, size=size, digest=digest)


def _are_plain(parts: list[str]) -> bool:
    return bool(parts) and all(parts) and "." not in parts


def _is_only_skipped(part: str) -> bool:
    return is_skipped(part) and not part.startswith("..")


def _is_plain(uri: str) -> bool:
    """Tell whether an address can be shown, and leads nowhere but where it says."""
    return len(uri) <= _LONGEST_URI and one_line(uri) == uri and not set(uri) & set("?#\\")


def _unquoted(part: str) -> str:
    """Return a part of an address as text. Raises `DefinitionError` for what is several parts."""
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise DefinitionError("it has an address that is no text") from None
    if "/" in text or "\\" in text:
        raise DefinitionError("it has an address in which a name holds a slash")
    return text


def unverified(skill: ListedSkill, file: SkillFile, data: bytes, limits: Limits) -> str:
    """Say how what was read of a skill differs from what its server listed, `""` if it does not."""
    if len(data) != file.size:
        return f"it has {len(data):,} bytes, and {file.size:,} are listed"
    if f"sha256:{sha256(data).hexdigest()}" != file.digest:
        return "its digest is not the one that is listed"
    if file.name == SKILL_FILE:
        if not _is_alike(typed_front_matter(data, limits), skill.frontmatter):
            return "its frontmatter is not the one that is listed"
        if read_skill(data, "", "", limits).value is None:
            return "it is no SKILL.md that could be read"
    return ""


def _is_alike(ours: Any, theirs: Any) -> bool:
    """Compare two readings of one YAML: parsers differ in what kind of value a word is."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(_is_alike(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_is_alike, ours, theirs))
    if isinstance(theirs, bool):
        return str(ours).lower() in (_YES if theirs else _NO)
    return bool(ours == theirs) or str(ours) == str(theirs)


def still_listed(
    problems: Iterable[tuple[SkillFile, Diagnostic]], skills: Iterable[ListedSkill]
) -> dict[SkillFile, Diagnostic]:
    """Return the problems with files that are listed now as they were then."""
    known = {file for skill in skills for file in skill.files}
    return {file: problem for file, problem in problems if file in known}
