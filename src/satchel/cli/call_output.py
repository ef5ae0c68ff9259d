"""Running a tool from the command line, and telling what it tells."""

import asyncio
import json
import signal
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from satchel.cli.console import Console
from satchel.cli.key_value_pairs import parse_pairs
from satchel.cli.rendering import count
from satchel.cli.serializer import result_json
from satchel.text import visible
from satchel.tools import Audio, Block, Image, Resource, ResourceLink, Text, ToolResult, failure

if TYPE_CHECKING:
    import satchel
    from satchel.catalog import ToolEntry

R = TypeVar("R")
Body = Callable[..., Any]

_FOR_EVER = 3600.0


def takes_arguments(body: Body) -> Body:
    """Add the parameters that give a tool its arguments: `values` and `given`."""
    option = click.option(
        "--args", "given", metavar="JSON", help="The arguments as one JSON object."
    )
    return click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")(option(body))


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call as they were typed: texts by name, and one JSON object."""

    texts: Mapping[str, str]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, values: Iterable[str], given: str | None) -> "Arguments":
        """Read what a command was given. Raises `click.UsageError`."""
        return cls(parse_pairs(values), as_object(given, "--args"))

    def typed(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments; a text has the type that the schema asks for."""
        return {**self.values, **typed(self.texts, schema)}


def call_and_show(
    console: Console,
    session: "satchel.Session",
    entry: "ToolEntry",
    arguments: Arguments,
    *,
    as_json: bool,
) -> int:
    """Call a tool, show what comes of it, and return the exit code."""
    given = arguments.typed(entry.tool.parameters if entry.tool else {})
    result = run_to_end(run_and_print(session, entry.name, given, None if as_json else console))
    if as_json:
        console.json(result_json(result))
    return 1 if result.is_error else 0


def run_to_end(work: Coroutine[Any, Any, R]) -> R:
    """Run something on a loop of its own; Ctrl-C cancels it, and ends the command."""
    try:
        return asyncio.run(_until_ctrl_c(work))
    except asyncio.CancelledError:
        raise click.Abort from None


async def _until_ctrl_c(work: Coroutine[Any, Any, R]) -> R:
    """Await something that Ctrl-C cancels.

    A handler of the loop's own wakes it. The one that `asyncio.run` sets does not: a signal that
    comes while the loop begins to wait would be seen only when something else happens.
    """
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, RuntimeError, ValueError):  # on Windows, or in a thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await work


async def run_and_print(
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


def as_object(text: str | None, option: str) -> dict[str, Any]:
    """Return what an option holds as JSON, an empty object if it is not given."""
    value = _from_json(text) if text is not None else {}
    if not isinstance(value, dict):
        raise click.BadParameter("must be one JSON object", param_hint=option)
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
