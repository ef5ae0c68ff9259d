"""Arguments against a JSON Schema that somebody wrote by hand."""

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from typing import Any

from satchel.errors import DefinitionError
from satchel.tools.argument_errors import SET_BY_HOST, ArgumentError, ArgumentFault
from satchel.tools.dialects import without_nulls

DEEPEST = 250
"""How deep arguments may be nested; far deeper ones end the process in the compiled code."""

_SENT = "it"
"""Stands in messages for the value that was sent, which may be a secret."""


class SchemaValidator:
    """Judges arguments by a JSON Schema; it fetches nothing."""

    most_tries = 20_000
    """How often a pattern may go back; that is a millisecond, unless it looks far ahead."""

    def __init__(self, schema: Mapping[str, Any], where: str, hidden: Collection[str] = ()) -> None:
        """Compile a copy of a schema, without the properties that only the host sets.

        Raises `DefinitionError` if that cannot be done.
        """
        self._hidden = hidden
        try:
            self.schema = _without(deepcopy(dict(schema)), hidden)
            # Without any properties, further ones would not be told by their names.
            self._compiled = _compiled({"properties": {}, **self.schema}, self.most_tries)
        except Exception as problem:
            reason = str(problem).partition("\n")[0]
            raise DefinitionError(
                f"its parameters are no JSON Schema that can be used: {reason}",
                where=where,
                fix="correct the schema; references must stay inside it",
            ) from problem

    def faults(self, arguments: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return what does not fit, without the values that were sent."""
        if _is_deeper(arguments, DEEPEST):
            return [ArgumentFault("", "they are nested too deeply")]
        try:
            errors = list(self._compiled.iter_errors(dict(arguments)))
        except ValueError as problem:  # what only a host can send: sets, objects, cycles
            return [ArgumentFault("", str(problem))]
        return [fault for error in errors for fault in _faults(error)]

    def check(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that fit, without the `null`s that stand for what was left out.

        Raises `ArgumentError` for those that do not fit, or that only the host sets.
        """
        if own := [ArgumentFault(name, SET_BY_HOST) for name in arguments if name in self._hidden]:
            raise ArgumentError(tool, own)
        if not (faults := self.faults(arguments)):
            return dict(arguments)
        # `null` is how models leave out what they need not send.
        slim = without_nulls(self.schema, arguments)
        if self.faults(slim):
            raise ArgumentError(tool, faults)
        return slim


def _without(schema: dict[str, Any], hidden: Collection[str]) -> dict[str, Any]:
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, dict):
        schema["properties"] = {k: v for k, v in properties.items() if k not in hidden}
    if hidden and isinstance(required, list):
        schema["required"] = [name for name in required if name not in hidden]
        if not schema["required"]:
            del schema["required"]  # old drafts do not allow an empty one
    return schema


def _is_deeper(value: Any, levels: int) -> bool:
    todo = [(value, levels)]
    while todo:
        item, left = todo.pop()
        if not left:
            return True
        inside = item.values() if isinstance(item, Mapping) else item
        todo += [(inner, left - 1) for inner in inside if isinstance(inner, Mapping | list | tuple)]
    return False


def _compiled(schema: dict[str, Any], most_tries: int) -> Any:
    import jsonschema_rs

    try:  # an engine that takes the same time for every text
        return jsonschema_rs.validator_for(
            schema, offline=True, mask=_SENT, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError:
        # It lacks some of what patterns can say; the other one gives up after many steps.
        tried = jsonschema_rs.FancyRegexOptions(backtrack_limit=most_tries)
        return jsonschema_rs.validator_for(schema, offline=True, mask=_SENT, pattern_options=tried)


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
