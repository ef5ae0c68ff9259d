"""Traverse schemas without recursion, with a limit of their depth."""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from satchel.errors import DefinitionError
from satchel.text import visible

DEEPEST = 256
"""The maximum number of nested schemas."""

Walk = Generator[Any, Any, Any]
"""A recursive function as a generator: it yields an inner walk, and gets its result back."""

_TEXTS = frozenset({"$comment", "description", "title"})
_SCHEMAS = frozenset(
    {
        *("additionalItems", "additionalProperties", "allOf", "anyOf", "contains"),
        *("contentSchema", "else", "if", "items", "not", "oneOf", "prefixItems"),
        *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_MAPS = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# What a value is: a schema or a list of schemas, schemas by name, or plain data.
_SCHEMA, _MAP, _DATA = "schema", "map", "data"


def shown(schema: Any) -> Any:
    """Return a copy of a schema without invisible characters in its texts.

    Texts are descriptions, titles and comments of schemas; properties with such names, defaults
    and examples stay as they are. Raises `DefinitionError` for a schema that is nested too deep.
    """
    holder: dict[Any, Any] = {}
    todo: list[tuple[Any, Any, Any, str, int]] = [(holder, "", schema, _SCHEMA, 0)]
    while todo:  # without recursion: schemas may be nested deeper than Python's stack
        target, at, value, kind, depth = todo.pop()
        if depth > DEEPEST:
            raise DefinitionError(
                f"the schema is nested deeper than {DEEPEST} levels",
                fix="flatten it, or move parts to $defs",
            )
        if isinstance(value, Mapping):
            target[at] = copy = dict.fromkeys(value)
            deeper = depth + (kind != _MAP)
            for key, item in value.items():
                is_text = kind == _SCHEMA and key in _TEXTS and isinstance(item, str)
                inner = visible(item) if is_text else item
                todo.append((copy, key, inner, _kind_inside(kind, key), deeper))
        elif isinstance(value, list | tuple):
            target[at] = items = [None] * len(value)
            deeper = depth + (kind == _DATA)
            todo.extend((items, key, item, kind, deeper) for key, item in enumerate(value))
        else:
            target[at] = value
    return holder[""]


def references(schema: Any) -> Iterator[str]:
    """Yield all references of a schema and of the schemas inside it."""
    for node in schemas_in(schema):
        yield from (node[key] for key in _REFERENCES if isinstance(node.get(key), str))


def schemas_in(schema: Any) -> Iterator[Any]:
    """Yield a schema and each schema inside it; the caller may change what it gets."""
    todo: list[tuple[Any, str]] = [(schema, _SCHEMA)]
    while todo:
        value, kind = todo.pop()
        if isinstance(value, Mapping):
            if kind == _SCHEMA:
                yield value
            todo.extend((item, _kind_inside(kind, key)) for key, item in value.items())
        elif isinstance(value, list | tuple):
            todo.extend((item, kind) for item in value)


def run_walk(walk: Walk) -> Any:
    """Run a walk without recursion: a deep schema would overflow Python's stack."""
    stack, sent = [walk], None
    while stack:
        try:
            called = stack[-1].send(sent)
        except StopIteration as end:
            stack.pop()
            sent = end.value
            continue
        stack.append(called)
        sent = None
    return sent


def ordered(schema: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its keywords in the order of another schema, and new ones last."""
    return {**{key: schema[key] for key in like if key in schema}, **schema}


def _kind_inside(kind: str, key: Any) -> str:
    if kind == _MAP:
        return _SCHEMA
    if kind == _SCHEMA and key in _MAPS:
        return _MAP
    return _SCHEMA if kind == _SCHEMA and key in _SCHEMAS else _DATA
