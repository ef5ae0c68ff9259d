"""What the source of a plugin declares, read without running a line of it."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from satchel.formats.example_checks import example_faults
from satchel.formats.python_source import (
    Function,
    full_name,
    imported_names,
    is_satchel_name,
    read_python,
    statements_of,
)
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.names import group_names
from satchel.text import one_line

_EXAMPLE_FIX = 'Write the arguments of each as a model would, such as [{"city": "Oslo"}].'


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTool:
    """A function decorated as a tool.

    `line` is the line of its `def`, counted from 1; `digest` differs when its code does, wherever
    it stands.
    """

    name: str
    description: str
    signature: str
    groups: tuple[str, ...]
    line: int
    digest: str
    function: str = field(default="", compare=False)
    """The name of its `def`."""
    path: str = field(default="", compare=False)
    """The file that it stands in, where one manifest brings several."""
    example_faults: tuple[str, ...] = field(default=(), compare=False)
    """What is wrong with its examples."""


def declared_tools(
    source: bytes, path: str, chosen: frozenset[str] = frozenset()
) -> ReadResult[tuple[DeclaredTool, ...]]:
    """Find the tools of a module in the order of their `def`, without running it.

    `chosen` are functions that count without a decorator; they are named as their `def` is.
    """

    def read(statements: list[ast.stmt], problems: DiagnosticCollector) -> tuple[DeclaredTool, ...]:
        tools = tuple(_tools(statements, imported_names(statements, ["tool"]), chosen))
        for tool in tools:
            for fault in tool.example_faults:
                told = f"tool {quoted(tool.name)}: {fault}"
                problems.add("tool-example-unfit", told, _EXAMPLE_FIX, tool.line)
        return tools

    return read_python(source, path, read)


def defines_setup(source: bytes) -> bool:
    """Tell whether a module defines `setup(ctx)`: a function that one argument is enough for."""
    functions = [node for node in statements_of(source) or () if isinstance(node, Function)]
    last = next((node for node in reversed(functions) if node.name == "setup"), None)
    if last is None:
        return False
    given = last.args
    positional = [*given.posonlyargs, *given.args]
    needed = len(positional) - len(given.defaults)
    takes_one = bool(positional or given.vararg) and needed <= 1
    return takes_one and None not in given.kw_defaults


def _tools(
    statements: list[ast.stmt], names: dict[str, str], chosen: frozenset[str]
) -> Iterable[DeclaredTool]:
    # Like the namespace of the module: a later definition takes the place of an earlier one.
    functions = {node.name: node for node in statements if isinstance(node, Function)}
    public = {name: node for name, node in functions.items() if name[0] != "_" or name in chosen}
    tools = (_tool(node, names, is_chosen=name in chosen) for name, node in public.items())
    return [tool for tool in tools if tool]


def _tool(function: Function, names: dict[str, str], *, is_chosen: bool) -> DeclaredTool | None:
    """Return what the function declares, or None if it is not decorated as a tool."""
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if _is_tool(call.func if call else decorator, names):
            return _declared(function, call)
    return _declared(function, None) if is_chosen else None


def _declared(function: Function, call: ast.Call | None) -> DeclaredTool:
    given = dict(_literals(call)) if call else {}
    return DeclaredTool(
        name=given.get("name", function.name),
        description=given.get("description", _first_paragraph(function)),
        signature=_signature(function),
        groups=_groups(call),
        line=function.lineno,
        digest=hashlib.blake2b(ast.dump(function).encode(), digest_size=16).hexdigest(),
        function=function.name,
        example_faults=example_faults(function, call) if call else (),
    )


def _is_tool(decorator: ast.expr, names: dict[str, str]) -> bool:
    """Tell whether an expression names Satchel's decorator, by whatever way it was imported."""
    return is_satchel_name(full_name(decorator, names), "tool")


def _literals(call: ast.Call) -> Iterator[tuple[str, str]]:
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield keyword.arg, one_line(value.value)


def _groups(call: ast.Call | None) -> tuple[str, ...]:
    """Return the groups that a decorator names, one or several."""
    for keyword in call.keywords if call else ():
        if keyword.arg == "group":
            value = keyword.value
            items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            texts = [item.value for item in items if isinstance(item, ast.Constant)]
            return group_names([one_line(text) for text in texts if isinstance(text, str)])
    return ()


def _first_paragraph(function: Function) -> str:
    return one_line((ast.get_docstring(function) or "").split("\n\n")[0])


def _signature(function: Function) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({ast.unparse(function.args)}){returns}"
