"""The prompts and resources of a server: list them, and get them when they are asked for."""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import DefinitionError, ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.client_callbacks import Caller
from satchel.mcp_servers.list_reader import REPORT, ListedItems, read_list
from satchel.mcp_servers.protocol_fields import (
    LONGEST_TEXT,
    FieldReader,
    fields_beside,
    fields_of,
    forwarded_fields,
    result_metadata,
)
from satchel.mcp_servers.resource_subscriptions import OnUpdate
from satchel.mcp_servers.tool_definitions import ServerSnapshot
from satchel.settings import Limits
from satchel.text import has_hidden, one_line, shorten, visible
from satchel.tools import (
    Block,
    McpPrompt,
    McpResource,
    Resource,
    Text,
    Tool,
    ToolContext,
    ToolResult,
)
from satchel.tools.callables import in_thread
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.runner import LOOP

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Prompt

    from satchel.mcp_servers.server_contributions import ServerOffer

BeginRequest = Callable[[str, Mapping[str, Any], Caller | None], "Future[dict[str, Any]]"]
"""Starts to send a request to its server, given the method and its parameters."""

_LONGEST_NAME, _LONGEST_URI = 200, 2_000
_MAX_ARGUMENTS = 50
_MAX_SUGGESTIONS = 100


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a server's prompt."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedPrompt:
    """A prompt as its server lists it."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    mcp_fields: Mapping[str, Any] = field(default=NOTHING, hash=False)
    """Its other fields, and its arguments with all of theirs, for MCP clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedResource:
    """A resource, or a template for several, as its server lists it."""

    uri: str
    name: str
    description: str = ""
    mime_type: str | None = None
    is_template: bool = False
    mcp_fields: Mapping[str, Any] = field(default=NOTHING, hash=False)
    """Its other fields, for MCP clients."""


# ---- listing -----------------------------------------------------------------------------------


async def list_offers(client: "Client", where: Where, limits: Limits) -> ServerSnapshot:
    """Return the prompts and resources of a server. A list that it does not know is empty.

    A list that cannot be read to its end is a diagnostic. Raises an error if the connection is
    broken.
    """
    able = client.server_capabilities

    def items_of(kind: str, check: Callable[..., Any]) -> ListedItems:
        return ListedItems(
            kind,
            where,
            partial(check, FieldReader(limits)),
            count_limit=(limits.mcp_tools, "mcp_tools"),
            size_limit=(limits.mcp_listing, "mcp_listing"),
        )

    prompts = items_of("prompt", _prompt)
    resources, templates = items_of("resource", _resource), items_of("resource", _resource)
    lists: list[tuple[Any, str, ListedItems]] = []
    if able.prompts is not None:
        lists.append((client.list_prompts, "prompts", prompts))
    if able.resources is not None:
        lists.append((client.list_resources, "resources", resources))
        lists.append((client.list_resource_templates, "resource_templates", templates))
    failures = await asyncio.gather(
        *(read_list(*arguments, limits.mcp_connect, may_lack=True) for arguments in lists)
    )
    kinds = (items.kind for _, _, items in lists)
    unread = dict.fromkeys(pair for pair in zip(kinds, failures, strict=True) if pair[1])
    by_uri = templates.valid | resources.valid
    return ServerSnapshot(
        prompts=prompts.values,
        resources=tuple(by_uri[uri] for uri in sorted(by_uri)),
        diagnostics=(
            *(make_diagnostic(f"mcp-{kind}-invalid", where, why, REPORT) for kind, why in unread),
            *(one for _, _, items in lists for one in items.diagnostics),
        ),
        completes=able.completions is not None,
    )


def _prompt(fields: FieldReader, item: "Prompt") -> tuple[str, OfferedPrompt, int]:
    arguments = item.arguments or []
    _require_plain(item.name, "its name", _LONGEST_NAME)
    if len(arguments) > _MAX_ARGUMENTS:
        raise DefinitionError(f"it has more than {_MAX_ARGUMENTS} arguments")
    for argument in arguments:
        _require_plain(argument.name, "the name of an argument", _LONGEST_NAME)
    prompt = OfferedPrompt(
        name=item.name,
        description=_text(item.description) or _text(item.title),
        arguments=tuple(
            PromptArgument(one.name, _text(one.description), one.required is True)
            for one in arguments
        ),
        mcp_fields=fields.read(type(item), item, used=("name", "description")),
    )
    return prompt.name, prompt, len(repr(prompt))


def _resource(fields: FieldReader, item: Any) -> tuple[str, OfferedResource, int]:
    is_template = hasattr(item, "uri_template")
    uri = item.uri_template if is_template else item.uri
    _require_plain(uri, "its URI", _LONGEST_URI)
    if " " in uri:
        raise DefinitionError("its URI has blanks")
    resource = OfferedResource(
        uri=uri,
        name=item.name if _is_plain(item.name, _LONGEST_NAME) else uri,
        description=_text(item.description) or _text(item.title),
        mime_type=item.mime_type if _is_plain(item.mime_type, _LONGEST_NAME) else None,
        is_template=is_template,
        mcp_fields=fields.read(
            type(item),
            item,
            used=("uriTemplate" if is_template else "uri", "name", "description", "mimeType"),
        ),
    )
    return uri, resource, len(repr(resource))


def _require_plain(text: str, part: str, longest: int) -> None:
    """Raise `DefinitionError` for a part that is empty, too long, or not shown as it is."""
    if not text:
        raise DefinitionError(f"{part} is empty")
    if len(text) > longest:
        raise DefinitionError(f"{part} has {len(text):,} characters, {longest:,} are allowed")
    if not _is_plain(text, longest):
        raise DefinitionError(f"{part} has invisible characters")


def _is_plain(text: Any, longest: int = LONGEST_TEXT) -> bool:
    is_short = isinstance(text, str) and 0 < len(text) <= longest
    return is_short and not has_hidden(text) and "\n" not in text


def _text(text: str | None) -> str:
    return shorten(visible(text or ""), LONGEST_TEXT)


# ---- getting -----------------------------------------------------------------------------------


class _OfferTool(Tool):
    """Gets a prompt or a resource from its server; no model sees it."""

    runner = LOOP
    is_remote = True

    def __init__(
        self,
        offered: OfferedPrompt | OfferedResource,
        arguments: Iterable[PromptArgument],
        *,
        send: Callable[[Mapping[str, Any], Caller], "Future[dict[str, Any]]"],
        decode: Callable[[dict[str, Any]], ToolResult],
        timeout: float | None,
    ) -> None:
        self.name, self.description, self.timeout = offered.name, offered.description, timeout
        self._send, self._decode = send, decode
        arguments = tuple(arguments)
        self.parameters = {
            "type": "object",
            "properties": {
                item.name: {"type": "string", "description": item.description} for item in arguments
            },
            "required": [item.name for item in arguments if item.required],
            "additionalProperties": False,
        }

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        return partial(self._run, arguments, context)

    async def execute(self, /, **arguments: Any) -> ToolResult:
        return await self._run(arguments, ToolContext())

    async def _run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        response = await asyncio.wrap_future(self._send(arguments, Caller.of(context)))
        result: ToolResult = await in_thread(partial(self._decode, response))
        return result


class RemoteOffer:
    """What a prompt and a resource of a server have in common; equal ones come from one place."""

    offered: OfferedPrompt | OfferedResource
    tool: Tool

    def _set_source(self, offered: OfferedPrompt | OfferedResource, item: "ServerOffer") -> None:
        self.offered, self.handle = offered, item.handle
        self.server, self.groups = item.config.name, item.config.groups
        self.completes = item.snapshot.completes
        self.mcp_fields = offered.mcp_fields

    @property
    def _key(self) -> tuple[Any, ...]:
        # `name` and `prefix` differ where a name or a URI is taken.
        names = vars(self).get("name"), vars(self).get("prefix")
        return self.offered, self.server, self.groups, self.completes, self.tool.timeout, names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteOffer) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    async def suggest(
        self, argument: str, typed: str, arguments: Mapping[str, str], caller: Caller | None = None
    ) -> dict[str, Any]:
        """Return what the server suggests for an argument, as an MCP result. Raises `ToolError`."""
        if not self.completes:
            return no_suggestions()
        reference = (
            {"type": "ref/prompt", "name": self.offered.name}
            if isinstance(self.offered, OfferedPrompt)
            else {"type": "ref/resource", "uri": self.offered.uri}
        )
        params = {
            "ref": reference,
            "argument": {"name": argument, "value": typed},
            **({"context": {"arguments": dict(arguments)}} if arguments else {}),
        }
        response = await asyncio.wrap_future(
            self.handle.request("completion/complete", params, caller)
        )
        from mcp_types import Result

        further = fields_beside(Result, response, used=("resultType",))
        return {**forwarded_fields(further), "completion": _suggestions(response)}


def no_suggestions() -> dict[str, Any]:
    """Return the MCP result of a completion without suggestions."""
    return {"completion": {"values": [], "hasMore": False}}


def _suggestions(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is valid of the suggestions in a response."""
    completion = response.get("completion")
    completion = completion if isinstance(completion, dict) else {}
    values, total = completion.get("values"), completion.get("total")
    values = [text for text in values if _is_plain(text)] if isinstance(values, list) else []
    has_more = completion.get("hasMore") is True or len(values) > _MAX_SUGGESTIONS
    suggestions = {"values": values[:_MAX_SUGGESTIONS], "hasMore": has_more}
    return suggestions | ({"total": total} if type(total) is int and total >= 0 else {})


class RemotePrompt(RemoteOffer, McpPrompt):
    """A prompt of a server. `server` and `offered` say which; `name` is unique here."""

    def __init__(self, offered: OfferedPrompt, item: "ServerOffer") -> None:
        self._set_source(offered, item)

        def send(arguments: Mapping[str, Any], caller: Caller) -> "Future[dict[str, Any]]":
            params = {"name": offered.name, "arguments": dict(arguments)}
            return item.handle.request("prompts/get", params, caller)

        tool = _OfferTool(
            offered, offered.arguments, send=send, decode=prompt_result, timeout=item.config.timeout
        )
        super().__init__(tool, name=offered.name)


class RemoteResource(RemoteOffer, McpResource):
    """A resource of a server, or a template for several."""

    offered: OfferedResource

    def __init__(self, offered: OfferedResource, item: "ServerOffer") -> None:
        self._set_source(offered, item)
        self.uri, self.name, self.mime_type = offered.uri, offered.name, offered.mime_type
        self.complete = None

        def send(arguments: Mapping[str, Any], caller: Caller) -> "Future[dict[str, Any]]":
            return item.handle.request("resources/read", {"uri": arguments[_URI]}, caller)

        self.tool = _OfferTool(
            offered,
            [PromptArgument(_URI, required=True)],
            send=send,
            decode=resource_result,
            timeout=item.config.timeout,
        )
        self.variables = ()
        self._parts = _literals(offered.uri)

    @property
    def is_template(self) -> bool:
        """Return whether the URI is a template."""
        return self.offered.is_template

    def match(self, uri: str) -> Mapping[str, str] | None:
        """Return the URI as an argument; `None` if the server does not have it."""
        if not uri.startswith(self.prefix) or len(uri) > _LONGEST_URI:
            return None
        uri = uri.removeprefix(self.prefix)
        is_ours = _fits(uri, self._parts) if self.is_template else uri == self.offered.uri
        return {_URI: uri} if is_ours else None

    async def follow(self, uri: str, on_update: OnUpdate) -> Callable[[], None]:
        """Call a function whenever the resource at a URI changes; return what ends that.

        Raises `ToolError` if the server does not report its changes.
        """
        following = self.handle.follow(uri.removeprefix(self.prefix), on_update)
        return await asyncio.wrap_future(following)


_URI = "uri"


def _literals(template: str) -> tuple[str, ...]:
    """Return the parts of a URI template between its expressions."""
    parts, rest = [], template
    while "{" in rest:
        literal, _, rest = rest.partition("{")
        parts.append(literal)
        rest = rest.partition("}")[2]
    return (*parts, rest)


def _fits(uri: str, parts: tuple[str, ...]) -> bool:
    """Return whether a URI has the parts in this order; the server decides about the rest."""
    first, *middle = parts
    if not uri.startswith(first):
        return False
    at = len(first)
    last = middle.pop() if middle else ""
    for part in middle:
        start = uri.find(part, at)
        if start < 0:
            return False
        at = start + len(part)
    return len(uri) - len(last) >= at and uri.endswith(last)


def prompt_result(response: dict[str, Any]) -> ToolResult:
    """Return the messages of a prompt: as text, and as they are. Raises `ToolError`."""
    from mcp_types import GetPromptResult

    try:
        result = GetPromptResult.model_validate(response, by_name=False)
    except ValueError:
        raise ToolError("the server returned an invalid prompt") from None
    fields = fields_of(result, exclude={"result_type"})
    messages = fields.pop("messages")
    if "description" in fields:
        fields["description"] = _text(fields["description"])
    return ToolResult(
        content=(Text(_as_text(messages)),),
        structured={"messages": messages},
        metadata=result_metadata(fields),
    )


def _as_text(messages: list[dict[str, Any]]) -> str:
    is_dialog = any(message["role"] != "user" for message in messages)
    texts = []
    for message in messages:
        content = message["content"]
        inside = content.get("resource", content)
        text = inside.get("text") if isinstance(inside, dict) else None
        if text is None:
            text = f"[left out: {one_line(str(content.get('type')))}]"
        texts.append(f"{message['role'].capitalize()}: {text}" if is_dialog else text)
    return "\n\n".join(texts)


def resource_result(response: dict[str, Any]) -> ToolResult:
    """Return the contents of a resource. Raises `ToolError`."""
    from mcp_types import ReadResourceResult

    try:
        result = ReadResourceResult.model_validate(response, by_name=False)
        content = tuple(map(_content, result.contents))
    except ValueError:  # pydantic's ValidationError, or of base64
        raise ToolError("the server returned an invalid resource") from None
    fields = fields_of(result, exclude={"contents", "ttl_ms", "cache_scope", "result_type"})
    return ToolResult(content=content, metadata=result_metadata(fields))


def _content(item: Any) -> Block:
    text = getattr(item, "text", None)
    content = b64decode(item.blob, validate=True) if text is None else text
    fields = fields_of(item, exclude={"uri", "mime_type", "text", "blob"})
    further = {"resource": fields} if fields else NOTHING
    return Resource(str(item.uri), content, item.mime_type, mcp_fields=further)
