"""A tool made of a function, and the tools that stand in a module."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from satchel.errors import DefinitionError
from satchel.names import tool_name_fault
from satchel.text import visible
from satchel.tools.argument_model import ArgumentModel
from satchel.tools.callables import is_stream, runs_on_loop
from satchel.tools.docstrings import read_docstring, short
from satchel.tools.runner import LOOP, THREAD, Runner
from satchel.tools.schema_validator import SchemaValidator
from satchel.tools.signatures import (
    Parameter,
    held_by,
    is_context,
    name_and_docstring,
    signature_of,
    where,
)
from satchel.tools.state_fields import StateField, bind_values, state_fields
from satchel.tools.tool import Tool
from satchel.tools.tool_call import ToolCall
from satchel.tools.tool_context import ToolContext
from satchel.tools.tool_decorator import ToolOptions, given_options, options_of, require_parameters
from satchel.tools.tool_examples import good_examples
from satchel.tools.type_schemas import output_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

Supply = Callable[[ToolContext], Mapping[str, Any]]
"""Gives values that only one call has."""


class FunctionTool(Tool):
    """A tool that calls a function, of any kind, with arguments that were checked.

    What is given here wins over what `@tool` was told, and that over what the function says
    of itself.
    """

    def __init__(self, fn: Callable[..., Any], **options: Unpack[ToolOptions]) -> None:
        """Make a tool of a function.

        Raises `DefinitionError` for a function that no model could call.
        """
        if isinstance(fn, type) or not callable(fn):
            raise DefinitionError(f"a tool is made of a function, not of {type(fn).__name__!r}")
        chosen = {**(options_of(fn) or {}), **given_options(options)}
        get, place = chosen.get, where(fn)
        own_name, docstring = name_and_docstring(fn)
        said, texts = read_docstring(docstring)
        said = said if get("include_long_description", True) else short(said)
        self.fn = fn
        self.name = good_name(get("name", own_name), place)
        self.description = get("description", said)
        self.group = get("group")
        self.timeout = _good_timeout(get("timeout"), place)
        self.idempotent = bool(get("idempotent"))
        self.remember = _good_memory(get("remember", "turn"), place)
        self.background = bool(get("background"))
        self.annotations = _good_annotations(get("annotations"), place)
        self.examples = good_examples(get("examples"), place)
        self.postprocess, parameters = get("postprocess"), get("parameters")
        if self.postprocess is not None and not callable(self.postprocess):
            raise DefinitionError("postprocess is a function", where=place)
        if parameters is not None and not isinstance(parameters, Mapping):
            raise DefinitionError("parameters are a JSON Schema", where=place)
        if not isinstance(self.description, str):
            raise DefinitionError("the description of a tool must be text", where=place)
        self.description = visible(self.description)
        self._signature = signature_of(fn)
        self.runner = _runner_of(fn, get("blocking"))
        self._contexts = tuple(p.name for p in self._signature.parameters if is_context(fn, p))
        names, presets = get("state", ()), get("presets", {})
        require_parameters(fn, names, "state names")
        require_parameters(fn, presets, "presets name")
        self._injected: Mapping[str, Any] = MappingProxyType(dict(presets))
        self._fields = state_fields(fn, self._signature, names)
        self._made_defaults = tuple(field for field in self._fields if field.default is not None)
        self._texts = texts
        self._includes = (get("include_var_positional"), get("include_var_keyword"))
        self._model: type[BaseModel] | None = None
        self._supplied: frozenset[str] = frozenset()
        self._supply: Supply | None = None
        self._complete: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
        self._given_schema = parameters
        self._describe()

    @cached_property
    def output(self) -> Mapping[str, Any] | None:  # type: ignore[override] # it is made when asked for
        """JSON Schema of what the function says it returns, if that is an object."""
        return output_schema(self.fn)

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the parameters that only the host sets."""
        fields = (field.name for field in self._fields)
        return self._signature.bound.union(self._injected, self._contexts, fields, self._supplied)

    @property
    def injected(self) -> Mapping[str, Any]:
        """The values that the host gave for hidden parameters; they may be secrets."""
        defaults = {p.name: p.parameter.default for p in self._fields if not p.required}
        return {**defaults, **held_by(self.fn), **self._injected}

    @property
    def wants_context(self) -> bool:
        """Whether it has a use for the context of its call."""
        return self.takes_context or self._supply is not None

    @property
    def open_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that have no value yet which holds for every call."""
        taken = self.settled.union(self._contexts)
        return tuple(item for item in self._signature.parameters if item.name not in taken)

    @property
    def settled(self) -> frozenset[str]:
        """The names of the parameters that have a value which holds for every call."""
        return self.hidden.difference(self._supplied, self._contexts)

    @property
    def takes_further(self) -> bool:
        """Whether the function has `**kwargs`."""
        return self._signature.var_keyword is not None

    @property
    def takes_context(self) -> bool:
        """Whether the function has a parameter for the context of its call."""
        return bool(self._contexts)

    @property
    def is_extended(self) -> bool:
        """Whether it also takes the fields of a model."""
        return self._model is not None

    @property
    def missing(self) -> tuple[StateField, ...]:
        """The state fields that have neither a value nor a default."""
        given = self._signature.bound.union(self._injected)
        return tuple(f for f in self._fields if f.required and f.name not in given)

    @property
    def state(self) -> tuple[StateField, ...]:
        """The parameters that configuration may still fill in."""
        return tuple(field for field in self._fields if field.name not in self._injected)

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and coerce arguments. Raises `ArgumentError`."""
        if self._written is None:
            return self._own_arguments.check(self.name, arguments)
        arguments = self._complete(self._written.check(self.name, arguments))
        if self._signature.var_keyword is None:
            return self._own_arguments.check(self.name, arguments)
        # What the schema says beyond the signature is for `**kwargs`.
        known = self._own_arguments.names
        own = {name: value for name, value in arguments.items() if name in known}
        further = {name: value for name, value in arguments.items() if name not in known}
        return self._own_arguments.check(self.name, own) | further

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """Return the function with its arguments: those that were checked, and the injected."""
        if self._made_defaults:
            made = {field.name: field.made_default() for field in self._made_defaults}
            arguments = {**arguments, **made}
        if self._supply is not None:
            arguments = {**arguments, **self._supply(context)}
        if self._injected or self._contexts:
            arguments = {**arguments, **dict.fromkeys(self._contexts, context), **self._injected}
        positional: list[Any] = []
        if self._has_places:
            positional, arguments = self._signature.place(arguments, self._spread)
        return partial(self.fn, *positional, **arguments)

    async def execute(self, /, **arguments: Any) -> Any:
        """Check the arguments, and call the function; of a stream, return the list of its chunks.

        Raises `ArgumentError`.
        """
        call = ToolCall(
            name=self.name,
            arguments=self.check(arguments),
            id="",
            tool=self,
            groups=(),
            context=ToolContext(tool=self.name),
        )
        outcome = await self.runner.run(call)
        return [chunk async for chunk in outcome] if is_stream(outcome) else outcome

    def with_state(self, values: Mapping[str, Any], keys: str = "") -> "FunctionTool":
        """Return a copy whose state fields have their values, each a copy of what is given.

        `keys` says where values come from. Raises `DefinitionError` for a field that has no
        value and no default, and for a value that does not fit or cannot be copied.
        """
        if not self._fields:
            return self
        return self.with_injected(bind_values(self.fn, self.state, values, keys))

    def with_injected(self, values: Mapping[str, Any]) -> "FunctionTool":
        """Return a copy that hands over further values, which no model can set."""
        made = copy(self)
        made._inject(values)  # noqa: SLF001
        return made

    def supplied(
        self,
        names: Iterable[str],
        supply: Supply,
        *,
        description: str,
        parameters: Mapping[str, Any],
        complete: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> "FunctionTool":
        """Return a copy that is described anew, and handed values which each call has of its own.

        `supply` is asked, when a call begins, for the values of `names`, which no model can set.
        `complete` adds to the arguments what the model may leave out.
        """
        made = copy(self)
        made._supplied, made._supply = frozenset(names), supply  # noqa: SLF001
        made._given_schema, made._complete = parameters, complete  # noqa: SLF001
        made.description = visible(description)
        if made.idempotent:
            # A value that it is handed may change, so no answer can be given from memory.
            made.idempotent = not made._supplied  # noqa: SLF001
            made.annotations = {"idempotentHint": True, **(self.annotations or {})}
        made._describe()  # noqa: SLF001
        return made

    def extended(self, model: "type[BaseModel] | None") -> "FunctionTool":
        """Return a copy that also takes the fields of a model, handed over as `**kwargs`."""
        if model is not None and self._signature.var_keyword is None:
            raise DefinitionError(
                f"tool {self.name!r} takes no further arguments",
                where=where(self.fn),
                fix="add **kwargs to the function",
            )
        if model is not None and self._written is not None:
            raise DefinitionError(
                f"the parameters of tool {self.name!r} were written by hand",
                where=where(self.fn),
                fix="write the further ones there, too",
            )
        made = copy(self)
        made._extend(model)  # noqa: SLF001
        return made

    def _extend(self, model: "type[BaseModel] | None") -> None:
        self._model = model
        self._describe()

    def _inject(self, values: Mapping[str, Any]) -> None:
        news = values.keys() - self.hidden
        self._injected = MappingProxyType({**self._injected, **values})
        if news:
            self._describe()

    def _describe(self) -> None:
        """Make what depends on which parameters the model sees."""
        hidden, signature = self.hidden, self._signature
        variadic = zip(
            (signature.var_positional, signature.var_keyword), self._includes, strict=True
        )
        self._spread = tuple(
            item for item, shown in variadic if item and shown and item.name not in hidden
        )
        self._has_places = bool(self._spread) or signature.has_places
        shown = [item for item in signature.parameters if item.name not in hidden]
        self._own_arguments = ArgumentModel(
            self.fn,
            [*shown, *self._spread],
            self._texts,
            hidden=hidden,
            taken=signature.names,
            more=self._model,
        )
        self.parameters = self._own_arguments.schema
        self._written: SchemaValidator | None = None
        if self._given_schema is not None:
            closed = hidden | signature.taken
            self._written = SchemaValidator(self._given_schema, where(self.fn), closed)
            # A copy of its own: it is handed out, and the validator still reads the schema.
            self.parameters = self._given_schema = deepcopy(self._written.schema)


def set_extended_model(tool: Tool, model: "type[BaseModel] | None") -> Tool:
    """Return a tool that also takes the fields of a pydantic model; `None` takes them away again.

    Raises `DefinitionError` for a tool without `**kwargs`, and for a field that the tool has.
    """
    if not isinstance(tool, FunctionTool):
        raise DefinitionError(
            f"tool {tool.name!r} is no function", fix="let its class describe its parameters"
        )
    if model is not None and not _has_fields(model):
        raise DefinitionError(
            f"tool {tool.name!r} can only be extended by a pydantic model with fields",
            fix="give the class, a subclass of BaseModel",
        )
    return tool.extended(model)


def _has_fields(model: Any) -> bool:
    from pydantic import BaseModel, RootModel

    return (
        isinstance(model, type)
        and issubclass(model, BaseModel)
        and not issubclass(model, RootModel)
    )


def as_tool(thing: Any) -> Tool:
    """Return a tool as it is, and make one of anything else that can be called."""
    if not isinstance(thing, Tool):
        return FunctionTool(thing)
    place = f"tool of class {type(thing).__qualname__}"
    good_name(getattr(thing, "name", ""), place)
    good_examples(thing.examples, place)
    thing.validate()
    return thing


def tools_in(namespace: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the marked callables and the `Tool` instances with a public name, in their order.

    A wrapper carries the mark of what it wraps; if both stand there, they are one tool, the first.
    """
    found: dict[int, Any] = {}
    for name, thing in namespace.items():
        if not name.startswith("_") and (identity := _identity(thing)) is not None:
            found.setdefault(id(identity), thing)
    return tuple(found.values())


def _identity(thing: Any) -> object | None:
    """Return what makes a thing one tool and not another, or `None` if it is no tool."""
    try:
        if isinstance(thing, Tool):
            return thing
    except Exception:
        return None  # a lazy proxy may raise when asked for its class
    return options_of(thing)


def good_name(name: Any, place: str) -> str:
    """Return the name of a tool. Raises `DefinitionError` for one that providers reject."""
    if not isinstance(name, str):
        raise DefinitionError("the name of a tool must be text", where=place)
    if fault := tool_name_fault(name):
        raise DefinitionError(
            f"the tool name {name!r} {fault}", where=place, fix="give another with name="
        )
    return name


def _good_timeout(timeout: float | None, place: str) -> float | None:
    # Not "timeout <= 0": that would let NaN pass.
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise DefinitionError(f"a timeout of {timeout} seconds cannot be kept", where=place)
    return timeout


def _good_memory(remember: Any, place: str) -> Literal["turn", "session"]:
    if remember in {"turn", "session"}:
        return cast(Literal["turn", "session"], remember)
    raise DefinitionError(
        f"remember is 'turn' or 'session', not {remember!r}",
        where=place,
        fix="leave it out: answers are remembered for one turn of the user",
    )


def _runner_of(fn: Callable[..., Any], blocking: bool | None) -> Runner:
    """Choose where a function runs; one that is not async may block unless it says otherwise."""
    if runs_on_loop(fn):
        if blocking is not None:
            raise DefinitionError(
                "blocking is only for functions that are neither async nor generators",
                where=where(fn),
                fix="leave it out",
            )
        return LOOP
    return LOOP if blocking is False else THREAD


def _good_annotations(annotations: Any, place: str) -> Mapping[str, Any] | None:
    if annotations is None:
        return None
    if not isinstance(annotations, Mapping):
        raise DefinitionError(
            "annotations are a mapping",
            where=place,
            fix='for instance annotations={"readOnlyHint": True}',
        )
    return MappingProxyType(dict(annotations))
