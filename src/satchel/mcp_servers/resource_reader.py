"""Reading files of skills from servers: what was read, and what was not as it was listed."""

import asyncio
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ToolError
from satchel.mcp_servers.listed_skills import ListedSkill, SkillFile, still_listed, unverified
from satchel.settings import MIB, Limits
from satchel.sources.skill_files import ServedFile
from satchel.text import one_line, shorten
from satchel.tools.callables import in_thread

if TYPE_CHECKING:
    from mcp import Client

MOST_KEPT = 32 * MIB
"""Bytes of files that are kept of one server."""

BeginRead = Callable[[ListedSkill, SkillFile, float], "Future[ServedFile]"]
"""Begins to read a file at its server, within so many seconds."""

Ask = Callable[[str], Awaitable[bytes | None]]
"""Asks a server for what stands at an address; `None` is an answer that is none."""


async def read_resource(client: "Client", uri: str, server: str) -> bytes | None:
    """Return what a server says that a resource holds, `None` for an answer that is none.

    Raises `ToolError` for what it refuses.
    """
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED, ReadResourceRequest, ReadResourceRequestParams
    from pydantic import TypeAdapter

    asked = ReadResourceRequest(params=ReadResourceRequestParams(uri=uri))
    answers: Any = TypeAdapter(dict[str, Any])
    try:
        answer: dict[str, Any] = await client.session.send_request(asked, answers)
    except MCPError as problem:
        if problem.code == CONNECTION_CLOSED and problem.message == "Connection closed":
            raise ToolError(f"the server {server!r} went away; try again later") from None
        told = shorten(one_line(problem.message), 300)
        raise ToolError(f"the server {server!r} does not give it: {told}") from None
    except ValueError:  # of pydantic, too
        return None
    # In a thread: this is the loop of all servers, and a file may be large.
    data: bytes | None = await in_thread(lambda: _bytes_of(answer, uri))
    return data


def _bytes_of(answer: dict[str, Any], uri: str) -> bytes | None:
    contents = answer.get("contents")
    own = [
        item
        for item in (contents if isinstance(contents, list) else ())
        if isinstance(item, dict) and item.get("uri") == uri
    ]
    if len(own) != 1:
        return None
    text, blob = own[0].get("text"), own[0].get("blob")
    try:
        if isinstance(text, str):
            return text.encode()
        if isinstance(blob, str):
            return b64decode(blob, validate=True)
    except ValueError:
        pass
    return None


class ServerFiles:
    """The files of one server's skills; its loop alone uses it."""

    def __init__(self, server: str, where: str, limits: Limits) -> None:
        self._server, self._where, self._limits = server, where, limits
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._odd: dict[SkillFile, Diagnostic] = {}

    @property
    def odd(self) -> tuple[tuple[SkillFile, Diagnostic], ...]:
        """Return the files that were not as they are listed."""
        return tuple(self._odd.items())

    def listed(self, skills: Iterable[ListedSkill]) -> None:
        """Forget what was wrong with files that are listed otherwise by now."""
        self._odd = still_listed(self.odd, skills)

    async def read(self, skill: ListedSkill, file: SkillFile, ask: Ask) -> ServedFile:
        """Return a file that is as it is listed. Raises `ToolError` for any other."""
        if file.size > self._limits.resource:
            most = f"{self._limits.resource:,}"
            raise ToolError(f"{file.name} has more than {most} bytes (limit resource)")
        # By its digest: it may stand in many places. Each lists it in a way of its own.
        data = self._kept.get(file.digest)
        if data is None:
            data = await ask(file.uri)
        why = "it is no content of one file"
        if data is not None:
            why = await in_thread(lambda: unverified(skill, file, data, self._limits))
        if data is None or why:
            self._odd[file] = self._report(skill, file, why)
            raise ToolError(
                f"what the server {self._server!r} gave as {file.name} of the skill "
                f"{skill.manifest.name!r} is not what it listed, so it is not shown; load the "
                "skill again in a moment, or go on without it"
            )
        self._odd.pop(file, None)
        self._keep(file.digest, data)
        return ServedFile(file.name, data, file.digest)

    def _keep(self, digest: str, data: bytes) -> None:
        self._kept[digest] = data
        self._kept.move_to_end(digest)
        while sum(map(len, self._kept.values())) > MOST_KEPT:
            self._kept.popitem(last=False)

    def _report(self, skill: ListedSkill, file: SkillFile, why: str) -> Diagnostic:
        return make_diagnostic(
            "mcp-skill-unverified",
            Where(f"{skill.address}/{file.name}"),
            f"what MCP server {self._server!r} gave is not what it listed, and is not shown: {why}",
            "tell whoever runs the server; it is read anew whenever it is wanted",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSkillReader:
    """Reads the files of one skill at its server."""

    server: str
    listed: ListedSkill
    begin: BeginRead = field(compare=False, repr=False)
    timeout: float | None = None

    def read(self, name: str, limits: Limits) -> ServedFile:
        """Read a file, and wait for it. Raises `ToolError`."""
        reading = self._begin(name, limits)
        try:
            return reading.result()
        except CancelledError:
            raise self._away() from None
        finally:
            reading.cancel()

    async def fetch(self, name: str, limits: Limits) -> ServedFile:
        """Read a file while the event loop goes on; cancelling this ends it. Raises `ToolError`."""
        reading = self._begin(name, limits)
        try:
            return await asyncio.wrap_future(reading)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        # Nobody here wanted it to end: the server was let go.
        raise self._away()

    def _begin(self, name: str, limits: Limits) -> "Future[ServedFile]":
        if (file := self.listed.file(name)) is None:
            raise ToolError(f"{shorten(one_line(name), 200)!r} is no file of the skill")
        try:
            return self.begin(self.listed, file, self.timeout or limits.tool_call)
        except RuntimeError:  # the loop of the servers is closed
            raise self._away() from None

    def _away(self) -> ToolError:
        return ToolError(f"the server {self.server!r} is not carried any more; go on without it")
