"""Validate arguments against a JSON Schema that the author of a tool wrote."""

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from math import inf
from typing import Any

from satchel.errors import DefinitionError
from satchel.tools.argument_errors import SET_BY_HOST, ArgumentError, ArgumentFault
from satchel.tools.dialects import without_nulls

DEEPEST = 250
"""How deep arguments may be nested; much deeper ones crash the process in compiled code."""
_MOST_NODES = 200_000
"""How many mappings and lists a schema may have; those that occur twice count twice."""

_MASK = "it"
"""Replaces the value in messages, because it may be a secret."""


class SchemaValidator:
    """Validates arguments by a JSON Schema, without network access."""

    most_tries = 20_000
    """The backtracking limit of a pattern, mostly about a millisecond."""

    def __init__(self, schema: Mapping[str, Any], where: str, hidden: Collection[str] = ()) -> None:
        """Compile a copy of a schema without the `hidden` properties, which the host sets.

        Raises `DefinitionError` for an unusable schema.
        """
        self._hidden = hidden
        try:
            if exceeded_limit(schema, DEEPEST, _MOST_NODES):  # compiled code would not survive it
                raise ValueError("it is nested too deeply, or has too many parts")  # noqa: TRY301 - as what it raises
            self.schema = _without(deepcopy(dict(schema)), hidden)
            # Without `properties`, the errors would not name unexpected arguments.
            self._compiled = _compile({"properties": {}, **self.schema}, self.most_tries)
        except Exception as problem:
            reason = str(problem).partition("\n")[0]
            raise DefinitionError(
                f"its parameters are not a usable JSON Schema: {reason}",
                where=where,
                fix="correct the schema; references must stay inside it",
            ) from problem

    def faults(self, arguments: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return what is invalid, without the values that were sent."""
        if exceeded_limit(arguments, DEEPEST - 1):
            return [ArgumentFault("", "they are nested too deeply")]
        try:
            errors = list(self._compiled.iter_errors(dict(arguments)))
        except ValueError as problem:  # values that only a host can send: sets, objects, cycles
            return [ArgumentFault("", str(problem))]
        return [fault for error in errors for fault in _faults(error)]

    def check(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return valid arguments, without each `null` that means "left out".

        Raises `ArgumentError` for invalid arguments, and for those that only the host sets.
        """
        hidden = [name for name in arguments if name in self._hidden]
        if hidden:
            raise ArgumentError(tool, [ArgumentFault(name, SET_BY_HOST) for name in hidden])
        if not (faults := self.faults(arguments)):
            return dict(arguments)
        # Models send `null` for arguments that they leave out.
        cleaned = without_nulls(self.schema, arguments)
        if self.faults(cleaned):
            raise ArgumentError(tool, faults)
        return cleaned


def exceeded_limit(value: Any, levels: int, nodes: float = inf) -> str:
    """Return `"levels"` or `"nodes"` if mappings and lists exceed that limit, else `""`.

    The value may contain itself.
    """
    todo, count = [(value, levels)], 0
    while todo:
        item, left = todo.pop()
        count += 1
        if left < 0 or count > nodes:
            return "levels" if left < 0 else "nodes"
        inside = item.values() if isinstance(item, Mapping) else item
        todo += [(inner, left - 1) for inner in inside if isinstance(inner, Mapping | list | tuple)]
    return ""


def _without(schema: dict[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, dict):
        schema["properties"] = {k: v for k, v in properties.items() if k not in hidden}
    if hidden and isinstance(required, list):
        schema["required"] = [name for name in required if name not in hidden]
        if not schema["required"]:
            del schema["required"]  # old drafts forbid an empty list
    return schema


def _compile(schema: dict[str, Any], most_tries: int) -> Any:
    import jsonschema_rs

    options: Any = jsonschema_rs.RegexOptions()  # an engine without backtracking
    try:
        return jsonschema_rs.validator_for(
            schema, offline=True, mask=_MASK, pattern_options=options
        )
    except jsonschema_rs.ValidationError:
        # It does not support all patterns; the other engine does, with a limit of steps.
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=most_tries)
        return jsonschema_rs.validator_for(
            schema, offline=True, mask=_MASK, pattern_options=options
        )


def _faults(error: Any) -> Iterable[ArgumentFault]:
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    ).removeprefix(".")
    match error.kind.name:
        case "required":
            yield ArgumentFault(_below(path, error.kind.property), "is required")
        case "additionalProperties" | "unevaluatedProperties":
            for name in error.kind.unexpected:
                yield ArgumentFault(_below(path, name), "there is no such argument")
        case "falseSchema":
            yield ArgumentFault(path, "is not allowed here")
        case _:
            yield ArgumentFault(path, error.message)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
