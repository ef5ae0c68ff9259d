"""`satchel call`: one call of a tool, as a model would make it."""

import asyncio
import json
import signal
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from satchel.cli.command import Command, Sources, as_json, pass_console, reads_sources
from satchel.cli.console import Console
from satchel.cli.render import count
from satchel.errors import SatchelError
from satchel.text import visible
from satchel.tools import Audio, Block, Image, Resource, ResourceLink, Text, ToolResult, failure

if TYPE_CHECKING:
    import satchel
    from satchel.catalog import ToolEntry

_FOR_EVER = 3600.0


@click.command("call", cls=Command)
@click.argument("tool")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--args", "given", metavar="JSON", help="The arguments as one JSON object.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Activate a group.")
@reads_sources
@as_json
@click.pass_context
@pass_console
def command(
    console: Console,
    ctx: click.Context,
    *,
    tool: str,
    values: tuple[str, ...],
    given: str | None,
    groups: tuple[str, ...],
    sources: Sources,
    as_json: bool,
) -> None:
    """Call a tool; its group is activated for the call.

    What a tool tells while it runs is shown as it comes. A background tool is waited for.

    A VALUE is taken as text where the tool wants text, else as JSON if it is JSON. What is
    given as KEY=VALUE wins over --args.
    """
    pairs = _pairs(values)
    arguments = _object(given)
    bag = sources.open(run_code=True)
    entry = _callable(bag, tool)
    arguments |= typed(pairs, entry.tool.parameters if entry.tool else {})
    session = bag.session()
    session.activate(entry.group, *groups)
    told = None if as_json else console
    try:
        result = asyncio.run(_until_ctrl_c(_called(session, entry.name, arguments, told)))
    except asyncio.CancelledError:
        raise click.Abort from None
    if as_json:
        console.json(
            {
                "text": result.text,
                "content": [block.to_dict() for block in result.content],
                "structured": result.structured,
                "is_error": result.is_error,
                "is_interrupted": result.is_interrupted,
                "error_code": result.error_code,
            }
        )
    ctx.exit(1 if result.is_error else 0)


async def _until_ctrl_c(work: Coroutine[Any, Any, ToolResult]) -> ToolResult:
    """Await something that Ctrl-C cancels.

    A handler of the loop's own wakes it. The one that `asyncio.run` sets does not: a signal that
    comes while the loop begins to wait would be seen only when something else happens.
    """
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or in a thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await work


async def _called(
    session: "satchel.Session", name: str, arguments: dict[str, Any], console: Console | None
) -> ToolResult:
    """Run the call to its end, and tell what it tells while it runs."""
    chunks, result = 0, failure("no_result", "the call gave no result")
    in_line = False
    async for item in session.stream(name, arguments):
        if isinstance(item, ToolResult):
            result = item
            continue
        chunks += 1
        # Pieces of running text join; whatever else comes has a line of its own.
        runs_on = item.structured is None and all(isinstance(b, Text) for b in item.content)
        if in_line and not runs_on:
            _tell((Text(""),), console)
        _tell(item.content, console, end="" if runs_on else "\n")
        in_line = runs_on
    if in_line:
        _tell((Text(""),), console)
    if task_id := result.metadata.get("task_id"):
        # A background task would end with this process.
        waiting = {"task_id": task_id, "timeout": _FOR_EVER}
        result = await session.call("wait_task", waiting)
        result = replace(result, content=result.content[1:])
    if not chunks or task_id:
        _tell(result.content, console, is_error=result.is_error)
    elif result.is_error:
        _tell(result.content[-1:], console, is_error=True)
    return result


def _tell(
    content: Iterable[Block], console: Console | None, *, is_error: bool = False, end: str = "\n"
) -> None:
    """Write blocks as far as a terminal can show them."""
    if console is None:
        return
    for block in content:
        text = block.text if isinstance(block, Text) else f"[{_kind(block)}]"
        if is_error:
            console.say(visible(text))
        else:
            console.out(visible(text), end=end)


def _kind(block: Image | Audio | Resource | ResourceLink) -> str:
    """Say what a block is that is no text."""
    if isinstance(block, Image | Audio):
        kind = type(block).__name__.lower()
        return f"{kind} {block.mime_type}, {count(len(block.data), 'byte')}"
    return f"{'link' if isinstance(block, ResourceLink) else 'resource'} {block.uri}"


def _callable(bag: "satchel.Satchel", name: str) -> "ToolEntry":
    """Return the served tool of that name. Raises `SatchelError` that says why there is none."""
    refused = [
        item for item in bag.catalog.diagnostics if f"tool {name!r} is left out" in item.message
    ]
    if name not in bag.catalog.tools and refused:
        raise SatchelError(refused[0].message, where=str(refused[0].where), fix=refused[0].fix)
    entry = bag.catalog.tool(name)
    if bag.catalog.tools.get(entry.name) is not entry:
        raise SatchelError(
            f"tool {name!r} is {entry.state}", fix="'satchel doctor' with the same options says why"
        )
    return entry


def _pairs(values: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE")
        pairs[key] = value
    return pairs


def _object(text: str | None) -> dict[str, Any]:
    value = _from_json(text) if text is not None else {}
    if not isinstance(value, dict):
        raise click.BadParameter("must be one JSON object", param_hint="--args")
    return value


def typed(pairs: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give each value the type that the tool's schema asks for, as far as that is plain."""
    wanted = schema.get("properties", {})
    return {
        key: text if _is_text(wanted.get(key, {})) else _from_json(text)
        for key, text in pairs.items()
    }


def _is_text(schema: Any) -> bool:
    """Tell whether a parameter takes text and, beside null, nothing else."""
    if not isinstance(schema, Mapping):
        return False
    choices = [item for item in schema.get("anyOf", ()) if item.get("type") != "null"]
    if choices:
        return all(map(_is_text, choices))
    return schema.get("type") == "string"


def _from_json(text: str) -> Any:
    """Return what a text is in JSON, or the text itself."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are Python's, not JSON's
