"""Python source as it is read here: parsed, its names followed to imports, and never run."""

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
    """Let `read` look at the statements of a module; what does not compile is a problem."""
    problems = DiagnosticCollector(path)
    try:
        value = read(list(module_statements(ast.parse(source, filename=path))), problems)
        return ReadResult(value, problems.found)
    except SyntaxError as error:
        # Python says 0 or -1 where it knows no place, as for an unknown encoding.
        line, column = (at if at and at > 0 else None for at in (error.lineno, error.offset))
        problems.add("plugin-syntax", one_line(error.msg), "Mend the Python code.", line, column)
    except ValueError as error:  # a number too long to print; NUL in some versions
        problems.add("plugin-syntax", one_line(str(error)), "Mend the Python code.")
    except (RecursionError, MemoryError):
        problems.add("plugin-syntax", "the code is nested too deeply", "Split long expressions.")
    return ReadResult(None, problems.found)


def statements_of(source: bytes) -> list[ast.stmt] | None:
    """Return what runs when a module is imported, `None` of one that does not compile."""
    try:
        return list(module_statements(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def module_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield what runs at import in the order of the text: also inside `if`, `try` and `with`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (Function, ast.ClassDef, ast.expr)):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def imported_names(statements: Iterable[ast.stmt], usual: Iterable[str]) -> dict[str, str]:
    """Return the full names of what a module imports.

    The `usual` names of ours stand for themselves where a star import, or nothing, says where
    they are from.
    """
    assumed = {"satchel": "satchel"} | {name: f"satchel.{name}" for name in usual}
    return assumed | dict(_imports(statements))


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full name of what an expression names, `""` for one that names nothing."""
    rest = ""
    while isinstance(node, ast.Attribute):
        rest = f".{node.attr}{rest}"
        node = node.value
    return names.get(node.id, "") + rest if isinstance(node, ast.Name) else ""


def is_satchel_name(full: str, name: str) -> bool:
    """Tell whether a full name is that of something of Satchel's, from whichever of its rooms."""
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
