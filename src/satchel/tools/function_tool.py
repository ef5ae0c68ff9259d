"""Tools from functions: `FunctionTool`, and the tools that a module defines."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy, deepcopy
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from satchel.errors import DefinitionError
from satchel.names import sentence_of, tool_name_fault
from satchel.text import visible
from satchel.tools.argument_model import ArgumentModel
from satchel.tools.base_tool import Tool
from satchel.tools.callables import is_stream, runs_on_loop
from satchel.tools.docstrings import read_docstring, short
from satchel.tools.runner import LOOP, THREAD, Runner, resolved
from satchel.tools.schema_validator import SchemaValidator
from satchel.tools.signatures import (
    Parameter,
    is_context,
    name_and_docstring,
    partial_arguments,
    signature_of,
    where,
)
from satchel.tools.state_fields import StateField, bind_values, state_fields
from satchel.tools.tool_call import ToolCall
from satchel.tools.tool_context import ToolContext
from satchel.tools.tool_decorator import ToolOptions, given_options, options_of, require_parameters
from satchel.tools.tool_examples import validate_examples
from satchel.tools.type_schemas import output_schema

if TYPE_CHECKING:
    from pydantic import BaseModel

CallValues = Callable[[ToolContext], Mapping[str, Any]]
"""Returns the injected values of one call."""


class FunctionTool(Tool):
    """A tool that calls a function with validated arguments.

    Options here take precedence over those of `@tool`, and those over the function's own name and
    docstring.
    """

    def __init__(self, fn: Callable[..., Any], **options: Unpack[ToolOptions]) -> None:
        """Raise `DefinitionError` for a function that no model could call."""
        if isinstance(fn, type) or not callable(fn):
            raise DefinitionError(f"a tool needs a function, not {type(fn).__name__!r}")
        chosen = {**(options_of(fn) or {}), **given_options(options)}
        option = chosen.get
        place = where(fn)
        own_name, docstring = name_and_docstring(fn)
        description, parameter_descriptions = read_docstring(docstring)
        if not option("include_long_description", True):
            description = short(description)
        description = option("description", description)
        self.fn = fn
        self.name = check_name(option("name", own_name), place)
        self.group = option("group")
        self.timeout = _check_timeout(option("timeout"), place)
        self.idempotent = bool(option("idempotent"))
        self.remember = _check_remember(option("remember", "turn"), place)
        self.background = bool(option("background"))
        self.runner_name = str(option("runner", ""))
        self.annotations = _check_annotations(option("annotations"), place)
        self.examples = validate_examples(option("examples"), place)
        self.postprocess, parameters = option("postprocess"), option("parameters")
        if self.postprocess is not None and not callable(self.postprocess):
            raise DefinitionError("postprocess must be a function", where=place)
        if parameters is not None and not isinstance(parameters, Mapping):
            raise DefinitionError("parameters must be a JSON Schema", where=place)
        if not isinstance(description, str):
            raise DefinitionError("the description of a tool must be a string", where=place)
        # Some providers refuse an empty description, and models ignore such a tool.
        self.description = visible(description) or sentence_of(self.name)
        self._signature = signature_of(fn)
        self.runner = _runner_of(fn, option("blocking"))
        self._contexts = tuple(p.name for p in self._signature.parameters if is_context(fn, p))
        names, presets = option("state", ()), option("presets", {})
        require_parameters(fn, names, "state names")
        require_parameters(fn, presets, "presets name")
        self._injected: Mapping[str, Any] = MappingProxyType(dict(presets))
        self._fields = state_fields(fn, self._signature, names)
        self._fields_with_defaults = tuple(
            field for field in self._fields if field.default is not None
        )
        self._parameter_descriptions = parameter_descriptions
        self._include_variadic = (option("include_var_positional"), option("include_var_keyword"))
        self._model: type[BaseModel] | None = None
        self._call_value_names: frozenset[str] = frozenset()
        self._get_call_values: CallValues | None = None
        self._add_defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
        self._given_schema = parameters
        self._update_schema()

    @cached_property
    def output(self) -> Mapping[str, Any] | None:  # type: ignore[override] # made on first access
        """JSON Schema of the function's return type, if it is of type object."""
        return output_schema(self.fn)

    @property
    def hidden(self) -> frozenset[str]:
        """Return the names of the parameters that only the host sets."""
        fields = (field.name for field in self._fields)
        return self._signature.bound.union(
            self._injected, self._contexts, fields, self._call_value_names
        )

    @property
    def injected(self) -> Mapping[str, Any]:
        """Return the values of hidden parameters; they may be secrets."""
        defaults = {p.name: p.parameter.default for p in self._fields if not p.required}
        return {**defaults, **partial_arguments(self.fn), **self._injected}

    @property
    def wants_context(self) -> bool:
        """Return whether a call needs its context."""
        return self.takes_context or self._get_call_values is not None

    @property
    def open_parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters without a fixed value."""
        excluded = self.fixed_parameters.union(self._contexts)
        return tuple(item for item in self._signature.parameters if item.name not in excluded)

    @property
    def fixed_parameters(self) -> frozenset[str]:
        """Return the names of the parameters that have the same value in every call."""
        return self.hidden.difference(self._call_value_names, self._contexts)

    @property
    def takes_kwargs(self) -> bool:
        """Return whether the function has `**kwargs`."""
        return self._signature.var_keyword is not None

    @property
    def takes_context(self) -> bool:
        """Return whether the function has a parameter for the context of its call."""
        return bool(self._contexts)

    @property
    def is_extended(self) -> bool:
        """Return whether it also takes the fields of an added model."""
        return self._model is not None

    @property
    def missing(self) -> tuple[StateField, ...]:
        """Return the state fields that have neither a value nor a default."""
        bound = self._signature.bound.union(self._injected)
        return tuple(f for f in self._fields if f.required and f.name not in bound)

    @property
    def state(self) -> tuple[StateField, ...]:
        """Return the state fields without a value."""
        return tuple(field for field in self._fields if field.name not in self._injected)

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and coerce arguments. Raises `ArgumentError`."""
        if self._schema_validator is None:
            return self._own_arguments.check(self.name, arguments)
        arguments = self._add_defaults(self._schema_validator.check(self.name, arguments))
        if self._signature.var_keyword is None:
            return self._own_arguments.check(self.name, arguments)
        # Arguments of the schema that are not in the signature go into `**kwargs`.
        names = self._own_arguments.names
        own = {name: value for name, value in arguments.items() if name in names}
        in_kwargs = {name: value for name, value in arguments.items() if name not in names}
        return self._own_arguments.check(self.name, own) | in_kwargs

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
        """Return the function with its checked arguments and the injected values."""
        if self._fields_with_defaults:
            defaults = {field.name: field.made_default() for field in self._fields_with_defaults}
            arguments = {**arguments, **defaults}
        if self._get_call_values is not None:
            arguments = {**arguments, **self._get_call_values(context)}
        if self._injected or self._contexts:
            arguments = {**arguments, **dict.fromkeys(self._contexts, context), **self._injected}
        fn = self.fn
        if self._needs_positional:
            positional, named = self._signature.split_arguments(arguments, self._shown_variadic)
            return lambda: fn(*positional, **named)
        return lambda: fn(**arguments)

    async def execute(self, /, **arguments: Any) -> Any:
        """Check the arguments, call the function, and return its result or a list of its chunks.

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
        outcome = await resolved(self.runner.run(call))
        return [chunk async for chunk in outcome] if is_stream(outcome) else outcome

    def with_state(self, values: Mapping[str, Any], fix: str = "") -> "FunctionTool":
        """Return a copy with copies of these values in its state fields.

        `fix` is that of the error for a missing value. Raises `DefinitionError` for a field
        without value and default, and for a value that is invalid or cannot be copied.
        """
        if not self._fields:
            return self
        return self.with_injected(bind_values(self.fn, self.state, values, fix))

    def with_injected(self, values: Mapping[str, Any]) -> "FunctionTool":
        """Return a copy that also passes these values, which no model can set."""
        tool = copy(self)
        new_names = values.keys() - self.hidden
        tool._injected = MappingProxyType({**self._injected, **values})  # noqa: SLF001
        if new_names:
            tool._update_schema()  # noqa: SLF001
        return tool

    def with_call_values(
        self,
        names: Iterable[str],
        get_values: CallValues,
        *,
        description: str,
        parameters: Mapping[str, Any],
        add_defaults: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    ) -> "FunctionTool":
        """Return a copy with another description and schema, and with values for each call.

        `get_values` returns the values of `names` when a call begins; no model can set them.
        `add_defaults` adds the defaults of arguments that the model left out.
        """
        tool = copy(self)
        tool._call_value_names, tool._get_call_values = frozenset(names), get_values  # noqa: SLF001
        tool._given_schema, tool._add_defaults = parameters, add_defaults  # noqa: SLF001
        tool.description = visible(description)
        if tool.idempotent:
            # The values may differ in each call, so results cannot be remembered.
            tool.idempotent = not tool._call_value_names  # noqa: SLF001
            tool.annotations = {"idempotentHint": True, **(self.annotations or {})}
        tool._update_schema()  # noqa: SLF001
        return tool

    def extended(self, model: "type[BaseModel] | None") -> "FunctionTool":
        """Return a copy that also takes the fields of a model, passed as `**kwargs`."""
        if model is not None and self._signature.var_keyword is None:
            raise DefinitionError(
                f"tool {self.name!r} takes no further arguments",
                where=where(self.fn),
                fix="add **kwargs to the function",
            )
        if model is not None and self._schema_validator is not None:
            raise DefinitionError(
                f"tool {self.name!r} has its own schema",
                where=where(self.fn),
                fix="add the fields to that schema",
            )
        tool = copy(self)
        tool._model = model  # noqa: SLF001
        tool._update_schema()  # noqa: SLF001
        return tool

    def _update_schema(self) -> None:
        """Set the attributes that depend on which parameters the model sees."""
        hidden, signature = self.hidden, self._signature
        variadic = zip(
            (signature.var_positional, signature.var_keyword), self._include_variadic, strict=True
        )
        self._shown_variadic = tuple(
            item for item, shown in variadic if item and shown and item.name not in hidden
        )
        self._needs_positional = bool(self._shown_variadic) or signature.has_positional_only
        shown = [item for item in signature.parameters if item.name not in hidden]
        self._own_arguments = ArgumentModel(
            self.fn,
            [*shown, *self._shown_variadic],
            self._parameter_descriptions,
            hidden=hidden,
            reserved=signature.names,
            added_model=self._model,
        )
        self.parameters = self._own_arguments.schema
        self._schema_validator: SchemaValidator | None = None
        if self._given_schema is not None:
            forbidden_names = hidden | signature.taken
            self._schema_validator = SchemaValidator(
                self._given_schema, where(self.fn), forbidden_names
            )
            # A copy: callers may change it, and the validator still reads the schema.
            self.parameters = self._given_schema = deepcopy(self._schema_validator.schema)


def set_extended_model(tool: Tool, model: "type[BaseModel] | None") -> Tool:
    """Return a tool that also takes the fields of a pydantic model; `None` removes them.

    Raises `DefinitionError` for a tool without `**kwargs`, and for a field that the tool has.
    """
    if not isinstance(tool, FunctionTool):
        raise DefinitionError(
            f"tool {tool.name!r} is not a FunctionTool", fix="describe its parameters in its class"
        )
    if model is not None and not _has_fields(model):
        raise DefinitionError(
            f"tool {tool.name!r} can only be extended by a pydantic model with fields",
            fix="pass the class, a subclass of BaseModel",
        )
    return tool.extended(model)


def _has_fields(model: Any) -> bool:
    from pydantic import BaseModel, RootModel

    return (
        isinstance(model, type)
        and issubclass(model, BaseModel)
        and not issubclass(model, RootModel)
    )


def as_tool(tool: Any) -> Tool:
    """Return a tool as it is, or a `FunctionTool` for another callable."""
    if not isinstance(tool, Tool):
        return FunctionTool(tool)
    place = f"tool of class {type(tool).__qualname__}"
    check_name(getattr(tool, "name", ""), place)
    validate_examples(tool.examples, place)
    tool.validate()
    return tool


def tools_in(namespace: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the callables with `@tool` and the `Tool` instances with a public name, in order.

    A wrapper has the options of the function that it wraps; of both, only the first is returned.
    """
    tools: dict[int, Any] = {}
    for name, value in namespace.items():
        if not name.startswith("_") and (identity := _identity(value)) is not None:
            tools.setdefault(id(identity), value)
    return tuple(tools.values())


def _identity(value: Any) -> object | None:
    """Return the object that is the same for all aliases of a tool; `None` for other values."""
    try:
        if isinstance(value, Tool):
            return value
    except Exception:
        return None  # a lazy proxy may raise when its class is read
    return options_of(value)


def check_name(name: Any, place: str) -> str:
    """Return the name of a tool. Raises `DefinitionError` for one that providers reject."""
    if not isinstance(name, str):
        raise DefinitionError("the name of a tool must be a string", where=place)
    if fault := tool_name_fault(name):
        raise DefinitionError(
            f"the tool name {name!r} {fault}", where=place, fix="set another one with name="
        )
    return name


def _check_timeout(timeout: float | None, place: str) -> float | None:
    # Not "timeout <= 0": NaN would pass.
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise DefinitionError(
            f"timeout must be a positive number of seconds, not {timeout}", where=place
        )
    return timeout


def _check_remember(remember: Any, place: str) -> Literal["turn", "session"]:
    if remember in {"turn", "session"}:
        return cast(Literal["turn", "session"], remember)
    raise DefinitionError(
        f"remember must be 'turn' or 'session', not {remember!r}",
        where=place,
        fix="leave it out: answers are remembered for one turn of the user",
    )


def _runner_of(fn: Callable[..., Any], blocking: bool | None) -> Runner:
    """Return where a function runs: in a thread if it may block, else on the event loop."""
    if runs_on_loop(fn):
        if blocking is not None:
            raise DefinitionError(
                "blocking is only for functions that are neither async nor generators",
                where=where(fn),
                fix="leave it out",
            )
        return LOOP
    return LOOP if blocking is False else THREAD


def _check_annotations(annotations: Any, place: str) -> Mapping[str, Any] | None:
    if annotations is None:
        return None
    if not isinstance(annotations, Mapping):
        raise DefinitionError(
            "annotations must be a mapping",
            where=place,
            fix='for instance annotations={"readOnlyHint": True}',
        )
    return MappingProxyType(dict(annotations))
