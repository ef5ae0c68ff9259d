"""The page of a tool: its schemas, a form for its arguments, and calls that stream."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from shlex import join
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from satchel.catalog.catalog_entries import Status, ToolEntry
from satchel.diagnostics import Where
from satchel.errors import NotFoundError
from satchel.reports.serializer import shown
from satchel.reports.short_texts import status_label
from satchel.runtime.stream_opening import close
from satchel.session.session import Session
from satchel.tools import Tool, ToolCall, ToolChunk, ToolContext, ToolResult
from satchel.tools.dialects import DIALECTS
from satchel.tools.tool_results import to_json
from satchel.web.call_records import SHOWN_MEDIA, result_record
from satchel.web.page_rendering import Page, spelled_out
from satchel.web.page_routes import name_in, object_of, text_of
from satchel.web.problems_page import editor_link
from satchel.web.workbench import DevOptions, Workbench

_TASK_TIMEOUT = 3_600.0
_PAGE = "the page"
"""Who called, for the timeline."""


def tool(workbench: Workbench, request: Request) -> Page:
    """Return everything about a tool."""
    entry = workbench.catalog.tool(name_in(request))
    loaded = entry.tool
    record = {
        **shown("tool", entry),
        "status": status_label(entry),
        "schemas": _schemas(loaded) if loaded else {},
        "parameters": _parameters(loaded) if loaded else {},
        "examples": [json.loads(to_json(it)) for it in loaded.examples] if loaded else [],
        "annotations": dict(loaded.annotations or {}) if loaded else {},
        "is_callable": loaded is not None and entry.is_served,
        # The start of a line; the arguments follow it.
        "command": join(["satchel", "call", entry.name, *workbench.options.source_options]),
        "python": _python(workbench.options, entry),
    }
    editor = editor_link(workbench.options.editor, Where(entry.path))
    is_of_plugin = entry.source in workbench.catalog.plugins and not entry.diagnostics
    stale_plugin = entry.source if entry.state is Status.STALE and is_of_plugin else ""
    extra = {"editor": editor, "stale_plugin": stale_plugin}
    return Page(template="tool.html", title=entry.name, record=record, extra=extra)


def _schemas(loaded: Tool) -> dict[str, Any]:
    schemas = {}
    for dialect in DIALECTS:
        try:
            schemas[dialect] = loaded.to_schema(dialect)
        except Exception as problem:  # the schema of a tool may be anything
            schemas[dialect] = {"error": str(problem)}
    return schemas


def _parameters(loaded: Tool) -> dict[str, Any]:
    try:
        return dict(loaded.parameters)
    except Exception:  # the tool's class may raise anything
        return {}


def _python(options: DevOptions, entry: ToolEntry) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.sources.items() if value)
    return (
        "from satchel import Satchel\n\n"
        f"session = Satchel({arguments}).session()\n"
        f"session.activate({entry.group!r})\n"
        f"result = session.call_sync({entry.name!r}, "
    )


async def call(workbench: Workbench, fields: Mapping[str, Any]) -> Response:
    """Call a tool as a model would, in a session of its own; the answer streams.

    Each line of the answer is one JSON object: `call`, `chunk`, `result` or `needs_approval`.
    """
    entry = workbench.catalog.tool(text_of(fields, "tool"))
    if workbench.catalog.tools.get(entry.name) is not entry:
        raise NotFoundError("served tool", entry.name, ())
    session = workbench.app.session()
    session.activate(entry.group)
    wish = ToolCall(
        name=entry.name,
        arguments=object_of(fields, "arguments"),
        id=workbench.calls.new_id(),
        context=ToolContext(run_id=_PAGE),
    )
    lines = _lines(workbench, session, wish, is_approved=fields.get("approved") is True)
    return StreamingResponse(lines, media_type="application/x-ndjson")


async def _lines(
    workbench: Workbench, session: Session, wish: ToolCall, *, is_approved: bool
) -> AsyncIterator[bytes]:
    plan = session.step().plan([wish])
    if not is_approved and plan.needs_approval(0):
        yield _line({"needs_approval": wish.name})
        return
    yield _line({"call": wish.id})
    workbench.running[wish.id] = session
    start = time.monotonic()
    items = plan.stream(0, approved=is_approved)
    try:
        async for item in items:
            blocks = workbench.calls.add(wish.id, item.content)
            if isinstance(item, ToolChunk):
                structured = spelled_out(item.structured)
                yield _line({"chunk": {"blocks": blocks, "structured": structured}})
                continue
            result = await _finished(session, item)
            if result is not item:
                blocks = workbench.calls.add(wish.id, result.content)
            seconds = round(time.monotonic() - start, 3)
            yield _line({"result": {**result_record(result, blocks), "seconds": seconds}})
    finally:
        workbench.running.pop(wish.id, None)
        # Leaving early, because the page was closed, ends the tool.
        await close(items)


async def _finished(session: Session, result: ToolResult) -> ToolResult:
    if not (task_id := result.metadata.get("task_id")):
        return result
    arguments = {"task_id": task_id, "timeout": _TASK_TIMEOUT}
    result = await session.call("wait_task", arguments)
    # The first block says how the task ended.
    return replace(result, content=result.content[1:])


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, default=str).encode() + b"\n"


async def cancel(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """End a call; its result has the output so far."""
    session = workbench.running.get(text_of(fields, "call_id"))
    return {"ended": session.interrupt() if session else 0}


def media(workbench: Workbench, request: Request) -> Response:
    """Return the bytes of a block; a page shows only pictures and sounds, nothing that runs."""
    block = workbench.calls.data(request.path_params["call_id"], request.path_params["number"])
    if block is None:
        return Response("Not found\n", 404, media_type="text/plain")
    data, media_type = block
    if media_type in SHOWN_MEDIA:
        return Response(data, media_type=media_type)
    headers = {"content-disposition": 'attachment; filename="block"'}
    return Response(data, headers=headers, media_type="application/octet-stream")
