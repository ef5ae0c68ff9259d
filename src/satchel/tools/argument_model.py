"""The arguments of a callable: their JSON Schema for the model, and their validation."""

import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from satchel.errors import DefinitionError
from satchel.tools.argument_errors import SET_BY_HOST, ArgumentError, ArgumentFault
from satchel.tools.dialects import without_nulls
from satchel.tools.signatures import REQUIRED, Parameter, resolve_annotation, where
from satchel.tools.tool_results import to_json
from satchel.tools.type_schemas import schema_of

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter, ValidationError

_SEPARATE = "is a separate argument; send it outside this object, or leave it out"


class ArgumentModel:
    """Schema and validation of the arguments that a model may send to one callable."""

    def __init__(
        self,
        fn: Callable[..., Any],
        parameters: Iterable[Parameter],
        descriptions: Mapping[str, str],
        *,
        hidden: Iterable[str] = (),
        reserved: Iterable[str] = (),
        added_model: "type[BaseModel] | None" = None,
    ) -> None:
        """Describe parameters.

        `hidden` are the names that only the host may set, and `reserved` further names that are not
        allowed in `**kwargs`. `added_model` is a pydantic model of additional arguments.
        """
        from pydantic import ValidationError

        shown = tuple(parameters)
        self.names = frozenset(item.name for item in shown)
        """The names of the parameters, without those of the added model."""
        self._hidden = frozenset(hidden)
        self._added_model = added_model
        self._added_names = _sent_names(fn, added_model) if added_model else {}
        self._sent_added_names = frozenset(self._added_names.values())
        self._reserved = self._hidden.union(reserved, self.names)
        self._refuse_clashes(fn)
        fields = {item.name: _field(fn, item) for item in shown}
        adapter = _build_adapter(fn, shown, fields)
        self.schema = _build_schema(fn, adapter, fields, added_model, self._added_names)
        _add_descriptions(self.schema["properties"], shown, descriptions)
        self._require_json(fn)
        # Looked up once, not in each call.
        self._invalid = ValidationError
        self._validate: Callable[[Any], dict[str, Any]] = adapter.validator.validate_python
        self._var_keywords = [item.name for item in shown if item.holds is dict]
        self._is_plain = added_model is None and not self._var_keywords

    def check(self, tool: str, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return validated and coerced arguments, without those that were not sent.

        Raises `ArgumentError`.
        """
        if self._is_plain:  # fast path for nearly all calls
            try:
                return self._validate(sent)
            except self._invalid:
                pass  # The faults are reported below.
        values, faults = self._validate_all(sent)
        if faults:
            # Models send `null` for arguments that they leave out.
            values, remaining = self._validate_all(without_nulls(self.schema, sent))
            if remaining:  # report the faults of what was sent
                raise ArgumentError(tool, faults)
        return values

    def _validate_all(self, sent: Mapping[str, Any]) -> tuple[dict[str, Any], list[ArgumentFault]]:
        # Returned, not raised: the cause of an exception would quote values, maybe secrets.
        added: dict[str, Any] = {}
        faults: list[ArgumentFault] = []
        if self._added_model is not None:
            sent_added = {
                name: value for name, value in sent.items() if name in self._sent_added_names
            }
            sent = {
                name: value for name, value in sent.items() if name not in self._sent_added_names
            }
            try:
                model = self._added_model.model_validate(sent_added)
                added = {name: getattr(model, name) for name in self._added_names}
            except self._invalid as problem:
                faults += _faults(problem, self._hidden)
        try:
            values = self._validate(sent)
        except self._invalid as problem:
            return {}, [*_faults(problem, self._hidden), *faults]
        for name in self._var_keywords:
            faults += self._misplaced(name, values.get(name, {}))
        return values | added, faults

    def _misplaced(self, name: str, values: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return faults for names in `**kwargs` that other parameters have."""
        return [
            ArgumentFault(f"{name}.{key}", SET_BY_HOST if key in self._hidden else _SEPARATE)
            for key in values
            if key in self._reserved or key in self._added_names
        ]

    def _refuse_clashes(self, fn: Callable[..., Any]) -> None:
        # Neither the names that are sent nor the names of the fields may clash.
        if both := self._reserved & self._sent_added_names.union(self._added_names):
            raise DefinitionError(
                f"the added model and the function both have {', '.join(sorted(both))}",
                where=where(fn),
                fix="rename the fields of the model",
            )

    def _require_json(self, fn: Callable[..., Any]) -> None:
        try:
            json.dumps(self.schema, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as problem:
            raise DefinitionError(
                "its schema contains a value that JSON cannot represent",
                where=where(fn),
                fix="check the bounds, examples and descriptions of Field",
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
        f"the alias of the field {name!r} of the added model is a path",
        where=where(fn),
        fix="set an alias that is a name",
    )


def _build_adapter(
    fn: Callable[..., Any], parameters: Iterable[Parameter], fields: dict[str, Any]
) -> "TypeAdapter[dict[str, Any]]":
    try:
        return _typed_dict(fields)
    except Exception as problem:
        raise _unsupported_type(fn, parameters, problem) from problem


def _typed_dict(fields: dict[str, Any]) -> "TypeAdapter[dict[str, Any]]":
    """Return an adapter for a dictionary with these keys; unlike a model, it accepts any name."""
    import typing_extensions  # that of `typing` only works from Python 3.12 on
    from pydantic import ConfigDict, TypeAdapter

    typed_dict: Any = typing_extensions.TypedDict
    kind = typed_dict("Arguments", fields)
    kind.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    return TypeAdapter(kind)


def _field(fn: Callable[..., Any], parameter: Parameter) -> Any:
    """Return the type of a parameter, with what its `Field` says."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    try:
        annotation = resolve_annotation(fn, parameter)
    except Exception as problem:
        raise DefinitionError(
            f"the annotation of parameter {parameter.name!r} cannot be resolved",
            where=where(fn),
            fix="use names that exist in the function's module when the tool is created",
        ) from problem
    default, is_required = parameter.default, parameter.is_required
    if isinstance(default, FieldInfo):  # `city: str = Field(...)`
        annotation, is_required = Annotated[annotation, default], default.is_required()
    annotation = Annotated[annotation, Field(alias=parameter.name)]  # an own alias has no effect
    return annotation if is_required else NotRequired[annotation]


def _has_plain_default(parameter: Parameter) -> bool:
    from pydantic.fields import FieldInfo

    return parameter.default is not REQUIRED and not isinstance(parameter.default, FieldInfo)


def _build_schema(
    fn: Callable[..., Any],
    adapter: "TypeAdapter[dict[str, Any]]",
    fields: dict[str, Any],
    added_model: "type[BaseModel] | None",
    added: Mapping[str, str],
) -> dict[str, Any]:
    try:
        if added_model is not None:  # in one schema, so that both share one `$defs`
            adapter = _typed_dict(fields | _added_fields(added_model, added))
        return schema_of(adapter)
    except Exception as problem:
        raise DefinitionError(
            "a parameter has a type that no JSON Schema describes", where=where(fn)
        ) from problem


def _added_fields(model: "type[BaseModel]", names: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kind: Any = Annotated[field.annotation, _with_alias(field, names[name])]
        fields[names[name]] = kind if field.is_required() else NotRequired[kind]
    return fields


def _with_alias(field: Any, name: str) -> Any:
    renamed = copy(field)
    renamed.alias = renamed.validation_alias = renamed.serialization_alias = name
    return renamed


def _add_descriptions(
    properties: dict[str, Any], parameters: Iterable[Parameter], descriptions: Mapping[str, str]
) -> None:
    """Add defaults, and the docstring's descriptions where the annotation has none."""
    for item in parameters:
        schema = properties[item.name]
        if text := descriptions.get(item.name):
            schema.setdefault("description", text)
        if _has_plain_default(item):
            # A default that JSON cannot represent still works; the model does not see it.
            try:
                schema["default"] = json.loads(to_json(item.default))
            except Exception:
                schema.pop("default", None)


def _unsupported_type(
    fn: Callable[..., Any], parameters: Iterable[Parameter], problem: Exception
) -> DefinitionError:
    """Return an error that names the first parameter whose type pydantic does not support."""
    from pydantic import PydanticUserError, TypeAdapter

    for item in parameters:
        try:
            TypeAdapter(resolve_annotation(fn, item))
        except Exception as reason:
            fix = "pass its value as a preset, or use a type that pydantic supports"
            if isinstance(reason, PydanticUserError) and reason.code != "schema-for-unknown-type":
                fix = reason.message  # such as: use another TypedDict before Python 3.12
            return DefinitionError(
                f"parameter {item.name!r} has a type that a model cannot send",
                where=where(fn),
                fix=fix,
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
        case "union_tag_invalid":  # pydantic's message quotes the tag that was sent
            return "{discriminator} should be one of {expected_tags}".format_map(error["ctx"])
    return str(error["msg"]).replace("Input should", "should", 1)
