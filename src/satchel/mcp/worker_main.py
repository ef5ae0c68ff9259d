"""The process of one plugin: it serves the plugin to the host that started it."""

import asyncio
import json
import os
import sys
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from importlib.metadata import version
from pickle import loads
from threading import Thread
from typing import Any, BinaryIO

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from satchel.claimed_streams import claim_stdin, claim_stdout
from satchel.contracts.tool_contract import ToolContract
from satchel.mcp.changing_server import UNCACHED
from satchel.mcp.result_encoding import encode_result
from satchel.mcp.stdio_server import serve_stdio
from satchel.mcp.worker_bootstrap import LoadedWorker, load_plugin
from satchel.mcp_servers.tool_lister import ABOUT
from satchel.runtime.call_task import CallTask, prepare_call
from satchel.runtime.error_results import ErrorText, readable_exception
from satchel.runtime.middleware_chain import Handler, Middleware, middleware_for
from satchel.runtime.stream_opening import opened
from satchel.settings import KIB, MIB, Limits
from satchel.tools import Item, Tool, ToolCall, ToolContext, ToolResult, failure
from satchel.tools.callables import in_thread
from satchel.workers.codec import (
    COMPLETE,
    HOST_DECIDES,
    OFFER,
    RESULT,
    changes_of,
    decode_context,
    encode_chunk,
    encode_result_extras,
)
from satchel.workers.worker_loading import TO_END

Context = ServerRequestContext[Any, Any]

_FULL = 0.9
"""The used part of `worker_memory` above which a failed call restarts the process."""

_FRAME = KIB
"""Bytes of a message besides the result."""

_LONGEST_MESSAGE = 4_000
"""Characters of an exception's text that reach the host's middleware."""

_EXIT_DELAY = 0.2
"""Seconds between the last result and the exit of a process that lacks memory."""

_POLL_INTERVAL = 1.0
"""Seconds between two checks whether the host still runs."""


def main() -> None:
    """Serve the plugin that the first line on stdin holds, until stdin ends."""
    host = os.getppid()
    stdin, stdout = claim_stdin(), claim_stdout()
    _close_in_children(stdin.fileno(), stdout.fileno())
    # Trusted: the parent process sends it through a private pipe.
    finding, config, limits, errors = loads(b64decode(stdin.readline()))  # noqa: S301
    _limit_memory(limits.worker_memory)
    patience = limits.hook + TO_END
    Thread(target=_exit_after_host, args=(host, patience), daemon=True).start()
    serving = WorkerService(load_plugin(finding, config, limits), limits, errors)
    try:
        with suppress(asyncio.CancelledError):  # cancelled by `_leave`
            asyncio.run(serving.serve(stdin, stdout))
    finally:
        serving.end()


class WorkerService:
    """One plugin, served to the host."""

    def __init__(self, load: LoadedWorker, limits: Limits, errors: str = "summary") -> None:
        self._load, self._limits, self._errors = load, limits, errors
        self._serving: asyncio.Task[Any] | None = None
        self.server: Server[None] = Server(
            "satchel-worker",
            version=version("satchel"),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def serve(self, stdin: BinaryIO, stdout: BinaryIO) -> None:
        """Serve until stdin ends."""
        self._serving = asyncio.current_task()
        await serve_stdio(self.server, stdin, stdout)

    def end(self) -> None:
        """Run the shutdown of the plugin."""
        if self._load.contribution.lifecycle is not None:
            self._load.contribution.lifecycle.end()

    async def _list(self, _ctx: Context, _params: types.PaginatedRequestParams | None) -> Any:
        return {"tools": [], "_meta": {ABOUT: self._load.about}, **UNCACHED}

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        asked = dict(params.arguments or {})
        if params.name == COMPLETE:
            return await self._complete(asked)
        call_id = asked["id"]
        context = decode_context(asked["context"]) if "context" in asked else ToolContext()
        before: Mapping[str, Any] = {}
        groups: tuple[str, ...] = ()
        middleware: Sequence[Middleware] = ()
        if params.name.startswith(OFFER):
            tool = self._load.offers[params.name].tool
            name = tool.name
        else:
            contribution = self._load.tools.get(params.name)
            if contribution is None or contribution.tool is None:
                raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}.")
            tool, name = contribution.tool, contribution.name
            context = _with_injected(context, contribution.contract, asked.get("handed"))
            before = deepcopy(dict(context.state))
            groups = self._load.groups_of(contribution)
            middleware = middleware_for(self._load.contribution.middleware, name, groups)
        context = replace(context, tool=name, call_id=call_id)
        call = ToolCall(
            name=name,
            arguments=asked["arguments"],
            id=call_id,
            tool=tool,
            groups=groups,
            context=context,
        )
        recorder = _ExceptionRecorder(tool)
        run = prepare_call(
            call,
            tool,
            self._limits,
            middleware=(recorder, *middleware),
            errors=self._text_of_errors,
        )
        item = await self._result_of(ctx, run)
        return self._encoded(item, changes_of(before, context.state), recorder.raised)

    async def _result_of(self, ctx: Context, run: CallTask) -> ToolResult:
        done = 0
        try:
            while not isinstance(item := await run.next(), ToolResult):
                done += 1
                if not self._is_too_long(chunk := encode_chunk(item)):
                    await ctx.session.report_progress(done, None, chunk)
        finally:
            await run.aclose()
        failed = item.error_code == "tool_failed"  # and did not refuse by itself
        if failed and (taken := _used_memory()) > self._limits.worker_memory * _FULL:
            self._leave(taken)
        return item

    def _encoded(
        self, item: ToolResult, changes: Mapping[str, Any], raised: tuple[str, str] | None
    ) -> dict[str, Any]:
        encoded = _answer(item, changes, raised if item.is_error else None)
        if self._is_too_long(encoded):
            limit = f"the limit mcp_message, {self._limits.mcp_message // KIB} KiB"
            text = f"the tool ran, but its result is larger than {limit}; ask for less"
            encoded = _answer(failure("invalid_result", text), changes)
            if self._is_too_long(encoded):
                text = f"the tool ran, but what it put into the state is larger than {limit}"
                encoded = _answer(failure("invalid_result", text), {})
        return encoded

    @property
    def _text_of_errors(self) -> ErrorText:
        if self._errors == HOST_DECIDES:
            return lambda _name, _problem: "tool failed"  # the host replaces it
        return "message" if self._errors == "message" else "summary"

    def _is_too_long(self, encoded: Any) -> bool:
        """Return whether a message exceeds the host's limit: the host would disconnect."""
        data = json.dumps(encoded, ensure_ascii=False).encode(errors="replace")
        return len(data) > self._limits.mcp_message - _FRAME

    async def _complete(self, question: Mapping[str, Any]) -> Any:
        complete = self._load.offers[question["call"]].complete
        assert complete is not None
        try:
            answer = await in_thread(lambda: complete(question["argument"], question["begun"]))
            encoded, text = list(map(str, answer)), ""
        except (Exception, SystemExit) as problem:
            # Any: the function is the plugin's.
            encoded, text = None, f"{type(problem).__name__}: {problem}"
        return {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"answer": encoded},
            "isError": bool(text),
            "resultType": "complete",
        }

    def _leave(self, taken: int) -> None:
        """End this process so that a new one replaces it; the host shows its last line."""
        encoded = f"took {taken // MIB} MiB of memory and needs more (limit worker_memory)"
        print(encoded, file=sys.__stderr__, flush=True)
        if self._serving is not None:
            asyncio.get_running_loop().call_later(_EXIT_DELAY, self._serving.cancel)


class _ExceptionRecorder:
    """The outermost middleware: it keeps what the host's middleware reads of an exception."""

    def __init__(self, tool: Tool) -> None:
        self.raised: tuple[str, str] | None = None
        """The name of its type, and its text."""
        self._tool = tool

    async def __call__(self, call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        try:
            async with opened(inner, call) as items:
                async for item in items:
                    if isinstance(item, ToolResult) and item.exception is not None:
                        self._record(item.exception)
                    yield item
        except Exception as problem:
            self._record(problem)
            raise

    def _record(self, problem: BaseException) -> None:
        type_name, message = readable_exception(self._tool, problem)
        message = message[:_LONGEST_MESSAGE].encode(errors="replace").decode()
        self.raised = type_name, message


def _answer(
    result: ToolResult, changes: Mapping[str, Any], raised: tuple[str, str] | None = None
) -> dict[str, Any]:
    return {
        **encode_result(result, is_stateless=True),
        "_meta": {RESULT: encode_result_extras(result, changes, raised)},
    }


def _with_injected(
    context: ToolContext, contract: ToolContract | None, values: Mapping[str, Any] | None
) -> ToolContext:
    """Add the values that a contract injects: the host has selected them."""
    if contract is None or values is None:
        return context
    config = {item.key: values[item.key] for item in contract.config_params}
    reads = {item.key: values[item.key] for item in contract.state_reads}
    return replace(context, config={**context.config, **config}, state={**context.state, **reads})


def _exit_after_host(host: int, patience: float) -> None:
    """Exit after the host was killed, even if the plugin blocks the event loop."""
    while os.getppid() == host:
        time.sleep(_POLL_INTERVAL)
    time.sleep(patience)
    os._exit(1)


def _close_in_children(*files: int) -> None:
    """Close our pipes in forked children; otherwise the host never sees EOF."""

    def let_go() -> None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for file in files:
            os.dup2(nowhere, file, inheritable=False)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=let_go)


def _used_memory() -> int:
    """Return the bytes that count for the memory limit, or 0 if the system does not report them."""
    with suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * KIB
    return 0


def _limit_memory(memory: int) -> None:
    """Limit the memory of this process, where the system supports it."""
    try:
        import resource
    except ImportError:
        return
    with suppress(OSError, ValueError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
