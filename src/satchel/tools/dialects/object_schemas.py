"""Convert the top level of a tool's schema to one plain object, as providers require."""

from collections.abc import Iterable, Mapping
from typing import Any

from satchel.tools.dialects.schema_refs import target_of
from satchel.tools.dialects.schema_types import branches_of, members
from satchel.tools.dialects.schema_walk import shown

_COMBINING = frozenset({"allOf", "anyOf", "const", "enum", "not", "oneOf"})


def object_schema(parameters: Any) -> dict[str, Any]:
    """Return a copy of a tool's schema whose top level is an object with properties.

    Several providers refuse a reference or a union at the top level; it becomes one object that
    allows every value that it allowed.
    """
    copy = shown(parameters)
    root = copy if isinstance(copy, dict) else {}
    if "$ref" in root or _COMBINING & root.keys():
        root = shown(_flatten_root(root))  # a copy, so that no part occurs in it twice
    root["type"] = "object"
    if not isinstance(root.get("properties"), dict):
        root["properties"] = {}
    return root


def unfolded(schema: Any, root: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Merge a schema with its `$ref` targets and its `allOf`; return it and the references.

    Outer keywords take precedence.
    """
    parts: list[Mapping[str, Any]] = []
    refs: list[str] = []
    todo = [schema]
    while todo:
        part = todo.pop(0)
        if not isinstance(part, Mapping):
            continue
        parts.append({key: part[key] for key in part if key not in {"$ref", "allOf"}})
        nearest = members(part, "allOf")
        ref = part.get("$ref")
        if isinstance(ref, str) and ref not in refs:
            refs.append(ref)
            nearest = [target_of(ref, root), *nearest]
        todo = [*nearest, *todo]
    return merged(parts), tuple(refs)


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge schemas that all apply: properties are combined, other keywords come from the first."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                properties = properties_of(result)
                result[key] = {**properties, **value, **properties}
            elif key == "required" and isinstance(value, list):
                result[key] = [*members(result, key), *value]
            else:
                result.setdefault(key, value)
    return result


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a schema by name."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the required properties, each once."""
    names = [name for name in members(schema, "required") if isinstance(name, str)]
    return list(dict.fromkeys(names))


def _flatten_root(root: dict[str, Any]) -> dict[str, Any]:
    base, _ = unfolded(root, root)
    branches = [unfolded(branch, root)[0] for branch in branches_of(base)]
    flat = {key: value for key, value in base.items() if key not in _COMBINING}
    own = properties_of(base)
    flat["properties"] = {**own, **_branch_properties(branches), **own}
    required = [required_of(branch) for branch in branches]
    first = required[0] if required else []
    common = [name for name in first if all(name in names for names in required)]
    flat["required"] = [*required_of(base), *common]
    return flat


def _branch_properties(branches: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the properties of all branches; one with several schemas gets `anyOf`."""
    schemas: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in properties_of(branch).items():
            choices = schemas.setdefault(name, [])
            if schema not in choices:
                choices.append(schema)
    return {
        name: choices[0] if len(choices) == 1 else {"anyOf": choices}
        for name, choices in schemas.items()
    }
