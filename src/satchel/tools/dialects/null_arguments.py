"""What a model in strict mode sends for a parameter that it leaves out: `null`."""

from collections.abc import Mapping
from typing import Any

from satchel.tools.dialects.object_schemas import properties_of, required_of, unfolded
from satchel.tools.dialects.schema_types import allows_null, branches_of
from satchel.tools.dialects.schema_walk import Walk, run_walk


def without_nulls(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out each `null` that the schema does not allow and that may be left out.

    Nothing else is judged, and the arguments that are given are not changed.
    """
    made: dict[str, Any] = run_walk(_cleaned(arguments, [parameters], parameters))
    return made


def _cleaned(value: Any, schemas: list[Any], root: Mapping[str, Any]) -> Walk:
    choices = _choices(schemas, root)
    if isinstance(value, Mapping):
        return (yield _object(value, choices, root))
    if isinstance(value, list):
        items = [choice["items"] for choice in choices if "items" in choice]
        made = []
        for item in value:
            made += [(yield _cleaned(item, items, root))]
        return made
    return value


def _object(
    value: Mapping[str, Any], choices: list[dict[str, Any]], root: Mapping[str, Any]
) -> Walk:
    made: dict[str, Any] = {}
    for name, item in value.items():
        owners = [choice for choice in choices if name in properties_of(choice)]
        schemas = [owner["properties"][name] for owner in owners]
        if item is None and owners and not any(name in required_of(owner) for owner in owners):
            if any(schema is True or allows_null(schema, root) for schema in schemas):
                made[name] = None
            continue
        made[name] = yield _cleaned(item, schemas, root)
    return made


def _choices(schemas: list[Any], root: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas that a value may be of, unions taken apart."""
    made, todo, seen = [], list(schemas), set()
    while todo:
        flat, refs = unfolded(todo.pop(0), root)
        if not refs or refs not in seen:  # a union may contain itself
            seen.add(refs)
            made.append(flat)
            todo += branches_of(flat)
    return made
