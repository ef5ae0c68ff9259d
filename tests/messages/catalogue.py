"""List every text of the source that a person or a model may read.

A text is any string literal with two words or more, and every argument of a call that makes a
message. Calls are recognized by their form, not by a list of helpers: a call with a code of `RULES`
makes a diagnostic, and a call whose name ends in "Error" makes an error.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import satchel
from satchel.diagnostics import RULES, Diagnostic, make_diagnostic
from satchel.tools import FunctionTool, failure, tool

SOURCE = Path(satchel.__file__).parent

# The names come from the objects, so the table follows their renaming.
MAKERS = {
    make_diagnostic.__name__: "diagnostic",
    Diagnostic.__name__: "diagnostic",
    failure.__name__: "failure",
}
CLI = {
    *("say", "out", "wrapped", "echo", "confirm", "option"),
    *("UsageError", "BadParameter", "ClickException"),
}
"""Calls of click and of the console, in modules that use them."""
LOG_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
DESCRIBED = {"command": "command", "group": "command", tool.__name__: "tool"}
"""Decorators of functions whose docstring is shown."""
WITHOUT_TEXT = {
    *("compile", "TypeVar", "cast", "ParamSpec", "get", "getLogger", "NewType", "lazy_exports"),
}
"""Calls whose strings nobody reads."""
WRAPPERS = {"one_line", "shorten", "visible", "dedent", "join", "format"}
"""Functions of a text that return nearly the same text."""
NO_TEXT = re.compile(
    r"(.*_)?(line|lineno|lines|column|where|place|limits|problems|collector|call_id|at|len)"
)
"""Arguments of messages that are no text."""
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)


def packages() -> list[str]:
    """Return the names of all packages; the modules beside them belong to `satchel`."""
    return ["satchel", *sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))]


def entries_of_package(package: str) -> list[str]:
    """Return the entries of a package, in the order of its modules."""
    paths = SOURCE.glob("*.py") if package == "satchel" else (SOURCE / package).rglob("*.py")
    texts = [path.read_text(encoding="utf-8") for path in sorted(paths)]
    return [entry for text in texts for entry in entries_of(text)]


def entries_of(source: str) -> list[str]:
    """Return the entries of one module, in the order of the module."""
    return Module(source).entries()


class Module:
    """One module, and its texts that already have an entry."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self.has_cli = "click" in source or "console" in source or "Terminal" in source
        self.used: set[ast.AST] = set()
        self.described = {
            name.id
            for call in ast.walk(self.tree)
            if isinstance(call, ast.Call) and _name(call.func) == FunctionTool.__name__
            for name in call.args[:1]
            if isinstance(name, ast.Name)
        }
        # Or of one of several: `fn = a if name == "a" else b`.
        self.described |= {
            function.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Assign) and _name(node.targets[0]) in self.described
            for function in ast.walk(node.value)
            if isinstance(function, ast.Name)
        }

    def entries(self) -> list[str]:
        nodes = list(_in_order(self.tree))
        calls = {node: self.call(node) for node in nodes if isinstance(node, ast.Call)}
        entries = [calls.get(node) or self.docstring(node) or self.string(node) for node in nodes]
        return [re.sub(r"\n(?=.)", "\n    ", entry) for entry in entries if entry]

    def docstring(self, node: ast.AST) -> str | None:
        """Return the entry of a function whose docstring is a description."""
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        decorators = {_name(getattr(item, "func", item)) for item in node.decorator_list}
        kinds = [kind for name, kind in DESCRIBED.items() if name in decorators]
        kinds += ["tool"] * (node.name in self.described)
        text = ast.get_docstring(node)
        return f"{kinds[0]} {node.name}: {text}" if kinds and text else None

    def call(self, node: ast.Call) -> str | None:
        """Return the entry of a call that makes a message, or that has a text as argument."""
        kind, name = self.kind(node), _name(node.func)
        arguments = [*node.args, *(item.value for item in node.keywords)]
        if name in WITHOUT_TEXT or (kind == "error" and not arguments):
            return None
        if kind is None:
            texts = [item for item in arguments if is_text(item) and not self.has_entry(item)]
            self.use(texts)
            shown = " | ".join(map(template, texts))
            return f"text {self.owner(node)}: {shown}" if texts else None
        shown_nodes = [item for item in arguments if _may_be_text(item)]
        shown = [self.resolved(item) for item in shown_nodes]
        self.use(shown_nodes)
        if kind == "diagnostic" and (codes := [text for text in shown if text in RULES]):
            name, shown = codes[0], shown[shown.index(codes[0]) + 1 :]
        elif kind == "failure" and len(shown) > 1:
            name, *shown = shown
        if any(re.search("[A-Za-z]", re.sub(r"\{[^{}]*\}", "", text)) for text in shown):
            return f"{kind} {name}: {' | '.join(filter(None, shown))}"
        names = " | ".join(filter(None, shown))
        return f"{kind} {name}: (computed in {self.owner(node)}) {names}".rstrip()

    def has_entry(self, node: ast.expr) -> bool:
        """Return whether a text has its own entry."""
        return node in self.used or (isinstance(node, ast.Call) and self.kind(node) is not None)

    def kind(self, node: ast.Call) -> str | None:
        """Return the kind of message that a call makes, or `None`."""
        name = _name(node.func)
        strings = {item.value for item in node.args if isinstance(item, ast.Constant)}
        if any(isinstance(item, str) and item in RULES for item in strings):
            return "diagnostic"
        if name in LOG_LEVELS and "log" in ast.unparse(node.func).lower():
            return "log"
        if name in MAKERS:
            return MAKERS[name]
        if name in CLI:
            return "cli" if self.has_cli else None
        return "error" if name.endswith("Error") else None

    def string(self, node: ast.AST) -> str | None:
        """Return the entry of a text that is not an argument: returned, assigned, or in a table."""
        if not isinstance(node, ast.Constant | ast.JoinedStr) or not is_text(node):
            return None
        above, inner = self.parents[node], node
        while not isinstance(above, ast.stmt):
            if inner in self.used or isinstance(above, ast.JoinedStr):
                return None
            if isinstance(above, ast.Call) and _name(above.func) in WITHOUT_TEXT:
                return None
            above, inner = self.parents[above], above
        if inner in self.used or (isinstance(above, ast.Expr) and inner is node):
            return None
        return f"text {self.owner(node)}: {template(node)}"

    def resolved(self, node: ast.expr) -> str:
        """Return the template of an argument; a variable is replaced by its assigned texts."""
        if not isinstance(node, ast.Name):
            return template(node)
        values = [value for value in self.values(node) if is_text(value)]
        self.use(values)
        return " / ".join(map(template, values)) or template(node)

    def values(self, node: ast.Name) -> Iterator[ast.expr]:
        """Yield the values assigned to a variable in its function."""
        for item in ast.walk(self.function(node)):
            if not isinstance(item, ast.Assign | ast.NamedExpr):
                continue
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            for target in targets:
                pairs = [(target, item.value)]
                if isinstance(target, ast.Tuple) and isinstance(item.value, ast.Tuple):
                    pairs = list(zip(target.elts, item.value.elts, strict=True))
                yield from (
                    value
                    for name, value in pairs
                    if isinstance(name, ast.Name) and name.id == node.id
                )

    def use(self, nodes: Iterable[ast.AST]) -> None:
        self.used.update(item for node in nodes for item in ast.walk(node))

    def function(self, node: ast.AST) -> ast.AST:
        while node in self.parents and not isinstance(node, SCOPES):
            node = self.parents[node]
        return node

    def owner(self, node: ast.AST) -> str:
        """Return the name of the function or module-level variable that contains a text."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, (*SCOPES, ast.ClassDef)):
                return node.name
            if isinstance(node, ast.Assign) and isinstance(self.parents[node], ast.Module):
                return _name(node.targets[0])
            if isinstance(node, ast.AnnAssign) and isinstance(self.parents[node], ast.Module):
                return _name(node.target)
        return "module"


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)


def is_text(node: ast.expr) -> bool:
    """Return whether an expression is a text to read, not only a key, a pattern or a path."""
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return False
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(map(is_text, node.elts))
    bare = re.sub(r"\{[^{}]*\}", "X", template(node))
    if re.fullmatch(r"[\w\[\], |.]+", bare) and "|" in bare:
        return False  # a type
    return bool(re.search(r"[A-Za-z]{2,}[,.:;]? \S|\S [A-Za-z]{2,}", bare))


def _may_be_text(node: ast.expr) -> bool:
    """Return whether an argument of a message may be a text, not a number, place or flag."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return not NO_TEXT.fullmatch(_name(node))
    if isinstance(node, ast.Call):
        return is_text(node) or (
            _name(node.func)[:1].islower() and not NO_TEXT.fullmatch(_name(node))
        )
    return isinstance(node, ast.JoinedStr | ast.BinOp | ast.IfExp | ast.BoolOp | ast.Starred)


def template(node: ast.expr) -> str:  # noqa: PLR0911 - a case for each kind of expression
    """Return the text of an expression, with `{name}` for its unknown parts."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(map(template, node.values))
        case ast.FormattedValue():
            return (
                template(node.value)
                if isinstance(node.value, ast.IfExp) or is_text(node.value)
                else f"{{{_name(node.value)}}}"
            )
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return template(node.left) + template(node.right)
        case ast.IfExp():
            return f"({template(node.body)} / {template(node.orelse)})"
        case ast.Call(args=[*args]) if texts := [item for item in args if is_text(item)]:
            shown = ", ".join(map(template, texts))
            return shown if _name(node.func) in WRAPPERS else f"{{{_name(node.func)}: {shown}}}"
        case ast.List() | ast.Tuple() | ast.Set():
            return ", ".join(map(template, node.elts))
    return f"{{{_name(node)}}}"


def _name(node: ast.AST) -> str:  # noqa: PLR0911 - a case for each kind of expression
    """Return a short name of an expression."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Call():
            return _name(node.func)
        case ast.Subscript() | ast.Await() | ast.Starred() | ast.FormattedValue():
            return _name(node.value)
        case ast.BinOp() | ast.Compare():
            return _name(node.left)
        case ast.BoolOp():
            return _name(node.values[0])
        case ast.Constant():
            return str(node.value)
    return type(node).__name__.lower()
