"""The base class of all tools."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal

from satchel.tools.argument_model import ArgumentModel
from satchel.tools.callables import runs_on_loop
from satchel.tools.dialects import ToolShape, in_dialect
from satchel.tools.docstrings import read_docstring
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.runner import LOOP, THREAD, Runner
from satchel.tools.schema_validator import SchemaValidator
from satchel.tools.signatures import Parameter, Signature, is_context, signature_of
from satchel.tools.tool_context import ToolContext

_SECRET = re.compile(r"key|token|secret|passw|credential|auth|url|dsn", re.IGNORECASE)


class Tool(ABC):
    """Something that the model can call.

    Subclass it for a tool that holds resources; for a function, `@tool` is enough.
    """

    name: str
    description: str = ""
    group: str | Sequence[str] | None = None
    """The name of its group, or of several."""
    timeout: float | None = None
    """Seconds that one call may take; `None` is the host's limit."""
    idempotent: bool = False
    """Whether a repeated call is answered from memory."""
    remember: Literal["turn", "session"] = "turn"
    """How long that memory lasts: for one `turn` of the user, or for the whole `session`."""
    background: bool = False
    """Whether a call starts a background task and returns its id."""
    annotations: Mapping[str, Any] | None = None
    """MCP tool annotations, such as `readOnlyHint`."""
    mcp_fields: Mapping[str, Any] = NOTHING
    """Further fields of its description for MCP clients; no model sees them."""
    is_remote: bool = False
    """Whether a server elsewhere describes it: then its annotations grant nothing."""
    own_name: str = ""
    """Its name at that server."""
    examples: Sequence[Mapping[str, Any]] = ()
    """Arguments as a model would send them, for `satchel test`; no model sees them."""
    output: Mapping[str, Any] | None = None
    """JSON Schema, of type object, of the return value."""
    runner_name: str = ""
    """The name of a runner of the host that runs it; `""` leaves that to its group and plugin."""
    postprocess: Callable[..., Any] | None = None
    """A function of the `ToolCall` and its `ToolResult`; its return value replaces the result."""

    @abstractmethod
    async def execute(self, *args: Any, **arguments: Any) -> Any:
        """Run once with keyword arguments. Raise `ToolError` with a message for the model.

        Subclasses name their parameters; `args` exists only for type checkers. A parameter with the
        annotation `ToolContext` gets the context of the call. An async generator streams chunks.
        """

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema, of type object, of the arguments; by default generated from `execute`."""
        return self._own_arguments.schema

    def to_schema(self, dialect: str = "openai") -> dict[str, Any]:
        """Return the description of the tool for a provider.

        Raises `NotFoundError` for an unknown dialect.
        """
        shape = ToolShape(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            output=self.output,
            annotations=self._all_annotations(),
        )
        return in_dialect(dialect, shape)

    def validate(self) -> None:
        """Raise `DefinitionError` if no call can be checked against `parameters`."""
        if not self._has_own_arguments:
            self._validator  # noqa: B018 - compiling is the check

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the validated arguments. Raises `ArgumentError`."""
        if self._has_own_arguments:
            return self._own_arguments.check(self.name, arguments)
        return self._validator.check(self.name, arguments)

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """Return a function that runs the tool once with checked arguments."""
        contexts = {item.name: context for item in self._context_parameters}
        positional, named = self._signature.split_arguments({**arguments, **contexts})
        return partial(self.execute, *positional, **named)

    @property
    def wants_context(self) -> bool:
        """Return whether a call needs its context."""
        return bool(self._context_parameters)

    @property
    def injected(self) -> Mapping[str, Any]:
        """Return the values that no log may show: attributes whose names suggest a secret."""
        return {key: value for key, value in vars(self).items() if _SECRET.search(key)}

    @cached_property
    def runner(self) -> Runner:
        """Return where it runs: on the event loop if `execute` is async, else in a thread."""
        return LOOP if runs_on_loop(self.execute) else THREAD

    def _all_annotations(self) -> dict[str, Any] | None:
        hints = {"idempotentHint": True} if self.idempotent else {}
        return {**hints, **(self.annotations or {})} or None

    @cached_property
    def _has_own_arguments(self) -> bool:
        """Return whether the schema is generated from `execute`, not written by the author."""
        if getattr(type(self), "parameters", None) is not vars(Tool)["parameters"]:
            return False
        if "parameters" in vars(self):
            return "_own_arguments" in vars(self)
        return bool(self.parameters)

    @cached_property
    def _signature(self) -> Signature:
        return signature_of(self.execute)

    @cached_property
    def _own_arguments(self) -> ArgumentModel:
        hidden = {item.name for item in self._context_parameters}
        visible = [item for item in self._signature.parameters if item.name not in hidden]
        _, texts = read_docstring(self.execute.__doc__)
        return ArgumentModel(self.execute, visible, texts, hidden=hidden)

    @cached_property
    def _context_parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self._signature.parameters if is_context(self.execute, p))

    @cached_property
    def _validator(self) -> SchemaValidator:
        hidden = self._signature.taken.union(item.name for item in self._context_parameters)
        return SchemaValidator(self.parameters, f"tool {self.name}", hidden)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '?')}>"
