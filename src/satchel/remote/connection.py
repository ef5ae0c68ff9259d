"""One connection to a server, in whichever era of the protocol it speaks."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from satchel.diagnostics import Diagnostic, Where, report
from satchel.errors import DefinitionError, SatchelError, ToolError
from satchel.remote.definitions import Definition, Listing, checked
from satchel.remote.opening import Tail, opened
from satchel.remote.outcome import result_of
from satchel.remote.pauses import Pauses
from satchel.remote.servers import RemoteServer, WorkerServer, in_words
from satchel.settings import Limits
from satchel.text import one_line, shorten
from satchel.tools import ToolResult
from satchel.tools.nothing import NOTHING

if TYPE_CHECKING:
    from mcp import Client

Era = Literal["auto", "legacy"]
"""How to begin: ask what the server speaks, or with the handshake that all older ones know."""

OnProgress = Callable[[Mapping[str, Any]], None]
"""Hears how far a call is."""

ABOUT = "dev.satchel/plugin"
"""Where the process of a plugin tells of it, beside its tools."""

_MOST_PAGES = 1_000
_MESSAGE_LENGTH = 500


class Connection:
    """A server that is connected to."""

    def __init__(self, client: "Client", name: str, server: RemoteServer, limits: Limits) -> None:
        from mcp_types import CallToolResult, InputRequiredResult
        from pydantic import TypeAdapter

        self._client, self._name = client, name
        self._server, self._limits = server, limits
        self._answers: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(
            CallToolResult | InputRequiredResult
        )

    @property
    def version(self) -> str:
        """The version that the server says it is, or `""`."""
        info = self._client.server_info
        return shorten(one_line(info.version), 100) if info and info.version else ""

    async def listing(self) -> Listing:
        """Return all tools that the server offers, page by page.

        Raises what tells that the connection is of no more use.
        """
        if self._client.server_capabilities.tools is None:
            return Listing()
        found: dict[str, Definition] = {}
        problems: list[Diagnostic] = []
        cursor, seen, fresh = None, set[str](), math.inf
        about: Mapping[str, Any] = NOTHING
        for _ in range(_MOST_PAGES):
            try:
                async with asyncio.timeout(self._limits.mcp_connect):
                    page = await self._client.list_tools(cursor=cursor)
            except TimeoutError:
                raise too_late("did not list its tools", self._limits) from None
            fresh = min(fresh, page.ttl_ms / 1000 or math.inf)
            if isinstance(self._server, WorkerServer):
                about = (page.meta or {}).get(ABOUT, NOTHING)
            for tool in page.tools:
                if len(found) >= self._limits.mcp_tools:
                    problems.append(self._too_many())
                    break
                self._define(tool, found, problems)
            cursor = page.next_cursor
            if cursor is None or cursor in seen or len(found) >= self._limits.mcp_tools:
                break
            seen.add(cursor)
        return Listing(
            tuple(sorted(found.values(), key=lambda tool: tool.name)),
            tuple(dict.fromkeys(problems)),
            None if fresh == math.inf else fresh,
            about,
        )

    def _define(self, tool: Any, found: dict[str, Definition], problems: list[Diagnostic]) -> None:
        hints = tool.annotations
        annotations = hints.model_dump(by_alias=True, exclude_none=True) if hints else {}
        if tool.title:
            annotations.setdefault("title", tool.title)
        raw = Definition(
            tool.name,
            tool.description or "",
            tool.input_schema,
            tool.output_schema,
            annotations or None,
        )
        try:
            made = checked(raw, self._limits)
        except DefinitionError as problem:
            problems.append(self._unusable(tool.name, problem.message))
            return
        if found.setdefault(made.name, made) is not made:
            problems.append(self._unusable(tool.name, "another of that name comes before it"))

    def _unusable(self, tool: str, why: str) -> Diagnostic:
        return report(
            "mcp-tool-invalid",
            Where(str(self._server)),
            f"tool {shorten(one_line(tool), 100)!r} is left out: {shorten(one_line(why), 300)}",
            "tell whoever runs the server",
        )

    def _too_many(self) -> Diagnostic:
        return report(
            "mcp-too-many-tools",
            Where(str(self._server)),
            f"it offers more than {self._limits.mcp_tools} tools (limit mcp_tools); "
            "the rest is left out",
            "name those that are wanted with enable=",
        )

    async def call(
        self, tool: Definition, arguments: Mapping[str, Any], on_progress: OnProgress
    ) -> ToolResult:
        """Call a tool, and return what it answered.

        Raises `ToolError` for what the server refuses. Whoever cancels this has the server told.
        """
        from mcp import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams, InputRequiredResult

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            if message and not isinstance(self._server, WorkerServer):
                message = one_line(message)
            told = {"progress": progress, "total": total, "message": message}
            on_progress({key: value for key, value in told.items() if value is not None})

        params = CallToolRequestParams(name=tool.name, arguments=dict(arguments))
        try:
            # Not `call_tool`: it judges the answer by a schema of the server's, on this loop,
            # with an engine that hostile patterns can hold up for ever.
            raw = await self._client.session.send_request(
                CallToolRequest(params=params), self._answers, progress_callback=heard
            )
        except MCPError as problem:
            raise _refusal(problem, in_words(self._server, self._name)) from None
        except ValueError:  # of pydantic, too: the answer is none
            raise ToolError(
                f"the server of {tool.name} gave an answer that is none; do not retry"
            ) from None
        if isinstance(raw, InputRequiredResult):
            raise ToolError(f"{tool.name} asks a person for input, and nobody is there to answer")
        return result_of(raw, tool)


def _refusal(problem: Any, server: str) -> ToolError:
    """Say what became of a call that a server did not answer with a result."""
    from mcp_types import CONNECTION_CLOSED

    # Servers use the code for other things, too.
    if problem.code == CONNECTION_CLOSED and problem.message == "Connection closed":
        return ToolError(
            f"{server} went away during the call, which may or may not have been done; check "
            "before you try again"
        )
    told = shorten(one_line(problem.message), _MESSAGE_LENGTH)
    return ToolError(f"{server} refused the call: {told}")


@asynccontextmanager
async def connected(
    name: str,
    server: RemoteServer,
    limits: Limits,
    *,
    era: Era = "auto",
    on_change: Callable[[], None] = lambda: None,
    on_end: Callable[[], None] = lambda: None,
    on_late: Callable[[], None] = lambda: None,
    tail: Tail | None = None,
) -> AsyncIterator[Connection]:
    """Connect to a server, and keep it open until the block ends.

    `on_change` hears that its tools are others, `on_end` that nothing more comes from it, and
    `on_late` that it took longer than the limit, for which `SatchelError` is raised once all is
    closed, which may take a while. Raises whatever the way to it raises, too.
    """
    import anyio
    from mcp import Client
    from mcp_types import Implementation, ToolListChangedNotification

    async def heard(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_change()

    client = Client(
        opened(server, tail or Tail(), limits.mcp_message, on_change, on_end),
        mode=era,
        message_handler=heard,
        client_info=Implementation(name="satchel", version="0"),
        cache=None,
    )
    timer = asyncio.get_running_loop().call_later(limits.mcp_connect, on_late)
    # A scope around all: one that ends earlier than what it surrounds is an error.
    with (
        _ended(timer),
        anyio.CancelScope(deadline=anyio.current_time() + limits.mcp_connect) as scope,
    ):
        async with client, anyio.create_task_group() as listening:
            scope.deadline = math.inf
            timer.cancel()
            listening.start_soon(_listen, client, on_change)
            try:
                yield Connection(client, name, server, limits)
            finally:
                listening.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise too_late("gave no answer", limits)


@contextmanager
def _ended(timer: asyncio.TimerHandle) -> Iterator[None]:
    try:
        yield
    finally:
        timer.cancel()


def too_late(what: str, limits: Limits) -> SatchelError:
    """Make the error for what a server did not do in time."""
    return SatchelError(f"{what} within {limits.mcp_connect:g} s (limit mcp_connect)")


async def _listen(client: "Client", on_change: Callable[[], None]) -> None:
    """Hear of changes from a server of the newer era, which tells only those who ask."""
    from mcp import MCPError
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

    tools = client.server_capabilities.tools
    if tools is None or not tools.list_changed:
        return
    pauses = Pauses()
    while True:
        try:
            async with client.listen(tools_list_changed=True) as notices:
                on_change()  # what changed before it listened
                async for _ in notices:
                    on_change()
        except (ListenNotSupportedError, MCPError):
            return
        except SubscriptionLost:
            pass
        on_change()
        await asyncio.sleep(pauses.next())
