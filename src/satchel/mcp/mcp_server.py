"""A satchel as an MCP server: one object for both eras of the protocol and every transport.

Until 2025-11-25 a client begins with a handshake and has a connection: it gets a session of its
own, may switch groups, and is told of changes whenever they come. Since 2026-07-28 each request
stands alone: all clients see the same lists, and hear of changes on a stream that they open.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import methods

from satchel.errors import SatchelError, ToolError
from satchel.mcp.call_handler import CallRequest, call_tool
from satchel.mcp.completion import completion
from satchel.mcp.mcp_prompts import prompt_result
from satchel.mcp.notifier import Notifier
from satchel.mcp.pagination import PagedList, StaleCursorError
from satchel.mcp.plugin_offers import contents_of, made, messages_of
from satchel.mcp.protocol_validation import LISTED
from satchel.mcp.served_client import ServedClient, connection_of
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp.skill_resources import (
    SkillEntryCache,
    address_of,
    find_target,
    list_directory,
    read_target,
)
from satchel.mcp.tool_client import Context, InputNeededError, ToolClient, is_stateless
from satchel.mcp.view_cache import ClientMode, ClientView, ViewCache
from satchel.mcp_servers.listed_skills import EXTENSION
from satchel.satchel import Satchel
from satchel.settings import Limits
from satchel.tools import Tool, ToolResult

Handler = Callable[[Any, Context, Any], Awaitable[Any]]
"""A method that answers a request, by its context and its parameters."""

_FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What is told is as new as the last edit, so nobody should keep it."""

_TALK = "satchel"
_RESOURCE_NOT_FOUND = -32002
"""The code of the protocol with a handshake; later it is that of wrong parameters."""


def _or_question(handler: Handler) -> Handler:
    """Let a handler answer with the questions that it needs answers to."""

    async def answered(serving: Any, ctx: Context, params: Any) -> Any:
        try:
            return await handler(serving, ctx, params)
        except InputNeededError as needed:
            return needed.result

    return answered


class SkillParams(types.RequestParams):
    """The address of a skill's SKILL.md."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """The address of a folder."""

    uri: str


class SatchelServer:
    """What a satchel holds, served to MCP clients.

    `server` is the server of the official SDK: run it with whichever of its transports. With
    `single` there is one client only, as on stdio, and its session lasts, whatever it speaks.
    With `local` clients are on this machine, and may be told where skills lie.
    """

    def __init__(
        self,
        app: Satchel,
        choice: ServedSelection | None = None,
        *,
        name: str = "satchel",
        single: bool = False,
        local: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.choice = choice or ServedSelection()
        self._limits = limits or Limits()
        self._manifests = SkillEntryCache(self._limits)
        self._showcase = ViewCache(app, self.choice, self._manifests, local=local)
        can_switch = self.choice.meta_tool and not self.choice.is_fixed
        self._with_connection = ClientMode(can_switch, is_lasting=True)
        self._without = ClientMode(can_switch=False, is_lasting=single)
        self._lasting = self._fresh_talk(self._without) if single else None
        self.audience = Notifier(app, self._shown_without, self._shown_to, self._look)
        self.server: Server[None] = self._server(name)

    def _server(self, name: str) -> Server[None]:
        server = _Server(
            name,
            version=version("satchel"),
            instructions=self._shown_without().instructions or None,
            lifespan=self._life,
            get_tool_input_schema=self._schema_of,
            on_list_tools=self._list("tools"),
            on_call_tool=self._call,
            on_list_prompts=self._list("prompts"),
            on_get_prompt=self._prompt,
            on_list_resources=self._list("resources"),
            on_list_resource_templates=self._list("resourceTemplates"),
            on_read_resource=self._read,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self.audience.listening,
            on_completion=self._complete,
        )
        server.middleware.append(self._remember)
        sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=name)
        server.middleware.append(sealed)
        server.extensions[EXTENSION] = {"directoryRead": True}
        add = server.add_request_handler
        add("skills/list", types.PaginatedRequestParams, self._skills)
        add("skills/get", SkillParams, self._skill)
        add("resources/directory/read", DirectoryParams, self._directory)
        # Not by the constructor, which warns of what is old: clients of its time want it.
        add("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._begin
        )
        server.greeting = self._greeting
        return server

    def _greeting(self) -> str:
        """Return what a model should know whose client begins with a handshake."""
        manner = self._with_connection
        return self._showcase.shown(self._showcase.first(manner), manner).instructions

    @asynccontextmanager
    async def _life(self, server: Server[Any]) -> AsyncIterator[None]:
        async with self.audience.life(server):
            try:
                yield
            finally:
                if self._lasting is not None:
                    self._lasting.session.interrupt()

    def _schema_of(self, tool: str) -> Mapping[str, Any] | None:
        return self._shown_without().schemas.get(tool)

    def _look(self, newest: ClientView) -> None:
        """Take up what is new, and forget what is gone."""
        self.server.instructions = newest.instructions or None
        self._manifests.forget_all_but(newest.catalog.all_skills)

    # ---- who is there -----------------------------------------------------------------------

    def _talk(self, ctx: Context) -> ServedClient:
        """Return what is remembered of whoever asks."""
        if is_stateless(ctx):
            return self._lasting or self._fresh_talk(self._without)
        connection = connection_of(ctx)
        talk = connection.state.get(_TALK)
        if talk is None:
            talk = connection.state[_TALK] = self._fresh_talk(self._with_connection, connection)
            # What goes on in the background is nobody's once nobody can ask for it.
            connection.exit_stack.callback(talk.session.interrupt)
        assert isinstance(talk, ServedClient)
        return talk

    def _fresh_talk(self, manner: ClientMode, connection: Connection | None = None) -> ServedClient:
        return ServedClient(
            session=self._showcase.session(manner), manner=manner, connection=connection
        )

    def _shown_to(self, talk: ServedClient) -> ClientView:
        """Return what a client is shown now."""
        if not talk.manner.is_lasting:
            return self._shown_without()
        if not talk.manner.can_switch:
            self._showcase.settle(talk.session, self._showcase.first(talk.manner))
        return self._showcase.shown(talk.session.active_groups, talk.manner)

    def _shown_without(self) -> ClientView:
        """Return what all clients of the protocol without a handshake are shown."""
        return self._showcase.shown(self._showcase.first(self._without), self._without)

    def _shown(self, ctx: Context) -> ClientView:
        return self._shown_without() if is_stateless(ctx) else self._shown_to(self._talk(ctx))

    async def _begin(self, ctx: Context, _params: types.NotificationParams) -> None:
        """Note a client that has shaken hands: from now on it is told of changes."""
        if not is_stateless(ctx):
            self.audience.join(self._talk(ctx))

    # ---- lists ------------------------------------------------------------------------------

    def _list(
        self, key: str
    ) -> Callable[[Context, types.PaginatedRequestParams | None], Awaitable[Any]]:
        async def answer(ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
            return _page(key, self._shown(ctx).lists[key], params)

        return answer

    async def _remember(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a list from memory: the SDK takes long to check and write many tools."""
        if (listed := LISTED.get(ctx.method)) is None:
            return await call_next(ctx)
        is_ready = is_stateless(ctx) or ctx.session.client_params is not None
        cursor = (ctx.params or {}).get("cursor")
        if not is_ready or not (cursor is None or isinstance(cursor, str)):
            return await call_next(ctx)
        listing, key = self._shown(ctx).lists[listed], (ctx.protocol_version, cursor)
        if (known := listing.on_wire.get(key)) is not None:
            methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
            return known
        result = await call_next(ctx)
        if isinstance(result, dict) and self._shown(ctx).lists[listed] is listing:
            listing.on_wire[key] = result
        return result

    # ---- tools ------------------------------------------------------------------------------

    @_or_question
    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        talk = self._talk(ctx)
        shown = self._shown_to(talk)
        hide = self._showcase.hider(shown.catalog)
        try:
            return await call_tool(
                CallRequest(
                    ctx=ctx, params=params, talk=talk, shown=shown, choice=self.choice, hide=hide
                )
            )
        finally:
            self.audience.check(talk, shown)

    # ---- prompts ----------------------------------------------------------------------------

    @_or_question
    async def _prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        talk = self._talk(ctx)
        shown = self._shown_to(talk)
        name, prompts = params.name, shown.lists["prompts"].items
        described = next((item["description"] for item in prompts if item["name"] == name), None)
        if described is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {name!r}.")
        offered = shown.offers.prompts.get(name)
        if offered is not None and name not in shown.texts:
            result = await self._made(ctx, params, offered.tool, name, params.arguments or {})
            return _messages(described, result)
        text = shown.texts.get(name) or await self._text_of_skill(name, talk, shown)
        return prompt_result(described, text, params.arguments)

    async def _text_of_skill(self, name: str, talk: ServedClient, shown: ClientView) -> str:
        try:
            text = (await asyncio.to_thread(talk.session.load_skill, name)).text
        except SatchelError as problem:
            raise MCPError(types.INVALID_PARAMS, problem.message) from problem
        self.audience.check(talk, shown)
        hide = self._showcase.hider(shown.catalog) or str
        return hide(text)

    def _made(
        self, ctx: Context, params: Any, tool: Tool, name: str, arguments: Mapping[str, str]
    ) -> Coroutine[Any, Any, ToolResult]:
        """Make what a plugin offers."""
        client = ToolClient(ctx, self._talk(ctx).level, params)
        return made(tool, name, arguments, client, self._limits)

    # ---- resources and skills ---------------------------------------------------------------

    @_or_question
    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        shown = self._shown(ctx)
        # Skills first: nobody may take the place of their files.
        if (found := find_target(params.uri, shown.view)) is not None and found.is_file:
            try:
                content = await read_target(params.uri, found, self._limits)
            except ToolError as problem:
                raise _no_resource(ctx, params.uri, problem.message) from problem
            return {"contents": [content], **_FRESH}
        if offered := shown.offers.find(params.uri):
            resource, parts = offered
            result = await self._made(ctx, params, resource.tool, resource.name, parts)
            return {"contents": contents_of(params.uri, resource, result), **_FRESH}
        raise _no_resource(ctx, params.uri)

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Any:
        shown = self._shown(ctx)
        found, offered = find_target(params.uri, shown.view), shown.offers.find(params.uri)
        if offered and offered[0].is_template:
            raise _no_resource(ctx, params.uri, f"Nobody can tell when {params.uri} changes.")
        if not (offered or (found is not None and found.is_file)):
            raise _no_resource(ctx, params.uri)
        self._talk(ctx).subscribed.add(params.uri)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> Any:
        self._talk(ctx).subscribed.discard(params.uri)
        return types.EmptyResult()

    async def _skills(self, ctx: Context, params: types.PaginatedRequestParams) -> Any:
        shown = self._shown(ctx)
        listing = await asyncio.to_thread(lambda: shown.entries)
        return _page("skills", listing, params)

    async def _skill(self, ctx: Context, params: SkillParams) -> Any:
        found = find_target(params.uri, self._shown(ctx).view)
        entry = None
        if found is not None and params.uri == address_of(found.skill):
            entry = await asyncio.to_thread(self._manifests.entry, found.skill)
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"No skill is served at {params.uri}.")
        return {"skill": entry, **_FRESH}

    async def _directory(self, ctx: Context, params: DirectoryParams) -> Any:
        found = find_target(params.uri, self._shown(ctx).view)
        if found is None or not found.is_directory:
            raise MCPError(types.INVALID_PARAMS, f"{params.uri} is no directory that is served.")
        return _page("resources", PagedList.of(list_directory(found)), params)

    # ---- the rest ---------------------------------------------------------------------------

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> Any:
        self._talk(ctx).level = params.level
        return types.EmptyResult()

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        return await completion(params, self._shown(ctx), self._limits)


class _Server(Server[None]):
    """A server that says in the handshake, too, that its lists change, and what is new by then."""

    greeting: Callable[[], str]

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        options = super().create_initialization_options(
            changing, experimental_capabilities, extensions
        )
        return options.model_copy(update={"instructions": self.greeting() or None})


def _messages(description: str, result: ToolResult) -> dict[str, Any]:
    messages = messages_of(result.content)
    return {"resultType": "complete", "description": description, "messages": messages}


def _page(
    key: str, listing: PagedList, params: types.PaginatedRequestParams | None
) -> dict[str, Any]:
    try:
        items, cursor = listing.page(params.cursor if params else None)
    except StaleCursorError:
        raise MCPError(
            types.INVALID_PARAMS, "The list has changed since; read it from its beginning."
        ) from None
    following = {"nextCursor": cursor} if cursor else {}
    return {key: items, **_FRESH, **following}


def _no_resource(ctx: Context, uri: str, why: str = "") -> MCPError:
    code = types.INVALID_PARAMS if is_stateless(ctx) else _RESOURCE_NOT_FOUND
    return MCPError(code, why or f"There is no resource {uri}.", {"uri": uri})
