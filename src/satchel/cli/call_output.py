"""Call a tool from the command line and print its output."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from satchel.cli.console import Console
from satchel.cli.key_value_pairs import parse_pairs
from satchel.cli.signal_handling import run_to_end
from satchel.lazy_dataclass import dataclass
from satchel.reports.serializer import result_json
from satchel.reports.short_texts import count
from satchel.text import visible
from satchel.tools import Audio, Block, Image, Resource, ResourceLink, Text, ToolResult, failure

if TYPE_CHECKING:
    import satchel
    from satchel.catalog.catalog_entries import ToolEntry

_TASK_TIMEOUT = 3600.0


def takes_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the parameters for the arguments of a tool: `values` and `json_text`."""
    option = click.option(
        "--args", "json_text", metavar="JSON", help="The arguments as one JSON object."
    )
    return click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")(option(function))


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call as the user typed them."""

    texts: Mapping[str, str]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, values: Iterable[str], json_text: str | None) -> "Arguments":
        """Parse `KEY=VALUE` texts and the value of `--args`. Raises `click.UsageError`."""
        return cls(parse_pairs(values), as_object(json_text, "--args"))

    def typed(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, with the texts converted to the types of the schema."""
        return {**self.values, **typed(self.texts, schema)}


def call_and_show(
    console: Console,
    session: "satchel.Session",
    entry: "ToolEntry",
    arguments: Arguments,
    *,
    as_json: bool,
) -> int:
    """Call a tool, print its output, and return the exit code."""
    values = arguments.typed(entry.tool.parameters if entry.tool else {})
    result = run_to_end(run_and_print(session, entry.name, values, None if as_json else console))
    if as_json:
        console.json(result_json(result))
    return 1 if result.is_error else 0


async def run_and_print(
    session: "satchel.Session", name: str, arguments: dict[str, Any], console: Console | None
) -> ToolResult:
    """Call a tool and return its result; the output is printed as it arrives."""
    chunks, result = 0, failure("no_result", "The call returned no result.")
    is_mid_line = False
    async for item in session.stream(name, arguments):
        if isinstance(item, ToolResult):
            result = item
            continue
        chunks += 1
        # Chunks of plain text join into lines; everything else gets a line of its own.
        is_text = item.structured is None and all(isinstance(b, Text) for b in item.content)
        if is_mid_line and not is_text:
            _print((Text(""),), console)
        _print(item.content, console, end="" if is_text else "\n")
        is_mid_line = is_text
    if is_mid_line:
        _print((Text(""),), console)
    if task_id := result.metadata.get("task_id"):
        # A background task would end with this process, so wait for it.
        result = await session.call("wait_task", {"task_id": task_id, "timeout": _TASK_TIMEOUT})
        result = replace(result, content=result.content[1:])
    if not chunks or task_id:
        _print(result.content, console, is_error=result.is_error)
    elif result.is_error:
        _print(result.content[-1:], console, is_error=True)
    return result


def _print(
    content: Iterable[Block], console: Console | None, *, is_error: bool = False, end: str = "\n"
) -> None:
    if console is None:
        return
    for block in content:
        text = visible(block.text if isinstance(block, Text) else f"[{_block_label(block)}]")
        if is_error:
            console.say(text)
        else:
            console.out(text, end=end)


def _block_label(block: Image | Audio | Resource | ResourceLink) -> str:
    if isinstance(block, Image | Audio):
        kind = type(block).__name__.lower()
        return f"{kind} {block.mime_type}, {count(len(block.data), 'byte')}"
    return f"{'link' if isinstance(block, ResourceLink) else 'resource'} {block.uri}"


def as_object(text: str | None, option: str) -> dict[str, Any]:
    """Return the JSON object in an option's value, or `{}` if the option is not given."""
    value = _from_json(text) if text is not None else {}
    if not isinstance(value, dict):
        raise click.BadParameter("must be one JSON object", param_hint=option)
    return value


def typed(pairs: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert texts: unchanged where the schema asks for a string, else parsed as JSON."""
    properties = schema.get("properties", {})
    return {
        key: text if _is_text(properties.get(key, {})) else _from_json(text)
        for key, text in pairs.items()
    }


def _is_text(schema: Any) -> bool:
    """Return whether a schema allows only a string, or a string and null."""
    if not isinstance(schema, Mapping):
        return False
    choices = [item for item in schema.get("anyOf", ()) if item.get("type") != "null"]
    if choices:
        return all(map(_is_text, choices))
    return schema.get("type") == "string"


def _from_json(text: str) -> Any:
    """Return a text parsed as JSON, or the text itself if it is not JSON."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return text


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)  # Python accepts NaN and Infinity, JSON does not
