"""The task that keeps one server connected, its tools listed, and its calls answered."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from satchel.diagnostics import Diagnostic, Where, report
from satchel.errors import SatchelError, ToolError
from satchel.remote.connection import (
    Connection,
    Era,
    OnProgress,
    connected,
    too_late,
)
from satchel.remote.definitions import Definition, Listing
from satchel.remote.opening import Tail
from satchel.remote.pauses import Pauses
from satchel.remote.servers import RemoteServer, StdioServer, WorkerServer, in_words
from satchel.settings import Limits
from satchel.text import one_line, shorten
from satchel.tools import ToolResult

_log = logging.getLogger("satchel.remote")

_CHECK = 60.0
"""Seconds after which a connection over a network is looked at, if nothing says when."""

_CLOSED = "closed the connection"
_LEAST_FRESH = 1.0
_SETTLED = 5.0
"""Seconds after which a connection, or a silence, counts as a success."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server offers at the moment."""

    listing: Listing = field(default_factory=Listing)
    """What it offers, or what it last did."""
    version: str = ""
    trouble: Diagnostic | None = None
    """Why none of that can be had, if it cannot."""

    @property
    def is_up(self) -> bool:
        """Tell whether its tools can be called."""
        return self.trouble is None


class Supervised:
    """One server under supervision.

    `run` is its task; all else but `call` may be used from any thread. Nothing that the server
    does is raised: it is told by `offer`, of which `on_news` hears whenever it is another.
    """

    def __init__(
        self,
        name: str,
        server: RemoteServer,
        limits: Limits,
        on_news: Callable[[], None],
        *,
        stateless: bool = False,
    ) -> None:
        self.name, self.server, self._limits, self._on_news = name, server, limits, on_news
        self._stateless = stateless
        self._tail = Tail()
        self.offer = Offer(trouble=self._down("is not connected yet"))
        self.settled = threading.Event()
        """Set once it is known whether the server answers."""
        self.opened_at = 0.0
        self._connection: Connection | None = None
        self._changed, self._ended = asyncio.Event(), asyncio.Event()
        self._back, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._calls = 0
        self._is_ending = False

    # ---- the task -------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, and connect anew whenever that ends, until the task is cancelled."""
        pauses, spacing = Pauses(), Pauses()
        era: Era = "auto"
        while True:
            began, why = _now(), _CLOSED
            try:
                await (self._visit if self._stateless else self._serve)(era, spacing)
            except BaseException as problem:
                if self._is_ending:
                    raise
                # Any: whatever the way to a server does, it must not end the supervision.
                why = _told(problem)
                # Some older servers do not answer what they do not know.
                is_late = isinstance(problem, SatchelError)
                era = "legacy" if is_late and era == "auto" else "auto"
            # One that needs long to come up, and then goes, is no success.
            if self.opened_at > began and _now() - self.opened_at > _SETTLED:
                pauses.reset()
            self._lose(why)
            await asyncio.sleep(pauses.next())

    async def _serve(self, era: Era, spacing: Pauses) -> None:
        """Serve while one connection lasts."""
        self._ended.clear()
        self._tail = Tail()
        async with connected(
            self.name,
            self.server,
            self._limits,
            era=era,
            on_change=self._changed.set,
            on_end=self._end,
            on_late=self._be_late,
            tail=self._tail,
        ) as connection:
            self._connection, self.opened_at = connection, _now()
            self._back.set()
            try:
                while not self._ended.is_set():
                    await self._list(connection)
                    await self._until_stale(spacing)
            except BaseException as problem:
                self._lose(_told(problem))
                raise
            finally:
                self._connection = None
                self._back.clear()
            self._lose(_CLOSED)

    async def _visit(self, era: Era, spacing: Pauses) -> None:
        """Look now and then what is offered, and keep no connection meanwhile."""
        while True:
            self._tail = Tail()
            async with connected(
                self.name,
                self.server,
                self._limits,
                era=era,
                on_late=self._be_late,
                tail=self._tail,
            ) as connection:
                self.opened_at = _now()
                await self._list(connection)
            await self._until_stale(spacing)

    def _be_late(self) -> None:
        self._lose(too_late("gave no answer", self._limits).message)

    def _lose(self, why: str) -> None:
        """Withdraw the tools now, and not when the connection is closed at last."""
        if not self._is_ending:
            # With what it offered last: nobody else may have the names meanwhile.
            self._tell(replace(self.offer, trouble=self._down(why)))

    async def _list(self, connection: Connection) -> None:
        self._changed.clear()
        listing = await connection.listing()
        self._tell(Offer(listing, connection.version))

    async def _until_stale(self, spacing: Pauses) -> None:
        """Wait for a reason to list the tools again; one that never rests is asked less often."""
        began = _now()
        try:
            async with asyncio.timeout(self._freshness()):
                await self._changed.wait()
        except TimeoutError:
            return
        if _now() - began > _SETTLED:
            spacing.reset()
        if not self._ended.is_set():
            await asyncio.sleep(spacing.next() / 4)

    def _freshness(self) -> float | None:
        if (fresh := self.offer.listing.fresh) is not None:
            return max(fresh, _LEAST_FRESH)
        is_local = isinstance(self.server, StdioServer)  # whose end is seen at once
        return None if is_local and not self._stateless else _CHECK

    def _end(self) -> None:
        self._ended.set()
        self._changed.set()

    def _tell(self, offer: Offer) -> None:
        is_news, self.offer = offer != self.offer, offer
        self.settled.set()
        if is_news:
            self._on_news()

    def _down(self, why: str) -> Diagnostic:
        said = shorten(one_line(self._tail.last_line), 200)
        last_words = f", and said last: {said}" if said else ""
        if isinstance(self.server, WorkerServer):
            return report(
                "plugin-worker-down",
                Where(str(self.server)),
                f"the process of plugin {self.name!r} {'ended' if why == _CLOSED else why}"
                f"{last_words}",
                "see to its code; it is started again by itself",
            )
        return report(
            "mcp-server-down",
            Where(str(self.server)),
            f"MCP server {self.name!r} {why}{last_words}; its tools are withdrawn",
            "see to the server; it is tried again by itself",
        )

    # ---- its calls ------------------------------------------------------------------------

    async def call(
        self, tool: Definition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> ToolResult:
        """Call a tool, on the loop of the task. Raises `ToolError`."""
        self._calls += 1
        self._idle.clear()
        try:
            return await self._answer(tool, arguments, on_progress)
        except ToolError:
            # Perhaps its tools are others by now, or it is gone and the session with it.
            self._changed.set()
            raise
        except asyncio.CancelledError:
            if isinstance(self.server, WorkerServer):
                self._changed.set()  # perhaps it hangs, and then it is started anew
            raise
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _answer(
        self, tool: Definition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> ToolResult:
        if self._stateless:
            try:
                async with connected(self.name, self.server, self._limits) as connection:
                    return await connection.call(tool, arguments, on_progress)
            except (ToolError, asyncio.CancelledError):
                raise
            except BaseException as problem:
                # Any: the way to a server may raise groups of whatever it likes.
                if (told := _first_of(problem, ToolError)) is not None:
                    raise told from None
                _log.debug("server %s: %s", self.name, _told(problem))
                raise self._away() from None
        if self._connection is None and isinstance(self.server, WorkerServer):
            # Its tools stay: one that ends is started again at once.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.mcp_connect):
                    await self._back.wait()
        if self._connection is None:
            raise self._away()
        return await self._connection.call(tool, arguments, on_progress)

    def _away(self) -> ToolError:
        return ToolError(
            f"{in_words(self.server, self.name)} cannot be reached at the moment; try again later, "
            "or go on without it"
        )

    def end(self, task: "asyncio.Task[None]") -> None:
        """End the task; all other cancellations in it are those of libraries."""
        # Once: a second cancellation would disturb the closing.
        if not self._is_ending:
            self._is_ending = True
            task.cancel()

    async def drained(self, patience: float) -> None:
        """Wait until no call runs, but not for ever."""
        try:
            async with asyncio.timeout(patience):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("server %s was closed while calls of it ran", self.name)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _first_of(problem: BaseException, kind: type[ToolError]) -> ToolError | None:
    """Return the first error of a kind among those that tasks raised together."""
    if isinstance(problem, kind):
        return problem
    inside = problem.exceptions if isinstance(problem, BaseExceptionGroup) else ()
    return next((found for item in inside if (found := _first_of(item, kind))), None)


def _told(problem: BaseException) -> str:
    """Say why a server cannot be reached; the texts of others may hold addresses, no secrets."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    if isinstance(problem, SatchelError):
        return problem.message
    is_closed = str(problem) == "Connection closed"  # whatever was asked just then
    if isinstance(problem, asyncio.CancelledError) or is_closed:
        return _CLOSED
    if isinstance(problem, FileNotFoundError):
        return "cannot be started: there is no such program or folder"
    if isinstance(problem, ImportError):
        return "cannot be reached without the extra mcp: pip install 'satchel[mcp]'"
    said = shorten(one_line(str(problem)), 200)
    return f"cannot be reached: {type(problem).__name__}" + (f": {said}" if said else "")
