"""Remove each `null` that a model sends for an argument that it leaves out, as in strict mode."""

from collections.abc import Mapping
from typing import Any

from satchel.tools.dialects.object_schemas import properties_of, required_of, unfolded
from satchel.tools.dialects.schema_types import allows_null, branches_of
from satchel.tools.dialects.schema_walk import Walk, run_walk


def without_nulls(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy without each `null` of an optional argument that does not allow `null`."""
    cleaned: dict[str, Any] = run_walk(_clean(arguments, [parameters], parameters))
    return cleaned


def _clean(value: Any, schemas: list[Any], root: Mapping[str, Any]) -> Walk:
    choices = _choices(schemas, root)
    if isinstance(value, Mapping):
        return (yield _object(value, choices, root))
    if isinstance(value, list):
        item_schemas = [choice["items"] for choice in choices if "items" in choice]
        items = []
        for item in value:
            items += [(yield _clean(item, item_schemas, root))]
        return items
    return value


def _object(
    value: Mapping[str, Any], choices: list[dict[str, Any]], root: Mapping[str, Any]
) -> Walk:
    cleaned: dict[str, Any] = {}
    for name, item in value.items():
        owners = [choice for choice in choices if name in properties_of(choice)]
        schemas = [owner["properties"][name] for owner in owners]
        if item is None and owners and not any(name in required_of(owner) for owner in owners):
            if any(schema is True or allows_null(schema, root) for schema in schemas):
                cleaned[name] = None
            continue
        cleaned[name] = yield _clean(item, schemas, root)
    return cleaned


def _choices(schemas: list[Any], root: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas that a value may match, with each branch of a union."""
    choices, todo, seen = [], list(schemas), set()
    while todo:
        flat, refs = unfolded(todo.pop(0), root)
        if not refs or refs not in seen:  # a union may contain itself
            seen.add(refs)
            choices.append(flat)
            todo += branches_of(flat)
    return choices
