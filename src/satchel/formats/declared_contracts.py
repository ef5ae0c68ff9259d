"""What a tool's contract says, as words: read from its source, or told by the record itself."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from satchel.formats.read_result import quoted
from satchel.names import near_misses

Merge = Literal["replace", "append", "merge_dict"]
"""How a value joins what the state holds."""

MERGES: tuple[Merge, ...] = tuple(get_args(Merge))

VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
"""What the name of a prompt variable looks like."""

Refusal: TypeAlias = tuple[str, str]
"""What is wrong with a record, and what to do about it."""

_TELLING = ("$ref", "allOf", "anyOf", "oneOf", "additionalProperties")
"""What tells that a mapping is JSON Schema, whatever it holds there."""

_SIGNS = re.compile(r"""'[^']*'|"[^"]*"|[\[({]|[\])}]| - |=""")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEffect:
    """A value that a tool writes into the session's state, and how it joins what is there."""

    key: str
    merge: str = "replace"
    type: str = "dict"
    is_preserved: bool = False
    """Whether it outlives a turn."""
    variable: str = ""
    """Where it enters the prompt: the name between `{{` and `}}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    schema: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """The schema, where it was read and is a mapping."""


def is_short_form(schema: Mapping[Any, Any]) -> bool:
    """Tell whether a mapping is of the short form, `{"city": "str - in English"}`.

    Else it is JSON Schema.
    """
    return not (
        schema.get("type") == "object"
        or isinstance(schema.get("properties"), Mapping)
        or any(key in schema for key in _TELLING)
        or any(isinstance(key, str) and key.startswith("$") for key in schema)
    )


def split_short_field(text: str, sign: Literal[" - ", "="]) -> tuple[str, str, str]:
    """Part a field of the short form at the first sign outside brackets and quotes."""
    depth = 0
    for found in _SIGNS.finditer(text):
        if found[0] in {"[", "(", "{"}:
            depth += 1
        elif found[0] in {"]", ")", "}"}:
            depth -= 1
        elif found[0] == sign and depth <= 0:
            return text[: found.start()], sign, text[found.end() :]
    return text, "", ""


def expand_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON Schema whose properties stand at its top; a model that holds itself has none."""
    match schema:
        case {"$ref": str(reference), "$defs": Mapping() as definitions, **others}:
            target = definitions.get(reference.removeprefix("#/$defs/"))
            if isinstance(target, Mapping):
                return {**target, "$defs": definitions, **others}
    return dict(schema)


def arguments_of(schema: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """Return what a model sends: in words as a contract tells it, and the names."""
    if is_short_form(schema):
        words = [_argument(str(name), told) for name, told in schema.items()]
        return ", ".join(words), frozenset(map(str, schema))
    properties = expand_schema(schema).get("properties")
    names = [str(name) for name in properties] if isinstance(properties, Mapping) else []
    return ", ".join(names), frozenset(names)


def _argument(name: str, told: Any) -> str:
    kind = split_short_field(told, " - ")[0].strip() if isinstance(told, str) else ""
    return f"{name}: {kind}" if kind else name


# ---- what a record refuses, in the words of who reads it and of who makes it --------------------


def text_refusal(key: str, noun: str, given: Any) -> Refusal | None:
    """Refuse what is no text, or an empty one."""
    if isinstance(given, str) and given.strip():
        return None
    return f"the {key} of {noun} is {_told(given)}", "Write some text."


def twice_refusal(part: str, key: str, name: str) -> Refusal:
    """Refuse the second of one name among the records of one part."""
    records = part.replace("_", " ")
    return f"two {records} have the {key} {quoted(name)}", "Rename one of the two."


def merge_refusal(key: str, merge: Any) -> Refusal | None:
    """Refuse an unknown way to merge, with the likely one."""
    if merge in MERGES:
        return None
    near = near_misses(merge, MERGES, most=1) if isinstance(merge, str) else ()
    fix = f"Write '{near[0]}'." if near else f"Write one of {', '.join(MERGES)}."
    return f"'merge' of {quoted(key)} is {_told(merge)}", fix


def variable_refusal(key: str, variable: Any) -> Refusal | None:
    """Refuse what can be no name of a prompt variable; `None` is that there is none."""
    if variable is None or (isinstance(variable, str) and VARIABLE.fullmatch(variable)):
        return None
    message = f"'prompt_template_var' of {quoted(key)} is {_told(variable)}"
    return message, "Write capitals, digits and '_', with a letter first."


def clashes(
    config: Iterable[str], reads: Iterable[str], sent: Collection[str]
) -> Iterator[tuple[str, Refusal]]:
    """Yield each name of two values, of which the tool would get one, with what is wrong."""
    config, reads = dict.fromkeys(config), dict.fromkeys(reads)
    fix = "Rename one of the two."
    for key in reads:
        if key in config:
            yield key, (f"{quoted(key)} is both a config param and a state read", fix)
    for key in (*config, *reads):
        if key in sent:
            yield key, (f"{quoted(key)} is an argument too, which would let the model set it", fix)


def _told(value: Any) -> str:
    """Say what a value is that does not fit."""
    if not isinstance(value, str):
        return "no text"
    return quoted(value) if value.strip() else "empty"
