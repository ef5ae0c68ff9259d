"""Arguments against a JSON Schema that somebody wrote by hand."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from satchel.errors import DefinitionError
from satchel.tools.arguments import SET_BY_HOST, ArgumentError, ArgumentFault

_SENT = "it"
"""Stands in messages for the value that was sent, which may be a secret."""


class Validator:
    """Judges arguments by a JSON Schema; it fetches nothing."""

    def __init__(self, schema: Mapping[str, Any], where: str) -> None:
        """Compile a schema. Raises `DefinitionError` if that cannot be done."""
        try:
            self._compiled = _compiled(dict(schema))
        except Exception as problem:
            reason = str(problem).partition("\n")[0]
            raise DefinitionError(
                f"its parameters are no JSON Schema that can be used: {reason}",
                where=where,
                fix="correct the schema; references must stay inside it",
            ) from problem

    def faults(self, arguments: Mapping[str, Any]) -> list[ArgumentFault]:
        """Return what does not fit, without the values that were sent."""
        try:
            errors = list(self._compiled.iter_errors(dict(arguments)))
        except ValueError as problem:  # what only a host can send: sets, objects, cycles
            return [ArgumentFault("", str(problem))]
        return [fault for error in errors for fault in _faults(error)]

    def require(
        self, tool: str, arguments: Mapping[str, Any], hidden: Collection[str] = ()
    ) -> None:
        """Raise `ArgumentError` for arguments that do not fit, or that only the host sets."""
        faults = [ArgumentFault(name, SET_BY_HOST) for name in arguments if name in hidden]
        if faults := faults or self.faults(arguments):
            raise ArgumentError(tool, faults)


def _compiled(schema: dict[str, Any]) -> Any:
    import jsonschema_rs

    try:  # an engine that takes the same time for every text
        return jsonschema_rs.validator_for(
            schema, offline=True, mask=_SENT, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError:
        # It lacks some of what patterns can say; the other one gives up after many steps.
        return jsonschema_rs.validator_for(schema, offline=True, mask=_SENT)


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
        case _:
            yield ArgumentFault(path, error.message)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
