"""Reading the contracts that a module declares from its source, without running a line of it."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from satchel.formats.declared_contracts import (
    DeclaredConfig,
    DeclaredContract,
    DeclaredEffect,
    DeclaredRead,
    DeclaredRule,
    Refusal,
    arguments_of,
    clashes,
    merge_refusal,
    text_refusal,
    twice_refusal,
    variable_refusal,
)
from satchel.formats.python_literals import Literals, NotLiteralError
from satchel.formats.python_source import read_python
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.names import near_misses, tool_name_fault

_CONTRACT = "ToolContract"
_PARTS = ("invariants", "config_params", "state_reads", "state_effects")


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the records: what it is in a sentence, and its parameters in their order."""

    noun: str
    parameters: tuple[str, ...]
    needed: int
    """How many of the parameters must be given."""


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        _CONTRACT: Kind("the contract", ("name", "schema", "description", *_PARTS), 3),
        "ToolInvariant": Kind("an invariant", ("id", "rule", "check", "correct"), 3),
        "ToolConfigParam": Kind("a config param", ("key", "default", "normalizer"), 1),
        "ToolStateRead": Kind("a state read", ("key", "default"), 1),
        "ToolStateEffect": Kind(
            "a state effect",
            ("key", "type_hint", "merge", "preserve_across_turns", "prompt_template_var"),
            1,
        ),
    }
)
"""Each record by its name."""


def declared_contracts(source: bytes, path: str) -> ReadResult[tuple[DeclaredContract, ...]]:
    """Find the contracts of a module, each where a variable or a list holds it.

    What a record would refuse when it is made is an error.
    """

    def read(
        statements: list[ast.stmt], problems: DiagnosticCollector
    ) -> tuple[DeclaredContract, ...]:
        literals = Literals(statements, KINDS)
        found = [
            replace(_Contract(name, call, literals, problems).read(), path=path, name=name)
            for name, call in _places(literals)
        ]
        return tuple(sorted(found, key=lambda contract: contract.line))

    return read_python(source, path, read)


def _places(literals: Literals) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call that makes a contract, once, with the variable that holds it."""
    seen: set[int] = set()
    for name, node in literals.bound.items():
        items = node.elts if isinstance(node, ast.List | ast.Tuple) else None
        for number, item in enumerate([node] if items is None else items):
            if literals.is_call_of(item, _CONTRACT) and id(item) not in seen:
                seen.add(id(item))
                yield name if items is None else f"{name}[{number}]", item


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """One call that makes a record, with what it is given by the names of its parameters."""

    kind: str
    part: str
    """The parameter of the contract that it belongs to; `""` for the contract itself."""
    call: ast.Call
    given: dict[str, ast.expr]
    is_whole: bool
    """Whether nothing is given that only running the code can tell, as `**more` is."""


_Keyed = dict[str, _Record]


class _Contract:
    """Reads one contract; it lives as long as the call that made it."""

    def __init__(
        self, name: str, call: ast.Call, literals: Literals, problems: DiagnosticCollector
    ) -> None:
        self._literals, self._problems = literals, problems
        self._label = name
        self._unread: set[str] = set()
        self._schema: Mapping[str, Any] | None = None
        self._whole = self._record(_CONTRACT, "", call)

    def read(self) -> DeclaredContract:
        """Read all parts, and note what the record itself would refuse."""
        tool = self._tool()
        description = self._text(self._whole, "description")
        arguments, sent = self._arguments()
        rules = self._keyed("invariants", "ToolInvariant", "id")
        config = self._keyed("config_params", "ToolConfigParam", "key")
        reads = self._keyed("state_reads", "ToolStateRead", "key")
        effects = self._keyed("state_effects", "ToolStateEffect", "key")
        self._refuse_clashes(config, reads, sent)
        return DeclaredContract(
            tool=tool,
            description=description,
            arguments=arguments,
            rules=tuple(it for name, record in rules.items() if (it := self._rule(name, record))),
            config=tuple(self._config(key, record) for key, record in config.items()),
            reads=tuple(self._read(key, record) for key, record in reads.items()),
            effects=tuple(self._effect(key, record) for key, record in effects.items()),
            unread=tuple(it for it in KINDS[_CONTRACT].parameters if it in self._unread),
            line=self._whole.call.lineno,
            schema=self._schema,
        )

    # ---- the parts --------------------------------------------------------------------------

    def _tool(self) -> str:
        tool = self._text(self._whole, "name")
        if tool:
            self._label = tool
        if tool and (fault := tool_name_fault(tool)):
            told = f"the tool's name {fault}", "Write the name of a tool."
            self._refuse(self._whole, told)
        return tool

    def _arguments(self) -> tuple[str, frozenset[str]]:
        """Return what a model sends, in words and, as far as they are known, the names."""
        node = self._whole.given.get("schema")
        if node is None:
            self._note_unknown(self._whole, "schema")
            return "", frozenset()
        if model := _class_name(self._literals.resolved(node)):
            return model, frozenset()
        try:
            schema = self._literals.value(node)
        except NotLiteralError:
            self._unread.add("schema")
            return "", frozenset()
        if not isinstance(schema, dict):
            message = "the schema is neither JSON Schema, nor a model, nor a mapping by name"
            fix = "Write {'city': 'str - in English'}, for example."
            self._refuse(self._whole, (message, fix))
            return "", frozenset()
        self._schema = schema
        return arguments_of(schema)

    def _rule(self, name: str, record: _Record) -> DeclaredRule | None:
        rule = self._text(record, "rule")
        return DeclaredRule(name, rule, self._is_given(record, "correct")) if rule else None

    def _config(self, key: str, record: _Record) -> DeclaredConfig:
        default = self._written(record, "default") if self._is_given(record, "default") else ""
        return DeclaredConfig(key, default, self._is_given(record, "normalizer"))

    def _read(self, key: str, record: _Record) -> DeclaredRead:
        default = self._written(record, "default")
        return DeclaredRead(key, default, is_required=not default)

    def _effect(self, key: str, record: _Record) -> DeclaredEffect:
        merge = self._value(record, "merge", "replace")
        variable = self._value(record, "prompt_template_var", None)
        bad_merge, bad_variable = merge_refusal(key, merge), variable_refusal(key, variable)
        for refusal in filter(None, (bad_merge, bad_variable)):
            self._refuse(record, refusal)
        kind = record.given.get("type_hint")
        return DeclaredEffect(
            key=key,
            merge="replace" if bad_merge else merge,
            type=ast.unparse(kind) if kind else "dict",
            is_preserved=bool(self._value(record, "preserve_across_turns", False)),
            variable="" if bad_variable else variable or "",
        )

    # ---- what a record would refuse ---------------------------------------------------------

    def _refuse_clashes(self, config: _Keyed, reads: _Keyed, sent: frozenset[str]) -> None:
        """Refuse one name for two values, of which the tool would get one."""
        for key, refusal in clashes(config, reads, sent):
            self._refuse(reads.get(key) or config[key], refusal)

    def _refuse(self, record: _Record, refusal: Refusal) -> None:
        message, fix = refusal
        told = f"contract {quoted(self._label)}: {message}"
        self._problems.add("contract-invalid", told, fix, record.call.lineno)

    # ---- what a call is given ---------------------------------------------------------------

    def _keyed(self, part: str, kind: str, key: str) -> _Keyed:
        """Return the records that a part lists, each with what tells it from the others."""
        found: dict[str, _Record] = {}
        for record in self._records(part, kind):
            name = self._text(record, key)
            if name and found.setdefault(name, record) is not record:
                self._refuse(record, twice_refusal(part, key, name))
        return found

    def _records(self, part: str, kind: str) -> Iterable[_Record]:
        node = self._whole.given.get(part)
        if node is None:
            self._note_unknown(self._whole, part)
            return
        items, are_all = self._literals.items(node)
        for item in items:
            call = self._literals.resolved(item)
            if self._literals.is_call_of(call, kind):
                yield self._record(kind, part, call)
            else:
                are_all = False
        if not are_all:
            self._unread.add(part)

    def _record(self, kind: str, part: str, call: ast.Call) -> _Record:
        """Bind the arguments of a call to parameters, and note those that do not fit."""
        parameters = KINDS[kind].parameters
        starred = [isinstance(node, ast.Starred) for node in call.args]
        known = call.args[: starred.index(True)] if any(starred) else call.args
        given = dict(zip(parameters, known, strict=False))
        is_whole = not any(starred) and all(keyword.arg for keyword in call.keywords)
        record = _Record(kind=kind, part=part, call=call, given=given, is_whole=is_whole)
        if len(known) > len(parameters):
            message = f"{kind} takes {len(parameters)} arguments at most, not {len(known)}"
            self._refuse(record, (message, "Remove what is too many."))
        for name, value in ((it.arg, it.value) for it in call.keywords if it.arg):
            if name in given:
                message = f"{kind} is given {quoted(name)} twice"
                self._refuse(record, (message, "Remove one of the two."))
            elif name in parameters:
                given[name] = value
            else:
                near = near_misses(name, set(parameters).difference(given), most=1)
                fix = f"Write '{near[0]}='." if near else f"It takes {', '.join(parameters)}."
                self._refuse(record, (f"{kind} has no parameter {quoted(name)}", fix))
        for name in parameters[: KINDS[kind].needed] if is_whole else ():
            if name not in given:
                self._refuse(record, (f"{kind} lacks '{name}'", f"Add '{name}='."))
        return record

    def _text(self, record: _Record, key: str) -> str:
        """Return a text that must be there, `""` if it is not known or does not fit."""
        if key not in record.given:
            self._note_unknown(record, key)
            return ""
        try:
            text = self._literals.value(record.given[key])
        except NotLiteralError:
            self._unread.add(record.part or key)
            return ""
        if refusal := text_refusal(key, KINDS[record.kind].noun, text):
            self._refuse(record, refusal)
            return ""
        return str(text)

    def _value(self, record: _Record, key: str, usual: Any) -> Any:
        """Return what a parameter is given, or else what it is without."""
        if key not in record.given:
            self._note_unknown(record, key)
            return usual
        try:
            return self._literals.value(record.given[key])
        except NotLiteralError:
            self._unread.add(record.part)
            return usual

    def _written(self, record: _Record, key: str) -> str:
        return self._literals.written(record.given[key]) if key in record.given else ""

    def _is_given(self, record: _Record, key: str) -> bool:
        """Tell whether a parameter is given anything but `None`."""
        node = record.given.get(key)
        if node is None:
            return False
        node = self._literals.resolved(node)
        return not (isinstance(node, ast.Constant) and node.value is None)

    def _note_unknown(self, record: _Record, key: str) -> None:
        """Note that what is not given here may yet be given when the code runs."""
        if not record.is_whole:
            self._unread.add(record.part or key)


def _class_name(node: ast.expr) -> str:
    """Return the name of what looks like a class, `""` for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return ast.unparse(node) if name[:1].isupper() and not name.isupper() else ""
    return ""
