"""Bound the cost of validating against an untrusted JSON Schema.

If each of n schemas refers twice to the next one, a value is validated 2**n times. The compiled
validator cannot be interrupted, so the cost is computed before it runs.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from satchel.errors import DefinitionError
from satchel.tools.argument_errors import ArgumentFault
from satchel.tools.dialects.schema_refs import target_of
from satchel.tools.dialects.schema_walk import Walk, run_walk
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.schema_validator import SchemaValidator

MOST_AT_ONE_VALUE = 10_000
"""Subschemas that may apply to one value."""

MOST_IN_ALL = 100_000
"""Subschemas and pattern positions that may be compiled for one tool."""

MOST_STEPS = 500_000
"""Steps of validating one value: a step is one subschema applied to one part of it."""

_LETTERS, _VALUES = 1_000, 100
"""Characters of a string, and values of an `enum`, that count as one step."""

_PLACES = 250
"""Pattern positions tried at one character that count as one step."""

_CLASS_SIZE = 20
"""Positions that a Unicode class such as `\\p{L}` counts as when it is compiled."""

_UNEVALUATED_TIMES = 4
"""How often the validator compiles and applies a schema beside an `unevaluated...` keyword."""

_BACKTRACKING = re.compile(r"\(\?[=!<>]|\\[1-9k]")
_REPEATED = re.compile(r"([\w\].])?\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_BY_NAME = ("dependentSchemas", "dependencies")
_NAMING = (*_BY_NAME, "dependentRequired")
_OF_REST = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
_DYNAMIC = ("$dynamicRef", "$recursiveRef")


class BoundedValidator(SchemaValidator):
    """A validator for untrusted schemas; it refuses values that would take too long."""

    most_tries = 2_000
    _parts: "dict[int, _Part] | None" = None

    def faults(self, arguments: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return the violations, without the values that were sent."""
        self._parts = {} if self._parts is None else self._parts
        if not is_quick(self.schema, arguments, self._parts):
            return [ArgumentFault("", "it is too large to validate; send less")]
        return super().faults(arguments)


def beside(schema: Any, root: Any) -> Iterator[Any]:
    """Yield the subschemas of a schema that apply to the same value."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield target_of(schema["$ref"], root)
    for key in _LISTS:
        yield from _as_list(schema.get(key))
    for key in _SINGLE:
        if key in schema:
            yield schema[key]
    for key in _BY_NAME:
        yield from _as_mapping(schema.get(key)).values()


def find_outside_properties(schema: Mapping[str, Any], names: Collection[str]) -> str:
    """Return one of the arguments that is mentioned outside the top-level properties, or `""`.

    Such an argument, for example in an `allOf` or a condition, cannot be hidden.
    """
    todo: list[Any] = [schema]
    seen = set[int]()
    while todo and names:
        part = todo.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        todo += beside(part, schema)
        mentioned: list[Any] = []
        for key in _NAMING:
            dependencies = _as_mapping(part.get(key))
            mentioned += [*dependencies, *chain.from_iterable(map(_as_list, dependencies.values()))]
        if part is not schema:
            mentioned += [*_as_mapping(part.get("properties")), *_as_list(part.get("required"))]
        for name in names:
            if name in mentioned:
                return name
    return ""


def require_bounded(schema: Any) -> None:
    """Raise `DefinitionError` for a schema that is too expensive even for a small value."""
    weights: dict[int, int] = {}
    id_key = "id" if "draft-04" in str(_as_mapping(schema).get("$schema")) else "$id"
    todo, total = [(schema, 1)], 0
    while todo:  # visits every object, also those that are not schemas: that is cheap
        part, times = todo.pop()
        if isinstance(part, Mapping):
            _require_pointers(part, None if part is schema else id_key)
            run_walk(_weigh(part, schema, weights))
            patterns = (part.get("pattern"), *_as_mapping(part.get("patternProperties")))
            total += times * (1 + sum(map(_compiled_size, patterns)))
            if total > MOST_IN_ALL:
                raise DefinitionError("one of its schemas is too large when compiled")
            times *= _times(part)
            todo += [(child, times) for child in part.values()]
        elif isinstance(part, list):
            todo += [(child, times) for child in part]


def _require_pointers(part: Mapping[str, Any], id_key: str | None) -> None:
    """Raise `DefinitionError` for names and references that are not JSON pointers."""
    ref = part.get("$ref")
    is_anchor = isinstance(ref, str) and ref[:1] == "#" and ref[1:2] not in {"", "/"}
    has_id = id_key is not None and isinstance(part.get(id_key), str)
    if is_anchor or has_id or any(isinstance(part.get(key), str | bool) for key in _DYNAMIC):
        raise DefinitionError(
            "one of its schemas uses $id or anchors for its parts; only references such as "
            "#/$defs/NAME are supported"
        )


def _weigh(schema: Any, root: Any, weights: dict[int, int]) -> Walk:
    """Count the subschemas that apply to a value when this schema does."""
    if not isinstance(schema, Mapping):
        return 1
    weight = weights.get(id(schema))
    if weight == 0:
        raise DefinitionError("one of its schemas refers to itself without end")
    if weight is None:
        weights[id(schema)] = 0
        weight = 1
        for part in beside(schema, root):
            weight += _times(schema) * (yield _weigh(part, root, weights))
        if weight > MOST_AT_ONE_VALUE:
            raise DefinitionError(
                f"one of its schemas expands to more than {MOST_AT_ONE_VALUE:,} schemas for one "
                "value"
            )
        weights[id(schema)] = weight
    return weight


def is_quick(schema: Any, value: Any, parts: "dict[int, _Part] | None" = None) -> bool:
    """Return whether validating a value takes at most `MOST_STEPS` steps.

    `parts` keeps what was computed of the schema, as long as that stays unchanged.
    """
    parts = {} if parts is None else parts
    todo, steps = [(schema, value)], 0
    while todo and steps <= MOST_STEPS:
        subschema, item = todo.pop()
        if not isinstance(subschema, Mapping):
            continue
        part = parts.get(id(subschema))
        if part is None:
            part = parts[id(subschema)] = _Part(subschema, schema)
        steps += part.weight
        if steps + len(todo) > MOST_STEPS:
            return False
        children = [(other, item) for other in part.beside]
        if isinstance(item, str):
            steps += len(item) // _LETTERS + (len(item) + 1) * part.places // _PLACES
        elif isinstance(item, Mapping):
            if part.places_for_names:
                letters = sum(len(name) + 1 for name in item)
                steps += letters * part.places_for_names // _PLACES
            steps += len(part.required.difference(item))
            children += islice(part.of_members(item), MOST_STEPS)
        elif isinstance(item, list | tuple):
            children += islice(part.of_items(item), MOST_STEPS)
        todo += children * part.times
    return steps <= MOST_STEPS


class _Part:
    """The cost of one subschema, computed once for many values."""

    __slots__ = (
        *("beside", "weight", "times", "places", "places_for_names", "required"),
        *("_own", "_any", "_rest", "_names", "_first", "_items"),
    )

    def __init__(self, schema: Mapping[str, Any], root: Any) -> None:
        patterns = _as_mapping(schema.get("patternProperties"))
        self.beside = [part for part in beside(schema, root) if isinstance(part, Mapping)]
        self.weight = 1 + len(_as_list(schema.get("enum"))) // _VALUES
        self.times = _times(schema)
        self.places = _effort(schema.get("pattern"))
        self.places_for_names = sum(map(_effort, patterns))
        self.required = {n for n in _as_list(schema.get("required")) if isinstance(n, str)}
        self._own = _as_mapping(schema.get("properties"))
        self._any = [*patterns.values()]
        self._rest = [schema[key] for key in _OF_REST if isinstance(schema.get(key), Mapping)]
        self._names = schema.get("propertyNames")
        self._first = [_as_list(schema.get(key)) for key in ("prefixItems", "items")]
        self._items = [schema[key] for key in _OF_ITEMS if isinstance(schema.get(key), Mapping)]

    def of_members(self, value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of a subschema and a member of an object that it applies to."""
        own = self._own
        if own:
            yield from ((own[name], item) for name, item in value.items() if name in own)
        for part in self._any:
            yield from ((part, item) for item in value.values())
        for part in self._rest:
            yield from ((part, item) for name, item in value.items() if name not in own)
        if self._names is not None:
            yield from ((self._names, name) for name in value)

    def of_items(self, value: list[Any] | tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of a subschema and a list item that it applies to."""
        for first in self._first:
            yield from zip(first, value, strict=False)
        for part in self._items:
            yield from ((part, item) for item in value)


def _times(schema: Mapping[str, Any]) -> int:
    return _UNEVALUATED_TIMES if any(key in schema for key in _UNEVALUATED) else 1


def _places(pattern: Any) -> int:
    """Return an upper bound of the positions in a pattern that its engine tracks at once."""
    if not isinstance(pattern, str):
        return 0
    places, times = len(pattern), 1
    for letter, least, most in _REPEATED.findall(pattern):
        count = max(1, int(least[-9:]), int(most[-9:] or 0))  # counts have at most 9 digits
        if letter:
            places += count
        else:  # possibly a whole group
            times *= count
    return places * times


def _effort(pattern: Any) -> int:
    """Return the positions that a match tries; a backtracking pattern may try them repeatedly."""
    places = _places(pattern)
    return places * _PLACES if places and _BACKTRACKING.search(pattern) else places


def _compiled_size(pattern: Any) -> int:
    places = _places(pattern)
    return places * _CLASS_SIZE if places and "\\p" in pattern.lower() else places


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else NOTHING
