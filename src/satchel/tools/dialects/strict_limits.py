"""The size limits of OpenAI's strict mode, which refuses requests with a larger schema."""

from collections.abc import Iterator, Mapping
from typing import Any

PROPERTIES = 5_000
NESTED_OBJECTS = 10
ENUM_VALUES = 1_000
CHARACTERS = 120_000
"""Of all names of properties and definitions and all `enum` and `const` values together."""


def is_too_large(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema in strict mode exceeds one of the limits."""
    properties = values = characters = 0
    for node, depth in _nodes(schema):
        listed = [*node.get("enum", ()), *([node["const"]] if "const" in node else ())]
        names = [*node.get("properties", ()), *node.get("$defs", ())]
        properties += len(node.get("properties", ()))
        values += len(listed)
        characters += sum(len(str(text)) for text in (*names, *listed))
        if depth > NESTED_OBJECTS:
            return True
    return properties > PROPERTIES or values > ENUM_VALUES or characters > CHARACTERS


def _nodes(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each schema with its object depth: the number of objects around it and itself."""
    todo = [(schema, 0)]
    while todo:
        node, depth = todo.pop()
        depth += node.get("type") == "object"
        yield node, depth
        todo += [(item, 0) for item in node.get("$defs", {}).values()]
        inner = [*node.get("properties", {}).values(), *node.get("anyOf", ())]
        todo += [(item, depth) for item in inner]
        if "items" in node:
            todo.append((node["items"], depth))
