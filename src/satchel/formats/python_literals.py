"""The values of a module's names, as far as its source says them literally; nothing is run."""

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from inspect import cleandoc
from textwrap import dedent
from typing import Any, TypeGuard

from satchel.formats.python_source import (
    Function,
    full_name,
    imported_names,
    is_satchel_name,
    statements_of,
)

_TIDIED: dict[str, Callable[[str], str]] = {
    "textwrap.dedent": dedent,
    "inspect.cleandoc": cleandoc,
}
_MOST_WORK = 2_000_000
"""Names may stand for names that stand for names: what a few lines unfold to has a bound."""
_STEP = 10


class NotLiteralError(Exception):
    """Only running the code can tell what an expression is."""


class Literals:
    """What the names of one module stand for; it lives as long as one reading of it."""

    def __init__(self, statements: list[ast.stmt], usual: Iterable[str]) -> None:
        self.bound = dict(_bindings(statements))
        """Each name with the expression that it was assigned last, `None` for another thing."""
        # What the module defines itself is not ours, whatever it is called.
        self._names = imported_names(statements, (name for name in usual if name not in self.bound))
        self._followed: set[str] = set()
        self._left = _MOST_WORK

    def is_call_of(self, node: ast.expr | None, name: str) -> TypeGuard[ast.Call]:
        """Tell whether an expression calls something of Satchel's, however it was imported."""
        return isinstance(node, ast.Call) and is_satchel_name(
            full_name(node.func, self._names), name
        )

    def resolved(self, node: ast.expr) -> ast.expr:
        """Return the expression that a name stands for; other expressions are themselves."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and node.id not in seen and self._left > 0:
            seen.add(node.id)
            self._left -= _STEP
            node = self.bound.get(node.id) or node
        return node

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression that is made of literals. Raises `NotLiteralError`."""
        try:
            return self._value(node)
        except RecursionError:  # names that stand for names, or a sum of very many texts
            raise NotLiteralError from None

    def items(self, node: ast.expr) -> tuple[list[ast.expr], bool]:
        """Return the items of a list or tuple as far as they are known, and whether they are all.

        An item may be a name, or anything else.
        """
        found: list[ast.expr] = []
        with suppress(NotLiteralError, RecursionError):
            for item in self._items(node):
                found.append(item)  # noqa: PERF402 - what came before the unknown is kept
            return found, True
        return found, False

    def written(self, node: ast.expr) -> str:
        """Return an expression as Python writes its value, or else as it stands."""
        try:
            return repr(self.value(node))
        except NotLiteralError:
            return ast.unparse(node)

    def _value(self, node: ast.expr) -> Any:
        self._spend(_STEP)
        match node:
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
                return self._constant(node)
            case ast.Name():
                with self._following(node) as target:
                    return self._value(target)
            case ast.List() | ast.Tuple():
                items = [self._value(item) for item in node.elts]
                return items if isinstance(node, ast.List) else tuple(items)
            case ast.Dict():
                return self._mapping(node)
            case ast.BinOp(op=ast.Add()):
                return self._joined(self._value(node.left), self._value(node.right))
            case ast.Call():
                return self._tidied(node)
        raise NotLiteralError

    def _items(self, node: ast.expr) -> Iterator[ast.expr]:
        self._spend(_STEP)
        match node:
            case ast.Name():
                with self._following(node) as target:
                    yield from self._items(target)
            case ast.List() | ast.Tuple():
                for item in node.elts:
                    self._spend(_STEP)
                    if isinstance(item, ast.Starred):
                        yield from self._items(item.value)
                    else:
                        yield item
            case ast.BinOp(op=ast.Add()):
                yield from self._items(node.left)
                yield from self._items(node.right)
            case _:
                raise NotLiteralError

    def _constant(self, node: ast.expr) -> Any:
        try:
            return self._counted(ast.literal_eval(node))
        except ValueError:  # such as `not 1`
            raise NotLiteralError from None

    def _mapping(self, node: ast.Dict) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:  # `**other`
                other = self._value(item)
                if not isinstance(other, dict):
                    raise NotLiteralError
                made |= other
                continue
            try:
                made[self._value(key)] = self._value(item)
            except TypeError:  # a key that cannot be hashed
                raise NotLiteralError from None
        return made

    def _joined(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) and isinstance(right, str):
            return self._counted(left + right)
        raise NotLiteralError

    def _tidied(self, call: ast.Call) -> str:
        """Return a text without the blanks that its place in the source gives it."""
        tidy: Callable[[str], str]
        match call:
            case ast.Call(func=ast.Attribute(value=owner, attr="strip"), args=[], keywords=[]):
                text, tidy = self._value(owner), str.strip
            case ast.Call(args=[given], keywords=[]) if name := _tidier(call.func, self._names):
                text, tidy = self._value(given), _TIDIED[name]
            case _:
                raise NotLiteralError
        if not isinstance(text, str):
            raise NotLiteralError
        self._spend(len(text))
        return tidy(text)

    @contextmanager
    def _following(self, name: ast.Name) -> Iterator[ast.expr]:
        """Give what a name was assigned, unless that leads back to the name."""
        target = self.bound.get(name.id)
        if target is None or name.id in self._followed:
            raise NotLiteralError
        self._followed.add(name.id)
        try:
            yield target
        finally:
            self._followed.discard(name.id)

    def _counted(self, value: Any) -> Any:
        self._spend(len(value) if isinstance(value, str | bytes) else 0)
        return value

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise NotLiteralError


def may_hold(source: bytes, name: str) -> bool:
    """Tell whether a module may have a name once it has run, as far as its text says it.

    One that does not compile may have any: it is told for another reason.
    """
    statements = statements_of(source)
    for node in statements or ():
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, Function | ast.ClassDef):
            names = {node.name}
        else:
            expressions = (it for it in ast.iter_child_nodes(node) if not isinstance(it, ast.stmt))
            names = {it.id for top in expressions for it in ast.walk(top) if _is_stored(it)}
        if names & {name, "*"}:
            return True
    return statements is None


def _bindings(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that statements bind, in their order, with what they are assigned."""
    for node in statements:
        match node:
            case ast.Assign():
                for target in node.targets:
                    whole = isinstance(target, ast.Name)
                    names = (it for it in ast.walk(target) if _is_stored(it))
                    yield from ((it.id, node.value if whole else None) for it in names)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name, None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, None
            case ast.ClassDef(name=name):
                yield name, None
            case ast.Import() | ast.ImportFrom():
                yield from ((it.asname or it.name.partition(".")[0], None) for it in node.names)


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _tidier(function: ast.expr, names: dict[str, str]) -> str:
    full = full_name(function, names)
    return full if full in _TIDIED else ""
