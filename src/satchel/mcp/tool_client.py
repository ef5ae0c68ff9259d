"""The client that made a call, for tools that report to it or ask it while they run."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from satchel.errors import ToolError
from satchel.mcp_servers.protocol_fields import fields_of
from satchel.tools import ToolResult
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.tool_results import sendable

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

KEY = "mcp"
"""Where a tool finds it: `context.get_metadata("mcp")`."""

Context = ServerRequestContext[Any, Any]


def is_stateless(ctx: Context) -> bool:
    """Return whether a request uses the protocol without a handshake, since 2026-07-28."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(ctx: Context) -> Connection:
    """Return the connection of a request.

    The SDK has no public attribute for it yet.
    """
    connection: Connection = ctx.session._connection  # noqa: SLF001 - see above
    return connection


_QUESTIONS: Mapping[type[Any], tuple[str, type[Any], type[Any]]] = {
    types.ElicitRequest: ("elicitation", types.ElicitationCapability, types.ElicitResult),
    types.CreateMessageRequest: ("sampling", types.SamplingCapability, types.CreateMessageResult),
    types.ListRootsRequest: ("roots", types.RootsCapability, types.ListRootsResult),
}
"""What a client must be able to do to answer each kind of question, and the kind of answer."""


class InputNeededError(Exception):
    """The call cannot continue without answers from the client."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("answers are needed")
        self.result = result


Handler = Callable[[Any, Context, Any], Awaitable[Any]]
"""A method that handles a request, given its context and parameters."""


def returning_questions(handler: Handler) -> Handler:
    """Let a handler return questions to the client instead of a result."""

    async def answered(server: Any, ctx: Context, params: Any) -> Any:
        try:
            return await handler(server, ctx, params)
        except InputNeededError as needed:
            return needed.result

    return answered


class ToolClient:
    """The client that made a call; messages after the end of the call are lost."""

    __slots__ = ("_last", "_level", "_params", "outcome", "sdk")

    def __init__(self, sdk: Context, level: Level, params: Any = None) -> None:
        self.sdk = sdk
        """The request of the official SDK, for other features of the protocol."""
        self._params = params
        self.outcome: InputNeededError | MCPError | None = None
        """What the client gets instead of the error that ended the call."""
        asked = self.meta.get(types.LOG_LEVEL_META_KEY)
        # Without a handshake nothing is logged for a request that does not ask for it.
        self._level = asked if is_stateless(sdk) else level
        self._last = float("-inf")

    def raise_outcome(self, result: ToolResult) -> None:
        """Raise what the client gets in place of a result that is an error, if there is that."""
        if result.is_error and self.outcome is not None:
            raise self.outcome

    @property
    def owner(self) -> Any:
        """Return what identifies the client among several: its connection, or this request."""
        return self if is_stateless(self.sdk) else connection_of(self.sdk)

    @property
    def log_level(self) -> Level | None:
        """Return the lowest level of log messages that it wants; `None` for none."""
        return self._level if self._level in LEVELS else None

    @property
    def protocol_version(self) -> str:
        """Return the protocol version of the client."""
        return self.sdk.protocol_version

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return the metadata of the request."""
        return self.sdk.meta or {}

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the HTTP headers of the request; none on stdio. Names are in lower case."""
        return getattr(self.sdk.request, "headers", None) or {}

    @property
    def wants_progress(self) -> bool:
        """Whether it asked for progress notifications."""
        return "progress_token" in self.meta

    async def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress; a value that is not larger than the last one is not sent."""
        if done > self._last:
            values = sendable([done, total, message or None], "the progress")
            self._last = done
            await self.sdk.session.report_progress(*values)

    async def advance(self, message: str) -> None:
        """Report one more part, with its text."""
        await self.progress(max(self._last, 0.0) + 1, None, message)

    async def log(
        self, level: Level, data: Any, logger: str = "", meta: Mapping[str, Any] = NOTHING
    ) -> None:
        """Send a log message, if the client wants that level; `data` is any JSON value."""
        if self._level not in LEVELS or LEVELS.index(level) < LEVELS.index(self._level):
            return
        data, name, own = sendable([data, logger or None, dict(meta) or None], "the log line")
        params = types.LoggingMessageNotificationParams(
            level=level, data=data, logger=name, _meta=own
        )
        await self.sdk.session.send_notification(
            types.LoggingMessageNotification(params=params), self.sdk.request_id
        )

    # ---- questions to the client --------------------------------------------------------------

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities of the client, as the protocol names them."""
        capabilities = self.sdk.session.client_capabilities
        return capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities else {}

    async def ask(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Ask the client, or its user, and return the answers by the names of the questions.

        A question is a request of the protocol: `{"method": "elicitation/create", "params": ...}`,
        or `sampling/createMessage`, or `roots/list`. Without a handshake, the call ends with the
        questions, and the client repeats it with the answers: so ask before you change anything.
        Questions that were answered before are not asked again.
        """
        adapter: TypeAdapter[types.InputRequest] = TypeAdapter(types.InputRequest)
        asked = {
            name: adapter.validate_python({"params": {}, **item}, by_name=False)
            for name, item in sendable(requests, "the question").items()
        }
        self._require_able(asked.values())
        if not is_stateless(self.sdk):
            return {name: await self._answered(question) for name, question in asked.items()}
        answers = self._answers()
        if asked.keys() <= answers.keys():
            return {name: answers[name] for name in asked}
        missing = {name: item for name, item in asked.items() if name not in answers}
        self.outcome = InputNeededError(
            types.InputRequiredResult(input_requests=missing, request_state=json.dumps(answers))
        )
        raise ToolError("The client has to answer some questions first.")

    def _require_able(self, questions: Iterable[types.InputRequest]) -> None:
        """End the call if the client cannot answer one of the questions."""
        kinds = [_QUESTIONS[type(question)] for question in questions]
        needed = types.ClientCapabilities(**{name: able() for name, able, _ in kinds})
        if self.sdk.session.check_client_capability(needed):
            return
        if is_stateless(self.sdk):
            data = {"requiredCapabilities": needed.model_dump(by_alias=True, exclude_none=True)}
            message = "The client lacks a capability that this needs."
            self.outcome = MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data)
        raise ToolError("The client cannot be asked what this needs to know; do without it.")

    async def _answered(self, question: types.InputRequest) -> dict[str, Any]:
        kind = _QUESTIONS[type(question)][2]
        answer = await self.sdk.session.send_request(
            question,
            kind,
            metadata=ServerMessageMetadata(related_request_id=self.sdk.request_id),
        )
        return fields_of(answer)

    def _answers(self) -> dict[str, dict[str, Any]]:
        """Return the answers of this request and of earlier requests.

        Earlier answers come back in a sealed state, so the client cannot have changed them.
        """
        state = getattr(self._params, "request_state", None)
        before: dict[str, dict[str, Any]] = json.loads(state) if state else {}
        now = getattr(self._params, "input_responses", None) or {}
        return {**before, **{name: fields_of(answer) for name, answer in now.items()}}
