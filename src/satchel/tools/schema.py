"""From a callable's parameters to the JSON Schema that the model reads, by pydantic."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from satchel.errors import DefinitionError
from satchel.tools.arguments import ArgumentError, ArgumentFault
from satchel.tools.results import to_json
from satchel.tools.signature import REQUIRED, Parameter, resolved, where

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.json_schema import GenerateJsonSchema


class Arguments:
    """The arguments that a model may send to one callable: their schema, and their check."""

    def __init__(
        self,
        fn: Callable[..., Any],
        parameters: Iterable[Parameter],
        texts: Mapping[str, str],
    ) -> None:
        # Fields get names of ours and parameters are their aliases, since a parameter may be
        # called what pydantic forbids: `_x`, `model_config`, `schema`, `copy`.
        self._fields = {f"p{at}": item for at, item in enumerate(parameters)}
        self._model = _model(fn, self._fields)
        self.schema = _schema(fn, self._model)
        _describe(self.schema["properties"], self._fields.values(), texts)
        self._refuse_no_json(fn)

    def check(self, tool: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Validate and coerce what was sent; a parameter left to its default is left out."""
        from pydantic import ValidationError

        try:
            checked = self._model.model_validate(sent)
        except ValidationError as problem:
            # The cause quotes the values that were sent, and they may be secrets.
            raise ArgumentError(tool, _faults(problem)) from None
        values, given = vars(checked), checked.model_fields_set
        return {
            item.name: values[key]
            for key, item in self._fields.items()
            if key in given or not _has_plain_default(item)
        }

    def _refuse_no_json(self, fn: Callable[..., Any]) -> None:
        try:
            json.dumps(self.schema, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as problem:
            raise DefinitionError(
                "its schema holds something that JSON cannot carry",
                where=where(fn),
                fix="look at the bounds, examples and descriptions given to Field",
            ) from problem


def _model(fn: Callable[..., Any], fields: Mapping[str, Parameter]) -> "type[BaseModel]":
    from pydantic import ConfigDict, create_model

    definitions: dict[str, Any] = {key: _field(fn, item) for key, item in fields.items()}
    try:
        return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **definitions)
    except Exception as problem:
        raise _undescribable(fn, fields.values(), problem) from problem


def _field(fn: Callable[..., Any], parameter: Parameter) -> tuple[Any, Any]:
    from pydantic import Field

    try:
        annotation = resolved(fn, parameter)
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


def _schema(fn: Callable[..., Any], model: "type[BaseModel]") -> dict[str, Any]:
    try:
        schema = model.model_json_schema(schema_generator=_untitled_generator())
    except Exception as problem:
        raise DefinitionError(
            "a parameter has a type that no JSON Schema describes", where=where(fn)
        ) from problem
    for definition in schema.get("$defs", {}).values():
        # The title of an enum is its name, and comes from where the generator cannot be told.
        if "enum" in definition:
            definition.pop("title", None)
    return schema


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
            TypeAdapter(resolved(fn, item))
        except Exception:
            return DefinitionError(
                f"parameter {item.name!r} has a type that no model can fill in",
                where=where(fn),
                fix="give its value as a preset, or annotate it with a type of pydantic's",
            )
    return DefinitionError(f"its parameters cannot be described: {problem}", where=where(fn))


def _faults(problem: "ValidationError") -> list[ArgumentFault]:
    return [
        ArgumentFault(_path(error["loc"]), _expected(error["type"], error["msg"]))
        for error in problem.errors(include_url=False, include_input=False, include_context=False)
    ]


def _path(location: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _expected(kind: str, message: str) -> str:
    match kind:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "there is no such argument"
    return message.replace("Input should", "should", 1)


@cache
def _untitled_generator() -> "type[GenerateJsonSchema]":
    """Return a generator that leaves out the titles pydantic makes up of names.

    A title that an author wrote stays, and so does a property that is called `title`.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, _schema: Any) -> bool:
            return False

        def model_schema(self, schema: Any) -> dict[str, Any]:
            return _without_title(super().model_schema(schema), schema["cls"])

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:
            return _without_title(super().dataclass_schema(schema), schema["cls"])

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
            return _without_title(super().typed_dict_schema(schema), schema.get("cls"))

    return Untitled


def _without_title(schema: dict[str, Any], cls: Any) -> dict[str, Any]:
    if schema.get("title") == getattr(cls, "__name__", None):
        schema.pop("title", None)
    return schema
