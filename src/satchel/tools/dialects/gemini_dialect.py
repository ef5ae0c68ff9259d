"""The shape that Gemini wants: a small part of OpenAPI's schemas, without references.

Fields: https://ai.google.dev/api/caching#Schema. An unknown field has the whole request refused;
so has, on Vertex, anything beside `anyOf`, and a schema without a type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from satchel.text import visible
from satchel.tools.dialects.gemini_fields import anything, fields_of, items_of
from satchel.tools.dialects.object_schemas import (
    object_schema,
    properties_of,
    required_of,
    unfolded,
)
from satchel.tools.dialects.schema_refs import name_of
from satchel.tools.dialects.schema_text import about, join_texts
from satchel.tools.dialects.schema_types import branches_of, types_of, values_of
from satchel.tools.dialects.schema_walk import DEEPEST, TooManyError, Walk, ordered, run_walk, shown
from satchel.tools.dialects.tool_shape import ToolShape

INLINED_SCHEMAS = 1_000
"""How many schemas may come in through references; then they are followed less deep."""

REPETITIONS = 2
"""How often a shape that contains itself is written out inside itself, the first time counted."""

_WALKS = 3
"""How many walks one schema takes: `_node`, `_alternatives`, `_typed`."""

_DEEPEST_SHOWN = DEEPEST - 6
"""Below it there is still room for what stands for a schema that is not shown."""

_DEPTHS = (DEEPEST, 16, 8, 4, 2, 1, 0)
_SHAPED = frozenset({"items", "prefixItems", "properties"})
_WITH_SCHEMAS = _SHAPED | {"anyOf", "oneOf"}
# What is said of a union, and not of each alternative.
_OF_THE_WHOLE = frozenset({"$defs", "anyOf", "default", "definitions", "description"}) | {
    *("nullable", "oneOf", "title"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where in the making a schema stands."""

    root: Mapping[str, Any]
    most_refs: int
    refs: tuple[str, ...] = ()
    """The references that led here."""
    depth: int = 0
    name: str = ""
    """The property that the schema is of."""


def gemini(shape: ToolShape) -> dict[str, Any]:
    """Describe a tool as a function declaration; one without parameters has no schema."""
    root = object_schema(shape.parameters)
    made: dict[str, Any] = {"name": shape.name, "description": visible(shape.description)}
    parameters = _inlined(root)
    if properties_of(parameters):
        made["parameters"] = shown(parameters)  # a copy, so that no part stands in it twice
    return made


def _inlined(root: Mapping[str, Any]) -> dict[str, Any]:
    """Follow references as deep as the limit on the whole allows, everywhere equally."""
    most = _WALKS * (_count(root) + INLINED_SCHEMAS)
    for depth in _DEPTHS[:-1]:
        try:
            made: dict[str, Any] = run_walk(_node(root, _Place(root=root, most_refs=depth)), most)
        except TooManyError:
            continue
        return made
    last: dict[str, Any] = run_walk(_node(root, _Place(root=root, most_refs=_DEPTHS[-1])))
    return last


def _count(value: Any) -> int:
    """Count the schemas, and whatever else is an object, that stand in one."""
    count, todo = 0, [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            count += 1
            todo += item.values()
        elif isinstance(item, list):
            todo += item
    return count


def _node(schema: Any, place: _Place) -> Walk:
    """Make one schema: of the type it has, or `anyOf` with nothing beside it."""
    found = yield _alternatives(schema, place)
    null = {"nullable": True} if any(made["type"] == "null" for made in found) else {}
    solid: list[dict[str, Any]] = []
    for made in found:
        if made["type"] != "null" and {**made, **null} not in solid:
            solid.append({**made, **null})
    match solid:
        case []:
            return {"type": "string", "description": "Always null.", "nullable": True}
        case [only]:
            return only
    return {"anyOf": solid}


def _alternatives(schema: Any, place: _Place) -> Walk:
    """Make a list of schemas of one type each, `null` among them."""
    if not isinstance(schema, Mapping):
        return anything()
    flat, refs = unfolded(schema, place.root)
    names = (place.name, *map(name_of, refs))
    place = replace(place, refs=(*place.refs, *refs), depth=place.depth + 1, name="")
    made: list[dict[str, Any]] = []
    if reason := _reason_to_cut(flat, refs, place):
        made = [{"type": "object"}] if "object" in types_of(flat) else anything()
        made[0]["description"] = reason
    elif branches_of(flat) and not _SHAPED & flat.keys():
        shared = {key: flat[key] for key in flat if key not in _OF_THE_WHOLE}
        for branch in branches_of(flat):
            whole = {**shared, **branch} if isinstance(branch, Mapping) else branch
            made += yield _alternatives(whole, place)
    else:
        kinds = [kind for kind in types_of(flat) if values_of(flat, kind) != []]
        if len(kinds) > 1:
            place = replace(place, depth=place.depth + 1)  # for the `anyOf` that they need
        for kind in kinds:
            made.append((yield _typed(flat, kind, place)))
    return _described(made or anything(), flat, names)


def _reason_to_cut(flat: Mapping[str, Any], refs: tuple[str, ...], place: _Place) -> str:
    """Say why a shape is not written out here, or `""` if it is."""
    if not _WITH_SCHEMAS & flat.keys():
        return ""
    if any(place.refs.count(ref) > REPETITIONS for ref in refs):
        return f"The same shape again: {name_of(refs[0])}."
    if refs and len(place.refs) > place.most_refs:
        return f"Not shown in full: {name_of(refs[0])}."
    return "Not shown in full." if place.depth > _DEEPEST_SHOWN else ""


def _typed(flat: Mapping[str, Any], kind: str, place: _Place) -> Walk:
    made = fields_of(flat, kind)
    if kind == "object":
        made |= yield _properties(flat, place)
    elif kind == "array":
        made["items"] = yield _node(items_of(flat), place)
    return ordered(made, flat)


def _properties(flat: Mapping[str, Any], place: _Place) -> Walk:
    made = {}
    for name, item in properties_of(flat).items():
        if item is not False:
            made[name] = yield _node(item, replace(place, name=name))
    if not made:
        return {}
    needed = [name for name in required_of(flat) if name in made]
    return {"properties": made, **({"required": needed} if needed else {})}


def _described(
    made: list[dict[str, Any]], flat: Mapping[str, Any], names: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Add what is said of all alternatives to the first, since nothing may stand beside `anyOf`."""
    solid = [one for one in made if one["type"] != "null"]
    text = join_texts(flat.get("description"))
    if len(solid) == 1 and flat.get("default") is not None:
        solid[0]["default"] = flat["default"]
    elif solid:
        text = join_texts(text, *about(flat, ["default"]))
    if solid and (text := join_texts(text, solid[0].get("description"))):
        solid[0]["description"] = text
    if solid and (title := join_texts(flat.get("title"))) and not _is_made_up(title, names):
        solid[0]["title"] = title
    return [*made, {"type": "null"}] if flat.get("nullable") is True else made


def _is_made_up(title: str, names: tuple[str, ...]) -> bool:
    """Tell whether a title is only the name once more, as generators write it."""
    return _letters(title) in map(_letters, names)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
