"""The table `[worker]` in the user's satchel.toml."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from satchel.formats.table_model import LIST, TEXT, Expected, TableModel, checked
from satchel.names import near_misses
from satchel.settings import Limits

_Count = Annotated[int, Field(gt=0)]
_LIMITS = MappingProxyType({item.name: type(item.default) for item in fields(Limits)})


def _limits_schema() -> dict[str, Any]:
    numbers = {
        name: {"type": "integer" if kind is int else "number", "exclusiveMinimum": 0}
        for name, kind in _LIMITS.items()
    }
    return {"type": "object", "properties": numbers, "additionalProperties": False}


def _limits_fault(values: Mapping[str, float]) -> str:
    for name, value in values.items():
        if name not in _LIMITS:
            near = near_misses(name, _LIMITS)
            return f"has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        if _LIMITS[name] is int and not isinstance(value, int):
            return f"has {name!r}, which must be a whole number"
    return ""


class WorkerTable(TableModel):
    """What `satchel worker` does without the options of the same names."""

    redis: Annotated[str, TEXT] = Field("", description="The URL of redis, as for --redis.")
    name: Annotated[str, TEXT, Field(min_length=1)] = Field(
        "satchel", description="The name that it has in common with the hosts."
    )
    key_file: Annotated[str, TEXT] = Field(
        "", description="The file with the key that hosts and workers share."
    )
    groups: Annotated[list[str], LIST] = Field(
        [], description="Run only the tools of these groups."
    )
    concurrency: Annotated[_Count, Expected("must be a whole number above 0, not {!r}")] = Field(
        10, description="Calls of one plugin at once."
    )
    group_limits: Annotated[
        dict[str, _Count], Expected("must map names of groups to whole numbers above 0")
    ] = Field({}, description="Calls of one group at once, of all plugins together.")
    limits: Annotated[
        dict[str, Annotated[int | Annotated[float, Field(allow_inf_nan=False)], Field(gt=0)]],
        WithJsonSchema(_limits_schema()),
        Expected("must map names of limits to numbers above 0"),
        checked(_limits_fault),
    ] = Field({}, description="Limits of its tools and plugins, such as tool_call = 600.")
