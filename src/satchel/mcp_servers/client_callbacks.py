"""Pass what a server asks, while it works, to those who can answer it.

A server may ask for input of a person, for a message of a model, or for the roots of the client.
The client that made the call is asked first, if it is one that is served over MCP and can answer;
then the host's functions; and without either the question is refused.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.protocol_fields import META, fields_of, forwarded_meta
from satchel.text import one_line, shorten
from satchel.tools import ToolContext
from satchel.tools.callables import in_thread

if TYPE_CHECKING:
    from mcp import Client

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"

_CAPABILITIES = {ELICIT: "elicitation", SAMPLE: "sampling", ROOTS: "roots"}

AskHost = Callable[[str, Mapping[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
"""Gets a server's name and the parameters of its question, and returns the answer.

Both are as the protocol has them, `elicitation/create` or `sampling/createMessage`.
"""

_MAX_ROUNDS = 10
"""How often a server may ask before it responds to one call."""

_MAX_QUESTIONS = 20
"""Questions of one round."""

_SERVED = "mcp"
"""Where the context of a call has the client that is served."""

_log = logging.getLogger("satchel.mcp_servers")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCallbacks:
    """The functions that answer questions of servers; `server` is the one that asks."""

    server: str = ""
    """Its name."""
    on_elicit: AskHost | None = None
    on_sample: AskHost | None = None
    asks_clients: bool = False
    """Whether MCP clients are served, which may be able to answer."""
    roots: tuple[str, ...] = ()
    """Addresses of folders that are the answer to a question for roots, for every caller."""

    def can(self, method: str) -> bool:
        """Return whether anybody may be able to answer such a question."""
        return self.asks_clients or self.can_for(method, None)

    def can_for(self, method: str, caller: "Caller | None") -> bool:
        """Return whether such a question can be answered in a call of this caller."""
        has_roots = method == ROOTS and bool(self.roots)
        is_able = caller is not None and caller.can(method)
        return has_roots or is_able or self._of_host(method) is not None

    def _of_host(self, method: str) -> AskHost | None:
        return {ELICIT: self.on_elicit, SAMPLE: self.on_sample}.get(method)

    async def answer(
        self, key: str, question: Mapping[str, Any], caller: "Caller | None"
    ) -> Mapping[str, Any] | None:
        """Return the answer to a question; `None` if there is none to give.

        Raises `ToolError` if the call has to end so that its client can answer.
        """
        method = str(question.get("method", ""))
        if method == ROOTS and self.roots:
            return {"roots": [{"uri": uri} for uri in self.roots]}
        if caller is not None and caller.can(method):
            return await caller.ask(key, question)
        function = self._of_host(method)
        if function is not None:
            params = question.get("params") or {}
            try:
                return await _asked(partial(function, self.server, params), caller)
            except Exception:
                _log.exception("cannot answer %s of server %s", method, self.server)
        refusals: dict[str, Mapping[str, Any]] = {
            ELICIT: {"action": "cancel"},
            ROOTS: {"roots": []},
        }
        return refusals.get(method)


async def _asked(ask: Callable[[], Any], caller: "Caller | None") -> Mapping[str, Any]:
    """Call a function of the host: an async one on the caller's loop, any other in a thread."""
    answer: Any = ask() if inspect.iscoroutinefunction(ask) else await in_thread(ask)
    if inspect.isawaitable(answer):
        answer = await _elsewhere(answer, caller)
    return cast("Mapping[str, Any]", answer)


async def _elsewhere(work: Any, caller: "Caller | None") -> Any:
    loop = caller.loop if caller is not None else None
    if loop is None or loop is asyncio.get_running_loop() or not loop.is_running():
        return await work

    async def run() -> Any:
        return await work

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), loop))


class Caller:
    """Who made a call: the client that is served, if there is one, and the loop of the call."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._client, self.loop = client, loop
        self._count = 0
        self.interruption: ToolError | None = None
        """Set if the call has to end so that its client can answer a question."""

    @classmethod
    def of(cls, context: ToolContext) -> "Caller":
        """Return the caller of a call with this context, on the loop of the call."""
        client = context.get_metadata(_SERVED)
        return cls(client if hasattr(client, "ask") else None, asyncio.get_running_loop())

    @property
    def owner(self) -> Any:
        """Return what identifies the client among several."""
        return getattr(self._client, "owner", None)

    @property
    def log_level(self) -> str | None:
        """Return the lowest level of log lines that the client wants; `None` for none."""
        return getattr(self._client, "log_level", None)

    @property
    def meta(self) -> dict[str, Any]:
        """Return what the `_meta` of the client's request says to the server."""
        meta = forwarded_meta(getattr(self._client, "meta", {}))
        return meta if self.log_level is None else {**meta, _LOG_LEVEL: self.log_level}

    def can(self, method: str) -> bool:
        """Return whether the client can answer such a question."""
        return self._client is not None and _CAPABILITIES.get(method) in self._client.capabilities

    def next_key(self) -> str:
        """Return the name of a question without one; a repeated call asks in the same order."""
        self._count += 1
        return f"question-{self._count}"

    async def ask(self, key: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the client. Raises `ToolError` if the call has to end for that."""
        question = {**question, "params": _passed_on(question.get("params") or {})}
        try:
            answers = await _elsewhere(self._client.ask({key: question}), self)
        except ToolError as problem:
            self.interruption = problem
            raise
        return _passed_on(answers[key])

    async def log(self, level: str, data: Any, logger: str, meta: Mapping[str, Any]) -> None:
        """Send a log line to the client, if there is one."""
        if self._client is not None:
            await _elsewhere(self._client.log(level, data, logger, meta), self)


class RunningCallers:
    """The callers whose calls run on one connection.

    In the older protocol a question does not say to which call it belongs. It is passed on only
    if all running calls are of one client: no client sees the questions of another.
    """

    def __init__(self) -> None:
        self._running: list[Caller | None] = []
        self._are_idle = asyncio.Event()
        self._are_idle.set()

    @contextmanager
    def during(self, caller: Caller | None) -> Iterator[None]:
        """Count a call while it runs."""
        self._running.append(caller)
        self._are_idle.clear()
        try:
            yield
        finally:
            self._running.remove(caller)
            if not self._running:
                self._are_idle.set()

    @property
    def are_idle(self) -> bool:
        """Return whether no call runs."""
        return not self._running

    async def until_idle(self) -> None:
        """Wait until no call runs; each call has a time limit."""
        await self._are_idle.wait()

    @property
    def only(self) -> Caller | None:
        """Return the newest caller, `None` if there are several clients."""
        callers = [caller for caller in self._running if caller is not None]
        owners = {id(caller.owner) for caller in callers}
        return callers[-1] if len(owners) == 1 else None


def sdk_callbacks(
    callbacks: ClientCallbacks, callers: RunningCallers, hide: Callable[[str], str]
) -> dict[str, Any]:
    """Return the callbacks for the SDK's client, as its keyword arguments.

    Only what can be answered has one: a server learns from this what it may ask. `hide` removes
    secrets from log lines.
    """
    import mcp_types as types

    async def answered(method: str, kind: Any, _ctx: Any, params: Any = None) -> Any:
        caller = callers.only
        question = {"method": method, "params": fields_of(params) if params else {}}
        key = caller.next_key() if caller is not None else ""
        try:
            answer = await callbacks.answer(key, question, caller)
        except ToolError:  # the call ends with it
            answer = {"action": "cancel"} if method == ELICIT else None
        if answer is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="This cannot be answered.")
        return kind.model_validate(answer, by_name=False)

    async def on_log(params: Any) -> None:
        logger = hide(".".join(filter(None, (callbacks.server, params.logger))))
        text = params.data if isinstance(params.data, str) else json.dumps(params.data)
        # Values of another type stay as they are, unless there is something to hide.
        data = params.data if hide(text) == text else hide(text)
        meta, as_text = forwarded_meta(params.meta or {}), json.dumps(params.meta)
        meta = meta if hide(as_text) == as_text else {}
        if (caller := callers.only) is not None and caller.log_level is not None:
            try:
                await caller.log(params.level, data, logger, meta)
            except Exception as problem:  # any: a log line must not end the connection
                _log.debug("cannot pass on a log line: %s", type(problem).__name__)
        else:
            _log.debug("%s: %s", logger, shorten(one_line(hide(text)), 1_000))

    able = {
        "elicitation_callback": (ELICIT, types.ElicitResult),
        "sampling_callback": (SAMPLE, types.CreateMessageResult),
        "list_roots_callback": (ROOTS, types.ListRootsResult),
    }
    chosen: dict[str, Any] = {
        name: partial(answered, method, kind)
        for name, (method, kind) in able.items()
        if callbacks.can(method)
    }
    return {**chosen, "logging_callback": on_log}


def _passed_on(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question or an answer without what its `_meta` says of one connection."""
    meta = fields.get(META)
    return {**fields, META: forwarded_meta(meta)} if isinstance(meta, Mapping) else {**fields}


async def send_answering(
    client: "Client",
    request: Any,
    callbacks: ClientCallbacks,
    caller: Caller | None = None,
    on_progress: Any = None,
) -> dict[str, Any]:
    """Send a request, answer what the server asks in the newer protocol, and return its response.

    Raises `ToolError` if there is no answer, or if the call has to end so that its client can.
    """
    if caller is not None and (meta := caller.meta):
        params = request.params
        params = params.model_copy(update={"meta": {**meta, **(params.meta or {})}})
        request = request.model_copy(update={"params": params})
    for _ in range(_MAX_ROUNDS):
        response: dict[str, Any] = await client.session.send_request(
            request, _json_object(), progress_callback=on_progress
        )
        if caller is not None and caller.interruption is not None:
            raise caller.interruption
        if response.get("resultType") != "input_required":
            return response
        answers = await _answers(response.get("inputRequests"), callbacks, caller)
        state = response.get("requestState")
        extra = {"inputResponses": answers, "requestState": state}
        request = _with(request, {key: value for key, value in extra.items() if value is not None})
    raise ToolError(f"the server {callbacks.server!r} asks again and again; continue without it")


_LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@cache
def _json_object() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, Any])


def _with(request: Any, extra: Mapping[str, Any]) -> Any:
    params = request.params
    changed = type(params).model_validate({**fields_of(params), **extra}, by_name=False)
    return request.model_copy(update={"params": changed})


async def _answers(
    questions: Any, callbacks: ClientCallbacks, caller: Caller | None
) -> dict[str, Any] | None:
    if not isinstance(questions, dict) or not questions:
        await asyncio.sleep(0.1)  # it only wants to be asked again
        return None
    server = callbacks.server
    if len(questions) > _MAX_QUESTIONS or not all(isinstance(q, dict) for q in questions.values()):
        raise ToolError(f"the server {server!r} asked something invalid; continue without it")
    answers: dict[str, Any] = {}
    for key, question in questions.items():
        answer = await callbacks.answer(key, question, caller)
        if answer is None:
            raise ToolError(
                f"the server {server!r} asks what cannot be answered here; continue without it"
            )
        answers[key] = dict(answer)
    return answers
