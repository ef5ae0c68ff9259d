"""Parse Python source and resolve its names to imports, without running it."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

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


def imported_names(statements: Iterable[ast.stmt], assumed: Iterable[str]) -> dict[str, str]:
    """Return the full names of what a module imports.

    Names in `assumed` are taken to be Satchel's if no import defines them, as with a star import.
    """
    defaults = {"satchel": "satchel"} | {name: f"satchel.{name}" for name in assumed}
    return defaults | dict(_imports(statements))


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name that an expression refers to, `""` if it is unknown."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest = f".{node.attr}{rest}"
        node = node.value
    return names.get(node.id, "") + rest if isinstance(node, ast.Name) else ""


def is_satchel_name(full: str, name: str) -> bool:
    """Return whether a full name is `name` in any package of Satchel."""
    return full.startswith("satchel.") and full.endswith(f".{name}")


def _imports(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield each imported name with the full name of what it stands for."""
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            for alias in node.names:
                yield alias.asname or alias.name, f"{origin}.{alias.name}"
