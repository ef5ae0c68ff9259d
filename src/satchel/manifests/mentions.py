"""Which names of a module lead to which others, as its text says it; nothing is run."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from satchel.manifests.python import Function, statements_of


@dataclass(frozen=True, slots=True)
class Mentions:
    """What the names of a module may be made of."""

    names: Mapping[str, frozenset[str]]
    """Each name that is bound or changed, with those that stand beside it there."""
    imports: tuple[tuple[str, str, str], ...]
    """A name here, the last part of the module that it comes from, and the name there.

    The name may be that of a module, or `*`.
    """


def mentions_in(source: bytes) -> Mentions:
    """Read what each statement of a module makes of what."""
    names: dict[str, set[str]] = {}
    imports: list[tuple[str, str, str]] = []
    for node in statements_of(source) or ():
        inside = list(_inside(node))
        imports += [it for part in inside for it in _imports(part)]
        named = {it.id for it in inside if isinstance(it, ast.Name)}
        if isinstance(node, Function | ast.ClassDef):
            bound = {node.name}
        else:
            stores = (it for it in inside if isinstance(it, ast.Name))
            bound = {it.id for it in stores if isinstance(it.ctx, ast.Store)}
        # A statement that binds nothing, such as `ALL.append(ONE)`, may change whatever it names.
        for name in bound or named:
            names.setdefault(name, set()).update(named)
    return Mentions({name: frozenset(others) for name, others in names.items()}, tuple(imports))


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
