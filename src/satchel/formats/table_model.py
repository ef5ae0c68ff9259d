"""Models of the tables that people write: faults become messages, and models JSON Schemas."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from satchel.errors import DefinitionError
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


def read_table(model: type[TableT], values: Mapping[str, Any]) -> TableT:
    """Return a table as its model. Raises `DefinitionError` with the first fault."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    fields = {str(item.alias): item.metadata for item in model.model_fields.values()}
    key = str(first["loc"][0])
    if key not in fields:
        near = near_misses(key, fields)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DefinitionError(f"its key {key!r} is unknown{hint}")
    (expected,) = (item for item in fields[key] if isinstance(item, Expected))
    raise DefinitionError(f"its {key} {expected.text.format(first['input'])}")


def table_schema(model: type[TableModel]) -> dict[str, Any]:
    """Return the JSON Schema of a table. A key without a value is left out, so nothing is null."""
    schema = model.model_json_schema()
    properties = {key: _described(part) for key, part in schema["properties"].items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _described(part: dict[str, Any]) -> dict[str, Any]:
    part = {key: item for key, item in part.items() if key not in {"title", "default"}}
    if options := [item for item in part.pop("anyOf", ()) if item != {"type": "null"}]:
        part |= options[0] if len(options) == 1 else {"anyOf": options}
    if "pattern" in part:  # editors show this in its place
        part["patternErrorMessage"] = f"It is not valid here. Expected: {part['description']}"
    return part
