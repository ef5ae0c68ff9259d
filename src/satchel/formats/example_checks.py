"""Check the examples of a tool against its parameters, from its source alone."""

import ast
from typing import Any

from satchel.formats.read_result import quoted
from satchel.names import near_misses


def example_faults(
    function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call
) -> tuple[str, ...]:
    """Return what is wrong with literal examples; computed ones are not checked."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    examples = _literal(options.get("examples"))
    if examples is None:
        return ()
    if not isinstance(examples, list | tuple) or not all(isinstance(e, dict) for e in examples):
        return ("the examples are not a list of mappings",)
    state = _literal(options.get("state"))
    state_names = state if isinstance(state, list | tuple | set) else [state]
    hidden = {name for name in state_names if isinstance(name, str)}
    # Another decorator may change the parameters.
    is_plain = function.args.kwarg is None and len(function.decorator_list) == 1
    faults = (
        _fault(str(name), hidden, _parameters(function) if is_plain else None)
        for example in examples
        for name in example
    )
    return tuple(dict.fromkeys(fault for fault in faults if fault))


def _fault(name: str, hidden: set[str], parameters: list[str] | None) -> str:
    if name in hidden:
        return f"an example names {quoted(name)}, which configuration fills in"
    if parameters is None or name in parameters:
        return ""
    near = near_misses(name, [item for item in parameters if item not in hidden])
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return f"an example names {quoted(name)}, which is not a parameter{hint}"


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    args = function.args
    vararg = [args.vararg] if args.vararg else []
    return [item.arg for item in (*args.posonlyargs, *args.args, *args.kwonlyargs, *vararg)]


def _literal(node: ast.expr | None) -> Any:
    """Return the value of a literal, or `None` for anything else."""
    try:
        return ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
