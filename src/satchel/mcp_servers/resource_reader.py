"""Read files of skills from servers, and verify them against what the server lists."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError, Future
from dataclasses import field
from typing import Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile, verify_file
from satchel.mcp_servers.server_offers import resource_result
from satchel.settings import MIB, Limits
from satchel.sources.skill_files import ServedFile, SkillAccess
from satchel.text import one_line, shorten
from satchel.tools import Resource
from satchel.tools.callables import in_thread

MAX_CACHED = 32 * MIB
"""Bytes of files cached of one server."""

BeginRead = Callable[[ListedSkill, SkillFile], "Future[ServedFile]"]
"""Starts to read a file at its server."""

ReadUri = Callable[[str], Awaitable[bytes | None]]
"""Reads a resource of a server; `None` for an invalid response."""


def bytes_of_resource(response: dict[str, Any], uri: str) -> bytes | None:
    """Return the content of a resource, `None` unless a response has exactly one of that URI."""
    try:
        blocks = resource_result(response).content
    except ToolError:
        return None
    contents = [it.content for it in blocks if isinstance(it, Resource) and it.uri == uri]
    if len(contents) != 1:
        return None
    (content,) = contents
    return content.encode() if isinstance(content, str) else content


class ServerFiles:
    """The files of one server's skills. Use it on the servers' event loop only."""

    def __init__(self, server: str, where: str, limits: Limits) -> None:
        self._server, self._where, self._limits = server, where, limits
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._drifted: dict[SkillFile, Diagnostic] = {}

    @property
    def drifted(self) -> tuple[tuple[SkillFile, Diagnostic], ...]:
        """Return the files that differ from what the server lists."""
        return tuple(self._drifted.items())

    def listed(self, skills: Iterable[ListedSkill]) -> None:
        """Drop the diagnostics of files that are not listed or are listed differently now."""
        files = {file for skill in skills for file in skill.files}
        self._drifted = {file: why for file, why in self._drifted.items() if file in files}

    async def read(self, skill: ListedSkill, file: SkillFile, read_uri: ReadUri) -> ServedFile:
        """Return a file that matches its listing. Raises `ToolError` for any other."""
        if file.size > self._limits.resource:
            limit = f"{self._limits.resource:,}"
            raise ToolError(
                f"{file.name} has more than {limit} bytes (limit resource); continue without it"
            )
        # Cached by digest: many skills may have the same file. Each is verified on its own.
        data = self._cache.get(file.digest)
        if data is None:
            data = await read_uri(file.uri)
        why = "the response does not contain exactly one file"
        if data is not None:
            why = await in_thread(lambda: verify_file(skill, file, data, self._limits))
        if data is None or why:
            self._drifted[file] = make_diagnostic(
                "mcp-skill-unverified",
                Where(f"{skill.address}/{file.name}"),
                f"the file differs from what MCP server {self._server!r} lists, so it is not "
                f"shown: {why}",
                "report it to the maintainer of the server; each use reads the file again",
            )
            raise ToolError(
                f"the server {self._server!r} returned {file.name} of the skill "
                f"{skill.manifest.name!r} with other content than it listed, so it is not shown; "
                "load the skill again in a moment, or continue without it"
            )
        self._drifted.pop(file, None)
        self._cache[file.digest] = data
        self._cache.move_to_end(file.digest)
        while sum(map(len, self._cache.values())) > MAX_CACHED:
            self._cache.popitem(last=False)
        return ServedFile(file.name, data, file.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteReader:
    """Gets the files of a skill from its server, on the servers' event loop."""

    server: str
    access: SkillAccess
    timeout: float | None = None

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Get a file, and wait for it. Raises `ToolError`."""
        seconds, getting = self.timeout or limits.tool_call, self._begin(name)
        try:
            return self._served(getting.result(seconds))
        except TimeoutError:
            raise self._late(seconds) from None
        except CancelledError:
            raise self._removed() from None
        finally:
            getting.cancel()

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Get a file without blocking the event loop. Raises `ToolError`."""
        seconds, getting = self.timeout or limits.tool_call, self._begin(name)
        try:
            async with asyncio.timeout(seconds):
                return self._served(await asyncio.wrap_future(getting))
        except TimeoutError:
            raise self._late(seconds) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        # Cancelled by the pool: the server was removed.
        raise self._removed()

    def _begin(self, name: str) -> "Future[Any]":
        """Start to get a file. Raises `ToolError`."""
        raise NotImplementedError

    def _served(self, response: Any) -> ServedFile:
        """Return the response as a file. Raises `ToolError`."""
        return response  # type: ignore[no-any-return]

    def _late(self, seconds: float) -> ToolError:
        return ToolError(f"the server {self.server!r} did not return it within {seconds:g} s")

    def _removed(self) -> ToolError:
        return ToolError(
            f"the server {self.server!r} is not connected any more; continue without it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSkillReader(RemoteReader):
    """Reads the files of one skill at its server."""

    listed: ListedSkill
    begin: BeginRead = field(compare=False, repr=False)

    def _begin(self, name: str) -> "Future[ServedFile]":
        if (file := self.listed.file(name)) is None:
            raise ToolError(
                f"the skill has no file {shorten(one_line(name), 200)!r}; use a listed name"
            )
        return self.begin(self.listed, file)
