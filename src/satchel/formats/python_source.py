"""Parse Python source and resolve its names to imports, without running it."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from satchel.formats.read_result import DiagnosticCollector, ReadResult
from satchel.text import one_line

T = TypeVar("T")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def read_python(
    source: bytes, path: str, read: Callable[[list[ast.stmt], DiagnosticCollector], T]
) -> ReadResult[T]:
    """Return the result of `read` for the statements of a module; report syntax errors."""
    collector = DiagnosticCollector(path)
    try:
        value = read(list(module_statements(ast.parse(source, filename=path))), collector)
        return ReadResult(value, collector.diagnostics)
    except SyntaxError as error:
        # Python uses 0 or -1 if the position is unknown, as for an unknown encoding.
        line, column = (at if at and at > 0 else None for at in (error.lineno, error.offset))
        collector.add("plugin-syntax", one_line(error.msg), "Fix the Python code.", line, column)
    except ValueError as error:  # a number too long to print; NUL in some versions
        collector.add("plugin-syntax", one_line(str(error)), "Fix the Python code.")
    except (RecursionError, MemoryError):
        collector.add("plugin-syntax", "the code is nested too deeply", "Split long expressions.")
    return ReadResult(None, collector.diagnostics)


def statements_of(source: bytes) -> list[ast.stmt] | None:
    """Return the statements that run at import, `None` if the module does not compile."""
    try:
        return list(module_statements(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def module_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run at import, in order, also inside `if`, `try` and `with`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (Function, ast.ClassDef, ast.expr)):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def imported_names(statements: Iterable[ast.stmt]) -> dict[str, str]:
    """Return the full names of the names that a module imports.

    `tool` is Satchel's if no import defines it, as with a star import.
    """
    names = {"satchel": "satchel", "tool": "satchel.tool"}
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            names |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name that an expression refers to, `""` if it is unknown."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest = f".{node.attr}{rest}"
        node = node.value
    return names.get(node.id, "") + rest if isinstance(node, ast.Name) else ""


def arguments_of(function: Function) -> list[tuple[ast.arg, bool]]:
    """Return the parameters of a function, each with whether it has a default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    pairs = [(argument, at >= first_default) for at, argument in enumerate(positional)]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return pairs + [(argument, default is not None) for argument, default in keyword_only]


def texts_in(node: ast.expr) -> list[str]:
    """Return one text, those in a list, or the keys of a dict, as far as they are constants."""
    parts: list[Any]
    match node:
        case ast.List() | ast.Tuple() | ast.Set():
            parts = node.elts
        case ast.Dict():
            parts = node.keys
        case _:
            parts = [node]
    values = (part.value for part in parts if isinstance(part, ast.Constant))
    return [value for value in values if isinstance(value, str)]
