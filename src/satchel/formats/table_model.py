"""Models of the tables that people write: faults become messages, and models JSON Schemas."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from satchel.errors import DefinitionError
from satchel.formats.read_result import quoted
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses


class TableModel(BaseModel):
    """A table; its keys are the names of the fields with `-` for `_`. Nothing is converted."""

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"),
        extra="forbid",
        frozen=True,
        strict=True,
    )


TableT = TypeVar("TableT", bound=TableModel)


@dataclass(frozen=True, slots=True)
class Expected:
    """What is said of a field with another value, which may be shown at `{!r}`."""

    text: str


TEXT = Expected("must be a string")
LIST = Expected("must be a list of strings")
TABLE = Expected("must be a table of strings")


def checked(fault: Callable[[Any], str]) -> AfterValidator:
    """Return a check of a field; the function returns what is wrong with a value, or `""`."""

    def check(value: Any) -> Any:
        if reason := fault(value):
            raise ValueError(reason)
        return value

    return AfterValidator(check)


def read_table(model: type[TableT], values: Mapping[str, Any]) -> TableT:
    """Return a table as its model. Raises `DefinitionError` with the first fault."""
    table, faults = validated(model, values)
    if table is None:
        raise DefinitionError(f"its {next(iter(faults.values()))}")
    return table


def validated(
    model: type[TableT], values: Mapping[str, Any]
) -> tuple[TableT | None, Mapping[str, str]]:
    """Return a table as its model if it is valid, and one fault for each invalid key."""
    try:
        return model.model_validate(values), {}
    except ValidationError as error:
        fields = {str(item.alias): item.metadata for item in model.model_fields.values()}
        # Very many unknown keys are no typing errors, and comparing all of them is slow.
        names = fields if error.error_count() <= len(fields) else ()
        faults: dict[str, str] = {}
        for item in error.errors(include_url=False):
            key = str(item["loc"][0])
            faults[key] = faults.get(key) or _fault(fields, key, item, names)
        return None, faults


def _fault(fields: Mapping[str, Iterable[Any]], key: str, error: Any, names: Iterable[str]) -> str:
    if key not in fields:
        near = near_misses(key, names)
        return f"key {quoted(key)} is unknown" + (f"; did you mean {near[0]!r}?" if near else "")
    if error["type"] == "missing":
        return f"{key} is missing"
    if reason := error.get("ctx", {}).get("error"):
        return f"{key} {reason}"
    (expected,) = (item for item in fields[key] if isinstance(item, Expected))
    return f"{key} {expected.text.format(error['input'])}"


def table_schema(model: type[TableModel]) -> dict[str, Any]:
    """Return the JSON Schema of a table. A key without a value is left out, so nothing is null."""
    schema = model.model_json_schema()
    properties = {key: _described(part) for key, part in schema["properties"].items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **required}


def _described(part: dict[str, Any]) -> dict[str, Any]:
    part = {key: item for key, item in part.items() if key not in {"title", "default"}}
    if options := [item for item in part.pop("anyOf", ()) if item != {"type": "null"}]:
        part |= options[0] if len(options) == 1 else {"anyOf": options}
    if "pattern" in part:  # editors show this in its place
        part["patternErrorMessage"] = f"It is not valid here. Expected: {part['description']}"
    return part
