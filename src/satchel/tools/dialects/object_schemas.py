"""What stands at the top of a tool's schema: providers want one plain object there."""

from collections.abc import Iterable, Mapping
from typing import Any

from satchel.tools.dialects.schema_refs import target_of
from satchel.tools.dialects.schema_types import branches_of, members
from satchel.tools.dialects.schema_walk import shown

_COMBINING = frozenset({"allOf", "anyOf", "const", "enum", "not", "oneOf"})


def object_schema(parameters: Any) -> dict[str, Any]:
    """Copy a tool's schema and make its top an object with properties, if it is none.

    A reference or a union at the top, which several providers answer with a refusal of the whole
    request, becomes the one object that allows all that it allowed.
    """
    copy = shown(parameters)
    root = copy if isinstance(copy, dict) else {}
    if "$ref" in root or _COMBINING & root.keys():
        root = shown(_united(root))  # a copy, so that no part stands in it twice
    root["type"] = "object"
    if not isinstance(root.get("properties"), dict):
        root["properties"] = {}
    return root


def unfolded(schema: Any, root: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Merge a schema with what it refers to and with its `allOf`; also say what it referred to.

    What stands nearer wins.
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
    """Merge schemas that hold at once: all their properties, else the first to say a thing."""
    made: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                known = properties_of(made)
                made[key] = {**known, **value, **known}
            elif key == "required" and isinstance(value, list):
                made[key] = [*members(made, key), *value]
            else:
                made.setdefault(key, value)
    return made


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that a schema names."""
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the properties that must be there, each once."""
    names = [name for name in members(schema, "required") if isinstance(name, str)]
    return list(dict.fromkeys(names))


def _united(root: dict[str, Any]) -> dict[str, Any]:
    base, _ = unfolded(root, root)
    branches = [unfolded(branch, root)[0] for branch in branches_of(base)]
    made = {key: value for key, value in base.items() if key not in _COMBINING}
    own = properties_of(base)
    made["properties"] = {**own, **_alternatives(branches), **own}
    needed = [required_of(branch) for branch in branches]
    common = [name for name in needed[0] if all(name in one for one in needed)] if needed else []
    made["required"] = [*required_of(base), *common]
    return made


def _alternatives(branches: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Give each property all the schemas that it has in one branch or another."""
    found: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in properties_of(branch).items():
            choices = found.setdefault(name, [])
            if schema not in choices:
                choices.append(schema)
    return {
        name: choices[0] if len(choices) == 1 else {"anyOf": choices}
        for name, choices in found.items()
    }
