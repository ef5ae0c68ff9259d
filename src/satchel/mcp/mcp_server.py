"""Serve a satchel over MCP, in both versions of the protocol and on every transport.

Up to version 2025-11-25 a client begins with a handshake and has a connection. It gets its own
session, may switch groups, and is notified of changes. Since 2026-07-28 each request is
independent. All clients see the same lists, and subscribe to changes on a stream.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import methods

from satchel.errors import SatchelError, ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp.call_handler import CallRequest, call_tool
from satchel.mcp.changing_server import HANDSHAKE, UNCACHED, ChangingServer
from satchel.mcp.completion import completion
from satchel.mcp.mcp_prompts import WORDS, has_place_for_words, prompt_result
from satchel.mcp.notifier import Notifier
from satchel.mcp.pagination import PagedList, StaleCursorError
from satchel.mcp.plugin_offers import contents_of, messages_of, run_offer
from satchel.mcp.protocol_validation import LISTED
from satchel.mcp.resource_followers import follow_resource, following
from satchel.mcp.result_encoding import further_fields
from satchel.mcp.served_client import ServedClient
from satchel.mcp.served_selection import ServedSelection
from satchel.mcp.skill_resources import (
    SkillEntryCache,
    address_of,
    find_file,
    list_folder,
    read_file,
)
from satchel.mcp.tool_client import (
    Context,
    ToolClient,
    connection_of,
    is_stateless,
    returning_questions,
)
from satchel.mcp.view_cache import ClientMode, ClientView, ViewCache
from satchel.mcp_servers.listed_skills import EXTENSION
from satchel.mcp_servers.server_contributions import starting_servers
from satchel.mcp_servers.tool_lister import WAIT
from satchel.satchel import Satchel
from satchel.settings import Limits
from satchel.tools import Tool, ToolResult

_CLIENT = "satchel"
_LOOK = 0.05
_STARTING = "dev.satchel/starting"
"""The `_meta` key of a list with the names of the servers that are not connected yet."""
_RESOURCE_NOT_FOUND = -32002
"""The code up to version 2025-11-25; later versions use `INVALID_PARAMS`."""


class SkillParams(types.RequestParams):
    """The address of a skill's SKILL.md."""

    uri: str


class FolderParams(types.PaginatedRequestParams):
    """The address of a folder."""

    uri: str


@dataclass(frozen=True, slots=True)
class StartWait:
    """Until when requests wait for what is still starting, on the clock `time.monotonic`."""

    lists: float = 0.0
    calls: float = 0.0
    """Of a tool that is not there yet: clients keep the lists of earlier runs."""

    @classmethod
    def from_now(cls, lists: float = 2.0, calls: float = 10.0) -> "StartWait":
        """Return the end of this many seconds."""
        now = time.monotonic()
        return cls(now + lists, now + calls)


class SatchelServer:
    """Serves the contents of a satchel to MCP clients.

    `server` is a server of the official SDK: run it with any of its transports. With `single`
    there is one client, as on stdio, which has one session in every version of the protocol. With
    `local` clients run on this machine and may see the paths of skills. `start_wait` is how long
    plugins and servers that start are waited for, since many clients list only once. A list names
    the servers that are still starting in its `_meta`.
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
        start_wait: StartWait = StartWait(),  # noqa: B008 - it is frozen
    ) -> None:
        self._app, self._start_wait = app, start_wait
        self.choice = choice or ServedSelection()
        self._limits = limits or Limits()
        self._skill_entries = SkillEntryCache(self._limits)
        self._views = ViewCache(app, self.choice, self._skill_entries, local=local)
        can_switch = self.choice.meta_tool and not self.choice.is_fixed
        self._connected_mode = ClientMode(can_switch, is_lasting=True)
        self._connectionless_mode = ClientMode(can_switch=False, is_lasting=single)
        self._single_client = self._new_client(self._connectionless_mode) if single else None
        self.notifier = Notifier(app, self._shared_view, self._view_of)
        self.server: Server[None] = self._server(name)

    def _server(self, name: str) -> Server[None]:
        server = ChangingServer(
            name,
            version=version("satchel"),
            greeting=self._greeting,
            lifespan=self._lifespan,
            on_list_tools=self._list("tools"),
            on_call_tool=self._call,
            on_list_prompts=self._list("prompts"),
            on_get_prompt=self._prompt,
            on_list_resources=self._list("resources"),
            on_list_resource_templates=self._list("resourceTemplates"),
            on_read_resource=self._read,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
            on_completion=self._complete,
        )
        server.middleware.append(self._wait_for_slow_ones)
        server.middleware.append(self._answer_from_cache)
        sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=name)
        server.middleware.append(sealed)
        server.extensions[EXTENSION] = {"directoryRead": True}
        add = server.add_request_handler
        add("skills/list", types.PaginatedRequestParams, self._skills)
        add("skills/get", SkillParams, self._skill)
        add("resources/directory/read", FolderParams, self._folder)
        # Not by the constructor, which warns that it is deprecated: older clients need it.
        add("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._start_notifying
        )
        # Not by the constructor: SDKs before 2.3 have no such parameter, and ask `tools/list`.
        server.get_tool_input_schema = self._schema_of
        return server

    def _greeting(self, method: str) -> str:
        is_connected = method == HANDSHAKE
        mode = self._connected_mode if is_connected else self._connectionless_mode
        return self._views.view_of(self._views.initial_groups(mode), mode).instructions

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[None]:
        async with self.notifier.lifespan(server):
            try:
                yield
            finally:
                if self._single_client is not None:
                    self._single_client.session.interrupt()

    def _schema_of(self, tool: str) -> Mapping[str, Any] | None:
        return self._shared_view().schemas.get(tool)

    # ---- clients ----------------------------------------------------------------------------

    def _client(self, ctx: Context) -> ServedClient:
        if is_stateless(ctx):
            return self._single_client or self._new_client(self._connectionless_mode)
        connection = connection_of(ctx)
        client = connection.state.get(_CLIENT)
        if client is None:
            client = connection.state[_CLIENT] = self._new_client(self._connected_mode, connection)
            # Background tasks end with the connection: no one could ask for them.
            connection.exit_stack.callback(client.session.interrupt)
            connection.exit_stack.callback(client.unsubscribe)
        assert isinstance(client, ServedClient)
        return client

    def _new_client(self, mode: ClientMode, connection: Connection | None = None) -> ServedClient:
        return ServedClient(session=self._views.session(mode), mode=mode, connection=connection)

    def _view_of(self, client: ServedClient) -> ClientView:
        if not client.mode.is_lasting:
            return self._shared_view()
        initial = self._views.initial_groups(client.mode)
        if not client.mode.can_switch:
            self._views.activate_only(client.session, initial)
        elif late := initial - client.given:
            # A server or plugin that came after the first request.
            self._views.activate(client.session, late)
            client.given |= late
        return self._views.view_of(client.session.active_groups, client.mode)

    def _shared_view(self) -> ClientView:
        return self._views.view_of(
            self._views.initial_groups(self._connectionless_mode), self._connectionless_mode
        )

    def _view(self, ctx: Context) -> ClientView:
        return self._shared_view() if is_stateless(ctx) else self._view_of(self._client(ctx))

    async def _start_notifying(self, ctx: Context, _params: types.NotificationParams) -> None:
        if not is_stateless(ctx):
            self.notifier.join(self._client(ctx))

    # ---- lists ------------------------------------------------------------------------------

    def _list(
        self, key: str
    ) -> Callable[[Context, types.PaginatedRequestParams | None], Awaitable[Any]]:
        async def answer(ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
            return _page(key, self._view(ctx).lists[key], params)

        return answer

    async def _wait_for_slow_ones(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Let a list, and a call of an unknown tool, wait for slow plugins and servers.

        A list names the servers that are not there yet.
        """
        is_list, until = ctx.method in LISTED, self._start_wait.calls
        if is_list:
            seconds = ((ctx.params or {}).get("_meta") or {}).get(WAIT)
            asked_until = time.monotonic() + seconds if isinstance(seconds, int | float) else 0.0
            until = min(until, max(self._start_wait.lists, asked_until))
        while (  # noqa: ASYNC110 - they end in threads, seldom while a client asks
            time.monotonic() < until
            and (self._app.is_importing or starting_servers(self._app.catalog))
            and (is_list or self._is_unknown_tool(ctx))
        ):
            await asyncio.sleep(_LOOK)
        starting = starting_servers(self._app.catalog) if is_list else ()
        result = await call_next(ctx)
        if starting and isinstance(result, dict):
            return {**result, "_meta": {**result.get("_meta", {}), _STARTING: starting}}
        return result

    def _is_unknown_tool(self, ctx: Context) -> bool:
        """Return whether a request calls a tool that may come: clients keep their lists."""
        if ctx.method != "tools/call":
            return False
        name = (ctx.params or {}).get("name")
        return _is_ready(ctx) and isinstance(name, str) and name not in self._view(ctx).schemas

    async def _answer_from_cache(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Return a cached list: the SDK takes long to validate and serialize many tools."""
        if (listed := LISTED.get(ctx.method)) is None:
            return await call_next(ctx)
        cursor = (ctx.params or {}).get("cursor")
        if not _is_ready(ctx) or not (cursor is None or isinstance(cursor, str)):
            return await call_next(ctx)
        listing, key = self._view(ctx).lists[listed], (ctx.protocol_version, cursor)
        if (cached := listing.encoded_pages.get(key)) is not None:
            methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
            return cached
        result = await call_next(ctx)
        if isinstance(result, dict) and self._view(ctx).lists[listed] is listing:
            listing.encoded_pages[key] = result
        return result

    # ---- tools ------------------------------------------------------------------------------

    @returning_questions
    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        client = self._client(ctx)
        view = self._view_of(client)
        hide = self._views.hider(view.catalog)
        try:
            return await call_tool(
                CallRequest(
                    ctx=ctx, params=params, client=client, view=view, choice=self.choice, hide=hide
                )
            )
        finally:
            self.notifier.check(client, view)

    # ---- prompts ----------------------------------------------------------------------------

    @returning_questions
    async def _prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        client = self._client(ctx)
        view = self._view_of(client)
        name, prompts = params.name, view.lists["prompts"].items
        described = next((item["description"] for item in prompts if item["name"] == name), None)
        if described is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {name!r}.")
        offered = view.offers.prompts.get(name)
        if offered is not None and name not in view.texts:
            result = await self._run_offer(ctx, params, offered.tool, name, params.arguments or {})
            messages = messages_of(offered, result)
            described = {"description": described, **further_fields(result)}
            return {"resultType": "complete", **described, "messages": messages}
        words = (params.arguments or {}).get(WORDS, "").strip()
        if (text := view.texts.get(name)) is None:
            is_placed = has_place_for_words(view.catalog.skills.get(name))
            text = await self._text_of_skill(name, client, view, words if is_placed else None)
            words = "" if is_placed else words
        return prompt_result(described, text, words)

    async def _text_of_skill(
        self, name: str, client: ServedClient, view: ClientView, words: str | None
    ) -> str:
        try:
            text = (await asyncio.to_thread(client.session.load_skill, name, words)).text
        except SatchelError as problem:
            raise MCPError(types.INVALID_PARAMS, problem.message) from problem
        self.notifier.check(client, view)
        hide = self._views.hider(view.catalog) or str
        return hide(text)

    def _run_offer(
        self, ctx: Context, params: Any, tool: Tool, name: str, arguments: Mapping[str, str]
    ) -> Coroutine[Any, Any, ToolResult]:
        client = ToolClient(ctx, self._client(ctx).level, params)
        return run_offer(tool, name, arguments, client, self._limits)

    # ---- resources and skills ---------------------------------------------------------------

    @returning_questions
    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        view = self._view(ctx)
        # Skills first: a plugin's resource must not replace their files.
        if file := find_file(params.uri, view.view):
            try:
                content = await read_file(params.uri, *file, self._limits)
            except ToolError as problem:
                raise _no_resource(ctx, params.uri, problem.message) from problem
            return {"contents": [content], **UNCACHED}
        if offered := view.offers.find(params.uri):
            resource, parts = offered
            result = await self._run_offer(ctx, params, resource.tool, resource.name, parts)
            contents = contents_of(params.uri, resource, result)
            return {**further_fields(result), "contents": contents, **UNCACHED}
        raise _no_resource(ctx, params.uri)

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Any:
        view = self._view(ctx)
        offered = view.offers.find(params.uri)
        if offered and offered[0].is_template and not offered[0].server:
            raise _no_resource(
                ctx, params.uri, f"Cannot subscribe to {params.uri}: its changes are not known."
            )
        if not (offered or find_file(params.uri, view.view)):
            raise _no_resource(ctx, params.uri)
        client = self._client(ctx)
        if client.connection is not None and params.uri not in client.subscribed:
            try:
                end = await follow_resource(view, params.uri, self.notifier, client)
            except ToolError as problem:
                why = f"Cannot subscribe to {params.uri}: {problem}."
                raise _no_resource(ctx, params.uri, why) from None
            client.subscribed[params.uri] = end
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> Any:
        self._client(ctx).unsubscribe(params.uri)
        return types.EmptyResult()

    async def _listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        uris = params.notifications.resource_subscriptions or ()
        async with following(self._view(ctx), uris, self.notifier):
            return await self.notifier.listening(ctx, params)

    async def _skills(self, ctx: Context, params: types.PaginatedRequestParams) -> Any:
        view = self._view(ctx)
        listing = await asyncio.to_thread(lambda: view.entries)
        return _page("skills", listing, params)

    async def _skill(self, ctx: Context, params: SkillParams) -> Any:
        skill, _ = find_file(params.uri, self._view(ctx).view) or (None, "")
        entry = None
        if skill is not None and params.uri == address_of(skill):
            entry = await asyncio.to_thread(self._skill_entries.entry, skill)
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"No skill is served at {params.uri}.")
        return {"skill": entry, **UNCACHED}

    async def _folder(self, ctx: Context, params: FolderParams) -> Any:
        items = list_folder(params.uri, self._view(ctx).view)
        if not items:
            raise MCPError(types.INVALID_PARAMS, f"No directory is served at {params.uri}.")
        return _page("resources", PagedList.of(items), params)

    # ---- the rest ---------------------------------------------------------------------------

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> Any:
        self._client(ctx).level = params.level
        return types.EmptyResult()

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        client = ToolClient(ctx, self._client(ctx).level, params)
        return await completion(params, self._view(ctx), self._limits, client)


def _is_ready(ctx: Context) -> bool:
    """Return whether a request comes after the handshake, or needs none."""
    return is_stateless(ctx) or ctx.session.client_params is not None


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
    return {key: items, **UNCACHED, **following}


def _no_resource(ctx: Context, uri: str, why: str = "") -> MCPError:
    code = types.INVALID_PARAMS if is_stateless(ctx) else _RESOURCE_NOT_FOUND
    return MCPError(code, why or f"There is no resource {uri}.", {"uri": uri})
