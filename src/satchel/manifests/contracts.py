"""What a tool's contract says, as words: read from its source, or told by the record itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    """One rule of a contract: what the model is taught, and told when a call breaks it."""

    id: str
    rule: str
    corrects: bool = False
    """Whether a call that breaks it may be corrected or dropped, and not only refused."""


@dataclass(frozen=True, slots=True)
class DeclaredConfig:
    """A value that configuration gives a tool; `default` is as Python writes it, `""` for none."""

    key: str
    default: str = ""
    is_normalized: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredRead:
    """A value that a tool takes from the session's state; `default` is as Python writes it."""

    key: str
    default: str = ""
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class DeclaredEffect:
    """A value that a tool writes into the session's state, and how it joins what is there."""

    key: str
    merge: str = "replace"
    type: str = "dict"
    is_preserved: bool = False
    """Whether it outlives a turn."""
    variable: str = ""
    """Where it enters the prompt: the name between `{{` and `}}`."""


@dataclass(frozen=True, slots=True)
class DeclaredContract:
    """What a contract says, whether it was read or its code was run."""

    tool: str
    description: str
    arguments: str
    """What a model sends: names with types, names alone, or the name of a pydantic model."""
    rules: tuple[DeclaredRule, ...] = ()
    config: tuple[DeclaredConfig, ...] = ()
    reads: tuple[DeclaredRead, ...] = ()
    effects: tuple[DeclaredEffect, ...] = ()
    unread: tuple[str, ...] = ()
    """The parameters of the record that only running the code can tell, wholly or in part."""
    line: int = field(default=0, compare=False)
    path: str = field(default="", compare=False)
    name: str = field(default="", compare=False)
    """The variable that holds it in its module."""


def arguments_of(schema: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Return what a model sends: in words as a contract tells it, and the names.

    A schema is JSON Schema, or the short form `{"city": "str - in English"}`.
    """
    properties = schema.get("properties")
    if isinstance(properties, Mapping) or schema.get("type") == "object":
        names = [str(name) for name in properties] if isinstance(properties, Mapping) else []
        return ", ".join(names), frozenset(names)
    words = [_argument(str(name), told) for name, told in schema.items()]
    return ", ".join(words), frozenset(map(str, schema))


def _argument(name: str, told: Any) -> str:
    kind = told.partition(" - ")[0].strip() if isinstance(told, str) else ""
    return f"{name}: {kind}" if kind else name
