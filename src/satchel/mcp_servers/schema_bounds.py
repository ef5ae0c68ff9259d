"""How much a schema makes of a value: strangers write short ones that never come to an end.

A schema that refers to another twice, which refers to a third twice, doubles with each step. No
limit of time helps once the compiled code is at it, so all of this is counted before.
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
"""How many schemas may judge one and the same value."""

MOST_IN_ALL = 100_000
"""How many schemas, and places of patterns, may be compiled for one tool."""

MOST_STEPS = 500_000
"""How many schemas may be held against the parts of one value, all in all."""

_LETTERS, _VALUES = 1_000, 100
"""How many letters of a text, and how many of the values of an `enum`, count as a step."""

_PLACES = 250
"""How many places of a pattern, each held against a letter of a text, count as a step."""

_KINDS = 20
"""How many places a kind of letters (`\\p{L}`) takes."""

_SEVERAL = 4
"""How often at most what stands inside an `unevaluated...` is compiled, and judges a value."""

_TRIED = re.compile(r"\(\?[=!<>]|\\[1-9k]")
_REPEATED = re.compile(r"([\w\].])?\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_BY_NAME = ("dependentSchemas", "dependencies")
_NAMING = (*_BY_NAME, "dependentRequired")
_OF_REST = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
_NAMED = ("$dynamicRef", "$recursiveRef")


class BoundedValidator(SchemaValidator):
    """A validator of strangers' schemas, which refuses what would take it too long."""

    most_tries = 2_000

    def faults(self, arguments: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return what does not fit, without the values that were sent."""
        if not is_quick(self.schema, arguments):
            return [ArgumentFault("", "there is too much to check in it")]
        return super().faults(arguments)


def beside(schema: Any, root: Any) -> Iterator[Any]:
    """Yield the schemas that judge the same value as a schema because it says so."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield target_of(schema["$ref"], root)
    for key in _LISTS:
        yield from _listed(schema.get(key))
    for key in _SINGLE:
        if key in schema:
            yield schema[key]
    for key in _BY_NAME:
        yield from _mapped(schema.get(key)).values()


def spoken_of(schema: Mapping[str, Any], names: Collection[str]) -> str:
    """Return an argument of these that stands elsewhere than in the top's properties, or `""`.

    Such as in an `allOf`, behind a `$ref`, or in a condition: there it could not be hidden.
    """
    todo: list[Any] = [schema]
    seen = set[int]()
    while todo and names:
        part = todo.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        todo += beside(part, schema)
        said: list[Any] = []
        for key in _NAMING:
            named = _mapped(part.get(key))
            said += [*named, *chain.from_iterable(map(_listed, named.values()))]
        if part is not schema:
            said += [*_mapped(part.get("properties")), *_listed(part.get("required"))]
        for name in names:
            if name in said:
                return name
    return ""


def require_bounded(schema: Any) -> None:
    """Raise `DefinitionError` for a schema that makes too much of a value, however small it is."""
    weights: dict[int, int] = {}
    name = "id" if "draft-04" in str(_mapped(schema).get("$schema")) else "$id"
    todo, total = [(schema, 1)], 0
    while todo:  # wherever a schema may stand, and more: all of them come to an end soon
        part, times = todo.pop()
        if isinstance(part, Mapping):
            _require_plain(part, None if part is schema else name)
            run_walk(_weighed(part, schema, weights))
            patterns = (part.get("pattern"), *_mapped(part.get("patternProperties")))
            total += times * (1 + sum(map(_size, patterns)))
            if total > MOST_IN_ALL:
                raise DefinitionError("a schema of it is too large once it is compiled")
            times *= _times(part)
            todo += [(inner, times) for inner in part.values()]
        elif isinstance(part, list):
            todo += [(inner, times) for inner in part]


def _require_plain(part: Mapping[str, Any], name: str | None) -> None:
    """Raise `DefinitionError` for references that say only by a name where they lead."""
    ref = part.get("$ref")
    by_name = isinstance(ref, str) and ref[:1] == "#" and ref[1:2] not in {"", "/"}
    is_named = name is not None and isinstance(part.get(name), str)
    if by_name or is_named or any(isinstance(part.get(key), str | bool) for key in _NAMED):
        raise DefinitionError(
            "a schema of it refers to its parts by names of their own ($id, anchors)"
        )


def _weighed(schema: Any, root: Any, weights: dict[int, int]) -> Walk:
    """Count the schemas that judge a value once this one does."""
    if not isinstance(schema, Mapping):
        return 1
    known = weights.get(id(schema))
    if known == 0:
        raise DefinitionError("a schema of it refers to itself without end")
    if known is None:
        weights[id(schema)] = 0
        known = 1
        for part in beside(schema, root):
            known += _times(schema) * (yield _weighed(part, root, weights))
        if known > MOST_AT_ONE_VALUE:
            raise DefinitionError(
                f"a schema of it expands to more than {MOST_AT_ONE_VALUE:,} schemas at one place"
            )
        weights[id(schema)] = known
    return known


def is_quick(schema: Any, value: Any) -> bool:
    """Tell whether a value can be held against a schema that is bounded in few enough steps."""
    known: dict[int, _Part] = {}
    todo, steps = [(schema, value)], 0
    while todo and steps <= MOST_STEPS:
        raw, item = todo.pop()
        if not isinstance(raw, Mapping):
            continue
        part = known.get(id(raw))
        if part is None:
            part = known[id(raw)] = _Part(raw, schema)
        steps += part.weight
        if steps + len(todo) > MOST_STEPS:
            return False
        inside = [(other, item) for other in part.beside]
        if isinstance(item, str):
            steps += len(item) // _LETTERS + (len(item) + 1) * part.places // _PLACES
        elif isinstance(item, Mapping):
            if part.places_for_names:
                letters = sum(len(name) + 1 for name in item)
                steps += letters * part.places_for_names // _PLACES
            steps += len(part.required.difference(item))
            inside += islice(part.of_members(item), MOST_STEPS)
        elif isinstance(item, list | tuple):
            inside += islice(part.of_items(item), MOST_STEPS)
        todo += inside * part.times
    return steps <= MOST_STEPS


class _Part:
    """What one of the schemas in a schema makes of a value, made out once for many values."""

    __slots__ = (
        *("beside", "weight", "times", "places", "places_for_names", "required"),
        *("_own", "_any", "_rest", "_names", "_first", "_items"),
    )

    def __init__(self, schema: Mapping[str, Any], root: Any) -> None:
        patterns = _mapped(schema.get("patternProperties"))
        self.beside = [part for part in beside(schema, root) if isinstance(part, Mapping)]
        self.weight = 1 + len(_listed(schema.get("enum"))) // _VALUES
        self.times = _times(schema)
        self.places = _effort(schema.get("pattern"))
        self.places_for_names = sum(map(_effort, patterns))
        self.required = {n for n in _listed(schema.get("required")) if isinstance(n, str)}
        self._own = _mapped(schema.get("properties"))
        self._any = [*patterns.values()]
        self._rest = [schema[key] for key in _OF_REST if isinstance(schema.get(key), Mapping)]
        self._names = schema.get("propertyNames")
        self._first = [_listed(schema.get(key)) for key in ("prefixItems", "items")]
        self._items = [schema[key] for key in _OF_ITEMS if isinstance(schema.get(key), Mapping)]

    def of_members(self, value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the schemas of the members of an object, each with its member."""
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
        """Yield the schemas of the items of a list, each with its item."""
        for first in self._first:
            yield from zip(first, value, strict=False)
        for part in self._items:
            yield from ((part, item) for item in value)


def _times(schema: Mapping[str, Any]) -> int:
    return _SEVERAL if any(key in schema for key in _UNEVALUATED) else 1


def _places(pattern: Any) -> int:
    """Count at how many places in a pattern its engine may be at once, or a bit more."""
    if not isinstance(pattern, str):
        return 0
    places, times = len(pattern), 1
    for letter, least, most in _REPEATED.findall(pattern):
        count = max(1, int(least[-9:]), int(most[-9:] or 0))  # none has more digits
        if letter:
            places += count
        else:  # a whole group, perhaps
            times *= count
    return places * times


def _effort(pattern: Any) -> int:
    """Count the places of a pattern; one that looks ahead or back begins anew at each try."""
    places = _places(pattern)
    return places * _PLACES if places and _TRIED.search(pattern) else places


def _size(pattern: Any) -> int:
    """Count the places of a pattern as they are compiled: kinds of letters are large."""
    places = _places(pattern)
    return places * _KINDS if places and "\\p" in pattern.lower() else places


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapped(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else NOTHING
