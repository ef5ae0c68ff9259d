"""What a tool's examples have against them, as far as its source says it without being run."""

import ast
from collections.abc import Iterator
from typing import Any

from satchel.formats.read_result import quoted
from satchel.names import near_misses


def example_faults(
    function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call
) -> tuple[str, ...]:
    """Say what no model could send; what is computed when the code runs is not judged."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    examples = _literal(given.get("examples"))
    if examples is None:
        return ()
    if not isinstance(examples, list | tuple) or not all(isinstance(e, dict) for e in examples):
        return ("the examples are no list of mappings",)
    state = _literal(given.get("state"))
    several = state if isinstance(state, list | tuple | set) else [state]
    hidden = {name for name in several if isinstance(name, str)}
    # Another decorator may take other arguments than the function has.
    is_plain = function.args.kwarg is None and len(function.decorator_list) == 1
    faults = (
        _fault(str(name), hidden, _parameters(function) if is_plain else None)
        for example in examples
        for name in example
    )
    return tuple(dict.fromkeys(fault for fault in faults if fault))


def _fault(name: str, hidden: set[str], known: list[str] | None) -> str:
    if name in hidden:
        return f"an example names {quoted(name)}, which configuration fills in"
    if known is None or name in known:
        return ""
    near = near_misses(name, [item for item in known if item not in hidden])
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"an example names {quoted(name)}, which is no parameter{hint}"


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [item.arg for item in _all(function.args)]


def _all(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    if arguments.vararg:
        yield arguments.vararg


def _literal(node: ast.expr | None) -> Any:
    """Return the value of a literal, or `None` for anything else."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
