"""Which names of a module lead to which others, as its text says it; nothing is run."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from satchel.formats.python_source import Function, statements_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mentions:
    """What the names of a module may be made of."""

    names: Mapping[str, frozenset[str]]
    """Each name with the statements that bind or change it, and each of these with its names."""
    imports: Mapping[str, frozenset[tuple[str, str]]]
    """Each imported name, or `*`, with the last part of the module and the name there.

    The name may be that of a module.
    """


def mentions_in(source: bytes) -> Mentions:
    """Read what each statement of a module makes of what."""
    names: dict[str, set[str]] = {}
    imports: dict[str, set[tuple[str, str]]] = {}
    for number, node in enumerate(statements_of(source) or ()):
        inside = list(_inside(node))
        for own, origin, there in (it for part in inside for it in _imports(part)):
            imports.setdefault(own, set()).add((origin, there))
        found = [it for it in inside if isinstance(it, ast.Name)]
        named = {it.id for it in found}
        bound = {it.id for it in found if isinstance(it.ctx, ast.Store)}
        if isinstance(node, Function | ast.ClassDef):
            bound = {node.name}
        # A statement between two names, which no name is called, keeps their number small.
        statement = f"={number}"
        names[statement] = named
        # One that binds nothing, such as `ALL.append(ONE)`, may change whatever it names.
        for name in bound or named:
            names.setdefault(name, set()).add(statement)
    return Mentions(_frozen(names), _frozen(imports))


def _frozen(found: Mapping[str, set[T]]) -> dict[str, frozenset[T]]:
    return {name: frozenset(others) for name, others in found.items()}


def _inside(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield a statement and its parts, without those that run as statements of their own."""
    yield node
    is_whole = isinstance(node, Function | ast.ClassDef)
    for part in ast.iter_child_nodes(node):
        if is_whole or not isinstance(part, ast.stmt):
            yield from ast.walk(part)


def _imports(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.ImportFrom):
        origin = (node.module or "").rpartition(".")[2]
        yield from ((it.asname or it.name, origin, it.name) for it in node.names)
    elif isinstance(node, ast.Import):
        for it in node.names:
            yield it.asname or it.name.partition(".")[0], "", it.name.rpartition(".")[2]
