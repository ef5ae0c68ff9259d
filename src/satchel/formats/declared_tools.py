"""Find the tools that Python source declares, without running it."""

import ast
import hashlib
from collections.abc import Collection, Iterable
from dataclasses import field
from typing import Any

from satchel.formats.python_source import (
    Function,
    arguments_of,
    full_name,
    imported_names,
    read_python,
    statements_of,
    texts_in,
)
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.lazy_dataclass import dataclass
from satchel.names import group_names, near_misses, sentence_of
from satchel.text import one_line

_EXAMPLE_FIX = 'Write the arguments of each as a model would, such as [{"city": "Oslo"}].'


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTool:
    """A function decorated as a tool.

    `line` is the line of its `def`, counted from 1. `digest` changes when its code changes, but
    not when it moves.
    """

    name: str
    description: str
    signature: str
    groups: tuple[str, ...]
    line: int
    digest: str
    needs: tuple[str, ...] = ()
    """The state fields without a default, as far as the decorator lists them."""
    function: str = field(default="", compare=False)
    """The name of its `def`."""
    path: str = field(default="", compare=False)
    """The file with the function, if a manifest has several."""
    example_faults: tuple[str, ...] = field(default=(), compare=False)
    """What is wrong with its examples."""


def declared_tools(
    source: bytes, path: str, chosen: frozenset[str] = frozenset()
) -> ReadResult[tuple[DeclaredTool, ...]]:
    """Return the tools of a module in the order of their `def`.

    The functions in `chosen` are tools even without a decorator, under the name of their `def`.
    """

    def read(
        statements: list[ast.stmt], collector: DiagnosticCollector
    ) -> tuple[DeclaredTool, ...]:
        tools = tuple(_tools(statements, imported_names(statements), chosen))
        for tool in tools:
            for fault in tool.example_faults:
                message = f"tool {quoted(tool.name)}: {fault}"
                collector.add("tool-example-unfit", message, _EXAMPLE_FIX, tool.line)
        return tools

    return read_python(source, path, read)


def defines_setup(source: bytes) -> bool:
    """Return whether a module defines `setup(ctx)`, a function callable with one argument."""
    functions = [node for node in statements_of(source) or () if isinstance(node, Function)]
    last = next((node for node in reversed(functions) if node.name == "setup"), None)
    if last is None:
        return False
    parameters = last.args
    positional = [*parameters.posonlyargs, *parameters.args]
    required = len(positional) - len(parameters.defaults)
    takes_one = bool(positional or parameters.vararg) and required <= 1
    return takes_one and None not in parameters.kw_defaults


def _tools(
    statements: list[ast.stmt], names: dict[str, str], chosen: frozenset[str]
) -> Iterable[DeclaredTool]:
    # As in the module's namespace, a later definition replaces an earlier one.
    functions = {node.name: node for node in statements if isinstance(node, Function)}
    public = {name: node for name, node in functions.items() if name[0] != "_" or name in chosen}
    tools = (_tool(node, names, is_chosen=name in chosen) for name, node in public.items())
    return [tool for tool in tools if tool]


def _tool(function: Function, names: dict[str, str], *, is_chosen: bool) -> DeclaredTool | None:
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = full_name(call.func if call else decorator, names)
        if name.startswith("satchel.") and name.endswith(".tool"):
            return _declared(function, call)
    return _declared(function, None) if is_chosen else None


def _declared(function: Function, call: ast.Call | None) -> DeclaredTool:
    options = {keyword.arg: keyword.value for keyword in call.keywords} if call else {}
    texts = {key: [*map(one_line, texts_in(value))] for key, value in options.items()}
    first_paragraph = one_line((ast.get_docstring(function) or "").split("\n\n")[0])
    name = next(iter(texts.get("name", ())), function.name)
    description = next(iter(texts.get("description", ())), first_paragraph)
    required = {argument.arg for argument, has_default in arguments_of(function) if not has_default}
    return DeclaredTool(
        name=name,
        description=description or sentence_of(name),
        signature=_signature(function),
        groups=group_names(texts.get("group", ())),
        needs=tuple(name for name in texts.get("state", ()) if name in required),
        line=function.lineno,
        digest=hashlib.blake2b(ast.dump(function).encode(), digest_size=16).hexdigest(),
        function=function.name,
        example_faults=_example_faults(function, options.get("examples"), texts.get("state", ())),
    )


def _signature(function: Function) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({ast.unparse(function.args)}){returns}"


def _example_faults(
    function: Function, node: ast.expr | None, hidden: Collection[str]
) -> tuple[str, ...]:
    """Return what is wrong with literal examples; computed ones are not checked."""
    examples = _literal(node)
    if examples is None:
        return ()
    if not isinstance(examples, list | tuple) or not all(isinstance(e, dict) for e in examples):
        return ("the examples are not a list of mappings",)
    # Another decorator may change the parameters.
    is_plain = function.args.kwarg is None and len(function.decorator_list) == 1
    faults = (
        _example_fault(str(name), hidden, _parameters(function) if is_plain else None)
        for example in examples
        for name in example
    )
    return tuple(dict.fromkeys(fault for fault in faults if fault))


def _example_fault(name: str, hidden: Collection[str], parameters: list[str] | None) -> str:
    if name in hidden:
        return f"an example names {quoted(name)}, which configuration fills in"
    if parameters is None or name in parameters:
        return ""
    near = near_misses(name, [item for item in parameters if item not in hidden])
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"an example names {quoted(name)}, which is not a parameter{hint}"


def _parameters(function: Function) -> list[str]:
    args = function.args
    vararg = [args.vararg] if args.vararg else []
    return [item.arg for item in (*args.posonlyargs, *args.args, *args.kwonlyargs, *vararg)]


def _literal(node: ast.expr | None) -> Any:
    """Return the value of a literal, or `None` for anything else."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
