"""The arguments that a callable takes: what the model reads of them, and how they are checked."""

import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any

from satchel.errors import DefinitionError
from satchel.tools.argument_errors import SET_BY_HOST, ArgumentError, ArgumentFault
from satchel.tools.dialects import without_nulls
from satchel.tools.signatures import REQUIRED, Parameter, resolve_annotation, where
from satchel.tools.tool_results import to_json
from satchel.tools.type_schemas import schema_of

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


_BESIDE = "is no further argument; send it beside them or leave it out"


class ArgumentModel:
    """The arguments that a model may send to one callable: their schema, and their check."""

    def __init__(
        self,
        fn: Callable[..., Any],
        parameters: Iterable[Parameter],
        texts: Mapping[str, str],
        *,
        hidden: Iterable[str] = (),
        taken: Iterable[str] = (),
        more: "type[BaseModel] | None" = None,
    ) -> None:
        """Describe parameters.

        `hidden` names what only the host may set, `taken` what no further argument may be
        called, and `more` is a model of further arguments.
        """
        from pydantic import ValidationError

        # Fields get names of ours and parameters are their aliases, since a parameter may be
        # called what pydantic forbids: `_x`, `model_config`, `schema`, `copy`.
        self._fields = {f"p{at}": item for at, item in enumerate(parameters)}
        self._hidden = frozenset(hidden)
        self._more = more
        self._further = _sent_names(fn, more) if more else {}
        self._sent_further = frozenset(self._further.values())
        self._taken = self._hidden.union(taken, (item.name for item in self._fields.values()))
        self._refuse_clashes(fn)
        self._model = _model(fn, self._fields)
        self.schema = _schema(fn, self._model, more, self._further)
        _describe(self.schema["properties"], self._fields.values(), texts)
        self._refuse_no_json(fn)
        # Looked up once, not in each call.
        self._invalid = ValidationError
        self._validate = self._model.__pydantic_validator__.validate_python
        self._names = {key: item.name for key, item in self._fields.items()}
        self._always = [
            key
            for key, field in self._model.model_fields.items()
            if not field.is_required() and not _has_plain_default(self._fields[key])
        ]
        self._open = [item.name for item in self._fields.values() if item.holds is dict]
        self._is_plain = more is None and not self._open

    def check(self, tool: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and coerce what was sent; a parameter left to its default is left out.

        Raises `ArgumentError`.
        """
        if self._is_plain:  # as nearly all are, and nearly all calls fit
            try:
                return self._own(sent)
            except self._invalid:
                pass  # The faults are reported below.
        values, faults = self._tried(sent)
        if faults:
            # `null` is how models leave out what they need not send.
            slim = without_nulls(self.schema, sent)
            values, left = self._tried(slim)
            if left:  # What was sent is at fault, not what was made of it.
                raise ArgumentError(tool, faults)
        return values

    @property
    def names(self) -> frozenset[str]:
        """The names of the parameters, without those of the added model."""
        return frozenset(self._names.values())

    def _tried(self, sent: Mapping[str, Any]) -> tuple[dict[str, Any], list[ArgumentFault]]:
        # The faults are no exception: its cause would quote the values, which may be secrets.
        further: dict[str, Any] = {}
        faults: list[ArgumentFault] = []
        if self._more is not None:
            more = {name: value for name, value in sent.items() if name in self._sent_further}
            sent = {name: value for name, value in sent.items() if name not in self._sent_further}
            try:
                model = self._more.model_validate(more)
                further = {name: getattr(model, name) for name in self._further}
            except self._invalid as problem:
                faults += _faults(problem, self._hidden)
        try:
            values = self._own(sent)
        except self._invalid as problem:
            return {}, [*_faults(problem, self._hidden), *faults]
        for name in self._open:
            faults += self._misplaced(name, values.get(name, {}))
        return values | further, faults

    def _misplaced(self, name: str, values: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return what stands in `**kwargs` under a name that something else has."""
        return [
            ArgumentFault(f"{name}.{key}", SET_BY_HOST if key in self._hidden else _BESIDE)
            for key in values
            if key in self._taken or key in self._further
        ]

    def _own(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        checked = self._validate(sent)
        values, names = checked.__dict__, self._names
        arguments = {names[key]: values[key] for key in checked.__pydantic_fields_set__}
        for key in self._always:  # `city: str = Field("Oslo")`: only pydantic knows the default
            arguments.setdefault(names[key], values[key])
        return arguments

    def _refuse_clashes(self, fn: Callable[..., Any]) -> None:
        # Both the names that the model sends, and those that the function gets.
        if both := self._taken & self._sent_further.union(self._further):
            raise DefinitionError(
                f"the added model and the function both have {', '.join(sorted(both))}",
                where=where(fn),
                fix="rename the fields of the model",
            )

    def _refuse_no_json(self, fn: Callable[..., Any]) -> None:
        try:
            json.dumps(self.schema, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as problem:
            raise DefinitionError(
                "its schema holds something that JSON cannot carry",
                where=where(fn),
                fix="look at the bounds, examples and descriptions given to Field",
            ) from problem


def _sent_names(fn: Callable[..., Any], model: "type[BaseModel]") -> dict[str, str]:
    """Return the name under which each field of a model is sent."""
    return {name: _sent_name(fn, name, field) for name, field in model.model_fields.items()}


def _sent_name(fn: Callable[..., Any], name: str, field: Any) -> str:
    from pydantic import AliasChoices

    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), alias)
    if alias is None or isinstance(alias, str):
        return name if alias is None else alias
    raise DefinitionError(
        f"the field {name!r} of the added model is sent as a part of another value",
        where=where(fn),
        fix="give it an alias that is a name",
    )


def _model(fn: Callable[..., Any], fields: Mapping[str, Parameter]) -> "type[BaseModel]":
    from pydantic import ConfigDict, create_model

    definitions: dict[str, Any] = {key: _field(fn, item) for key, item in fields.items()}
    try:
        return create_model(
            "Arguments", __config__=ConfigDict(extra="forbid", allow_inf_nan=False), **definitions
        )
    except Exception as problem:
        raise _undescribable(fn, fields.values(), problem) from problem


def _field(fn: Callable[..., Any], parameter: Parameter) -> tuple[Any, Any]:
    from pydantic import Field

    try:
        annotation = resolve_annotation(fn, parameter)
    except Exception as problem:
        raise DefinitionError(
            f"the annotation of parameter {parameter.name!r} cannot be resolved",
            where=where(fn),
            fix="use names that exist in the function's module when the tool is made",
        ) from problem
    if _has_plain_default(parameter):
        # A stand-in: the function fills in its own default, so that it need not be one that
        # pydantic can copy, and stays the same object.
        return annotation, Field(default=None, alias=parameter.name)
    if parameter.default is not REQUIRED:  # `city: str = Field(...)`
        annotation = Annotated[annotation, parameter.default]
    return annotation, Field(alias=parameter.name)


def _has_plain_default(parameter: Parameter) -> bool:
    from pydantic.fields import FieldInfo

    return parameter.default is not REQUIRED and not isinstance(parameter.default, FieldInfo)


def _schema(
    fn: Callable[..., Any],
    model: "type[BaseModel]",
    more: "type[BaseModel] | None",
    further: Mapping[str, str],
) -> dict[str, Any]:
    try:
        shown = _joined(model, more, further) if more else model
        return schema_of(shown)
    except Exception as problem:
        raise DefinitionError(
            "a parameter has a type that no JSON Schema describes", where=where(fn)
        ) from problem


def _joined(
    model: "type[BaseModel]", more: "type[BaseModel]", names: Mapping[str, str]
) -> "type[BaseModel]":
    """Return a model with the fields of both, so that their definitions stand side by side."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = {
        f"m{at}": (field.annotation, _called(field, names[name]))
        for at, (name, field) in enumerate(more.model_fields.items())
    }
    config = ConfigDict(extra="forbid")
    own: dict[str, Any] = {
        key: (field.annotation, field) for key, field in model.model_fields.items()
    }
    return create_model("Arguments", __config__=config, **own, **fields)


def _called(field: Any, name: str) -> Any:
    """Return a field that is sent under one name."""
    named = copy(field)
    named.alias = named.validation_alias = named.serialization_alias = name
    return named


def _describe(
    properties: dict[str, Any], parameters: Iterable[Parameter], texts: Mapping[str, str]
) -> None:
    """Add the defaults, and the docstring's words where the annotation has none."""
    for item in parameters:
        about = properties[item.name]
        if text := texts.get(item.name):
            about.setdefault("description", text)
        if _has_plain_default(item):
            # A default that JSON cannot carry still works; the model just does not see it.
            try:
                about["default"] = json.loads(to_json(item.default))
            except Exception:
                about.pop("default", None)


def _undescribable(
    fn: Callable[..., Any], parameters: Iterable[Parameter], problem: Exception
) -> DefinitionError:
    """Find the parameter at fault by trying each alone."""
    from pydantic import TypeAdapter

    for item in parameters:
        try:
            TypeAdapter(resolve_annotation(fn, item))
        except Exception:
            return DefinitionError(
                f"parameter {item.name!r} has a type that no model can fill in",
                where=where(fn),
                fix="give its value as a preset, or annotate it with a type of pydantic's",
            )
    return DefinitionError(f"its parameters cannot be described: {problem}", where=where(fn))


def _faults(problem: "ValidationError", hidden: frozenset[str]) -> list[ArgumentFault]:
    return [
        ArgumentFault(_path(error["loc"]), _expected(error, hidden))
        for error in problem.errors(include_url=False, include_input=False)
    ]


def _path(location: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _expected(error: Mapping[str, Any], hidden: frozenset[str]) -> str:
    match error["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden" if error["loc"][0] in hidden:
            return SET_BY_HOST
        case "extra_forbidden":
            return "there is no such argument"
        case "union_tag_invalid":  # pydantic's own words quote the tag that was sent
            return "{discriminator} should be one of {expected_tags}".format_map(error["ctx"])
    return str(error["msg"]).replace("Input should", "should", 1)
