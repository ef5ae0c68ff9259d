"""How a schema is walked: where schemas stand inside schemas, and how deep they may."""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from satchel.errors import DefinitionError
from satchel.text import visible

DEEPEST = 256
"""How many schemas may stand inside one another."""

Walk = Generator[Any, Any, Any]
"""A recursive function, written as a generator: it yields a walk to be sent its result."""

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
# What stands at a place: a schema or a list of them, schemas by name, or data of the author's.
_SCHEMA, _MAP, _DATA = "schema", "map", "data"


def shown(schema: Any) -> Any:
    """Copy a schema as the model may see it: without invisible characters in its texts.

    A text is the description, title or comment of a schema; a property that has such a name, a
    default or an example is left as it is. Raises `DefinitionError` if it is nested too deep.
    """
    holder: dict[Any, Any] = {}
    todo: list[tuple[Any, Any, Any, str, int]] = [(holder, "", schema, _SCHEMA, 0)]
    while todo:  # not by recursion: strangers nest deeper than Python calls
        target, at, value, kind, depth = todo.pop()
        if depth > DEEPEST:
            raise DefinitionError(
                f"the schema is nested deeper than {DEEPEST} levels",
                fix="flatten it, or let it refer to $defs",
            )
        if isinstance(value, Mapping):
            target[at] = made = dict.fromkeys(value)
            deeper = depth + (kind != _MAP)
            for key, item in value.items():
                inner = _shown_text(kind, key, item)
                todo.append((made, key, inner, _kind_inside(kind, key), deeper))
        elif isinstance(value, list | tuple):
            target[at] = items = [None] * len(value)
            deeper = depth + (kind == _DATA)
            todo.extend((items, key, item, kind, deeper) for key, item in enumerate(value))
        else:
            target[at] = value
    return holder[""]


def references(schema: Any) -> Iterator[str]:
    """Yield what the schemas in a schema refer to; data that looks like a reference is none."""
    for node in schemas_in(schema):
        yield from (node[key] for key in _REFERENCES if isinstance(node.get(key), str))


def schemas_in(schema: Any) -> Iterator[Any]:
    """Yield a schema and each mapping in it that is a schema; it may be changed meanwhile."""
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
    """Run a walk to its end without Python's own stack, which strangers' schemas overflow."""
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


def ordered(made: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """Put the keywords in the order of the schema that they were made of, new ones last."""
    return {**{key: made[key] for key in like if key in made}, **made}


def _shown_text(kind: str, key: Any, value: Any) -> Any:
    is_text = kind == _SCHEMA and key in _TEXTS and isinstance(value, str)
    return visible(value) if is_text else value


def _kind_inside(kind: str, key: Any) -> str:
    if kind == _MAP:
        return _SCHEMA
    if kind == _SCHEMA and key in _MAPS:
        return _MAP
    return _SCHEMA if kind == _SCHEMA and key in _SCHEMAS else _DATA
