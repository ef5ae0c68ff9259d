"""Law 3 as a check: no module and no class keeps what changes.

Takes the name of a module, such as `prompt.notes`, and a source text, and returns what it has
against it: so `test_the_laws_can_fail.py` can try texts that nobody wrote.

It cannot see what a function does with a container that it is given.
"""

import ast
from collections.abc import Iterator

from law_of_floors import imports

KEPT = {
    ("sources.fresh", "_fresh"): "the interpreter has one list of finders for the process",
    ("sources.snapshots", "_finder"): "the interpreter has one list of finders for the process",
    ("sources.swapping", "_lock"): "the interpreter has one table of modules for the process",
    ("tools.calling", "_THREADS"): "idle threads are the process's, whoever calls next",
    ("sources.importer", "_serial"): "module names must differ in the whole process",
}
"""Values of a module that can change, each with the reason."""

WRITTEN_INTO = {
    "sources.fresh": (
        "plugins come and go in the interpreter's own tables",
        {"_fresh", "sys"},
    ),
    "sources.importer": ("plugins come and go in the interpreter's own tables", {"sys"}),
    "sources.swapping": ("plugins come and go in the interpreter's own tables", {"sys"}),
    "sources.snapshots": (
        "plugins come and go in the interpreter's own tables",
        {"_finder", "linecache", "sys"},
    ),
    "sources.process": ("what a plugin did to the interpreter is put back", {"os", "sys"}),
    "sources.scratch": ("what the user set is taken away for a while, and put back", {"os"}),
    "cli.console": ("data goes to stdout, and nothing of a plugin's", {"sys"}),
    "cli.entry": ("data goes to stdout, and nothing of a plugin's", {"sys"}),
}
"""Names that a module has from elsewhere and writes into, each with the reason."""

FROZEN = {"field", "frozenset", "tuple", "re.compile", "MappingProxyType", "TypeVar"} | {
    "logging.getLogger",
    "json.JSONEncoder",
    "Nothing",
    "ToolContext",
    "LoopRunner",
    "ThreadRunner",
    "ContextVar",
    "getattr",
    "pluggy.HookspecMarker",
    "pluggy.HookimplMarker",
    "click.option",
    "click.make_pass_decorator",
}
"""Calls whose result does not change, whatever they are given; `field` is for each object."""

TABLES = {"dict.fromkeys", "str.maketrans"}
"""Calls that make a table, which is a constant if its name says so."""

WRITERS = {"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert"} | {
    *("pop", "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "update"),
    *("subtract", "difference_update", "intersection_update", "symmetric_difference_update"),
    *("__setitem__", "__delitem__", "__setattr__", "put"),
}

_LITERALS = ast.List | ast.Dict | ast.Set
_COMPREHENSIONS = ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def against_statelessness(module: str, source: str) -> list[str]:
    """Nothing in a module or a class can change, and importing it does nothing."""
    tree = ast.parse(source)
    faults = [] if module == "__main__" else _faults_of_statements(module, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            faults.append(f"global {', '.join(node.names)}")
        elif isinstance(node, _FUNCTIONS):
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            faults += [
                f"the default {ast.unparse(default)}: {fault}"
                for default in defaults
                for fault in _changeable(default, is_constant=False)
            ]
    writes = _Writes(tree, WRITTEN_INTO.get(module, ("", set()))[1])
    writes.visit(tree)
    return [f"{module}: {fault}" for fault in faults + writes.found]


def _faults_of_statements(module: str, tree: ast.Module) -> list[str]:
    faults = []
    for node in _standing(tree.body):
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            faults.append(f"importing runs {ast.unparse(node)}")
        elif isinstance(node, ast.AugAssign):
            faults.append(f"{ast.unparse(node)} changes what is there")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            name = ast.unparse(targets[0])
            if (module, name) in KEPT or (name == "__all__" and isinstance(node.value, ast.List)):
                continue
            is_constant = all(_is_constant(ast.unparse(target)) for target in targets)
            faults += [f"{name}: {fault}" for fault in _changeable(node.value, is_constant)]
    return faults


def _standing(body: list[ast.stmt], *, into_classes: bool = True) -> Iterator[ast.stmt]:
    """Yield the statements that importing runs: those of the module and of its classes."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.ClassDef) and not into_classes:
            continue
        blocks = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
        blocks += [part.body for part in getattr(node, "handlers", [])]
        blocks += [part.body for part in getattr(node, "cases", [])]
        for block in blocks:
            yield from _standing(block, into_classes=into_classes)


def _is_constant(name: str) -> bool:
    return name.isidentifier() and name.isupper()


def _changeable(node: ast.AST, is_constant: bool) -> Iterator[str]:
    """Say what in a value can change; a literal that is not empty is fine in a constant."""
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, _COMPREHENSIONS):
        yield "a comprehension"
    elif isinstance(node, _LITERALS):
        if not (node.keys if isinstance(node, ast.Dict) else node.elts):
            yield "an empty container"
        elif not is_constant:
            yield "a container whose name is not upper case"
    elif isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if called not in FROZEN and not (called in TABLES and is_constant):
            yield f"{called}() may make something that changes"
        return
    elif isinstance(node, ast.Subscript):  # `Callable[[int], str]` holds no list
        yield from _changeable(node.value, is_constant)
        return
    for child in ast.iter_child_nodes(node):
        yield from _changeable(child, is_constant)


def _bound_at_the_top(tree: ast.Module) -> set[str]:
    names = {
        (item.asname or item.name).split(".")[0] for node in imports(tree) for item in node.names
    }
    for node in _standing(tree.body, into_classes=False):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= _stored(node)
    return names


def _stored(tree: ast.AST) -> set[str]:
    """Return the names that something assigns to or takes as parameters."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.add(name)
    return names


class _Writes(ast.NodeVisitor):
    """Finds where something is changed that outlives the function that changes it."""

    def __init__(self, tree: ast.Module, excepted: set[str]) -> None:
        self.top, self.excepted = _bound_at_the_top(tree), excepted
        self.modules = {
            item.asname or item.name
            for node in imports(tree)
            if isinstance(node, ast.Import)
            for item in node.names
        }
        self.local: set[str] = set()
        self.found: list[str] = []

    def visit(self, node: ast.AST) -> None:
        around = self.local
        if isinstance(node, _FUNCTIONS):
            self.local = around | _stored(node)
        match node:
            case ast.Attribute(value=thing, ctx=ast.Store() | ast.Del()):
                self._changed(node, thing, node.attr)
            case ast.Subscript(value=thing, ctx=ast.Store() | ast.Del()):
                self._changed(node, thing)
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[thing, *_]):
                self._changed(node, thing)
            case ast.Call(func=ast.Attribute(value=thing, attr=name)) if name in WRITERS:
                # `os.remove` is a function, no method of a value.
                if not isinstance(thing, ast.Name) or thing.id not in self.modules:
                    self._changed(node, thing)
        self.generic_visit(node)
        self.local = around

    def _changed(self, node: ast.AST, thing: ast.AST, *names: str) -> None:
        """Note a write into `thing`, unless it is the function's own."""
        chain, is_made, root = [*names], False, ""
        while not root:
            match thing:
                case ast.Attribute(value=thing, attr=name):
                    chain.append(name)
                case ast.Subscript(value=thing):
                    pass
                case ast.Call(func=ast.Attribute(value=thing)):
                    is_made = True  # what a method returns may be new
                case ast.Call(func=ast.Name(id="type")):
                    root = "cls"
                case ast.Name(id=root):
                    pass
                case _:
                    break
        if root in self.excepted:
            return
        is_the_modules = root in self.top - self.local and not is_made
        if (
            is_the_modules
            or root == "cls"
            or "__class__" in chain
            or any(map(_is_constant, [root, *chain]))
        ):
            self.found.append(f"{ast.unparse(node)} changes what lives as long as the module")
