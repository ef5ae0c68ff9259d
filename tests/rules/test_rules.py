"""Rules that no linter checks; layers and banned modules are in `pyproject.toml`."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import satchel

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src/satchel"
MODULES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SOURCE.rglob("*.py"))
}
ENTRY_PACKAGES = ("cli", "mcp", "builtin")
"""These packages may import the public names of `satchel`, and import slow modules late."""

PROCESS_WIDE = {
    ("sources/editable_imports.py", "_finder"): "the interpreter has one list of finders",
    ("sources/code_snapshots.py", "_finder"): "the interpreter has one list of finders",
    ("sources/module_exchange.py", "_lock"): "the interpreter has one table of modules",
    ("sources/importer.py", "_serial"): "module names must differ in the whole process",
    ("tools/callables.py", "_THREADS"): "all satchels use the same idle threads again",
    ("session/search_tools.py", "search_tool"): "one tool for each kind of search",
}
"""Module-level values that may change, each with the reason."""

IMMUTABLE_CALLS = {
    *("frozenset", "tuple", "re.compile", "MappingProxyType", "TypeVar", "ContextVar", "getattr"),
    *("logging.getLogger", "dict.fromkeys", "str.maketrans", "json.JSONEncoder", "field"),
    *("FormatPolicy", "LoopRunner", "SkillAccess", "ThreadRunner", "urlsplit"),
    *("pluggy.HookspecMarker", "pluggy.HookimplMarker"),
    *("click.option", "repeatable", "click.make_pass_decorator", "EmptyMapping", "ToolContext"),
}
"""Calls whose results never change."""

MUTATORS = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
    *("setdefault", "sort", "update"),
}


def package_of(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Yield each import with the full name that it binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


# ---- imports ---------------------------------------------------------------------------------


def test_only_entry_packages_import_the_public_names():
    used = [
        f"{path}: {ast.unparse(node)}"
        for path in MODULES
        if package_of(path) not in ENTRY_PACKAGES
        for node, name in imports(MODULES[path])
        if name.split(".")[0] == "satchel"
        if isinstance(node, ast.Import) or node.module == "satchel"
    ]
    assert used == []


LATE_IMPORTS = {
    "formats/front_matter.py: satchel.formats.skill_handler.SkillHandler": "it loads pyyaml, "
    "which a satchel without skills does not need",
    "satchel.py: satchel.session.Session": "needed only with a session",
    "satchel.py: satchel.session.SessionOptions": "needed only with a session",
    "loader/cached_scan.py: satchel.sources.skill_cache.load_scan": "it loads SQLite; most roots "
    "have few skills",
    "loader/cached_scan.py: satchel.sources.skill_cache.save_scan": "as above",
    "shared.py: satchel.search.SearchIndex": "needed only by a search",
    "shared.py: satchel.search.documents_of": "needed only by a search",
}
"""Imports of our own modules inside functions, each with the reason."""


def test_satchel_modules_are_imported_at_the_top():
    late = [
        f"{path}: {name}"
        for path, tree in MODULES.items()
        if package_of(path) not in ENTRY_PACKAGES
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for _, name in imports(function)
        if name.split(".")[0] == "satchel"
    ]
    assert set(late) == set(LATE_IMPORTS)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    line = [sys.executable, "-c", code]
    return set(subprocess.run(line, capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_public_names_loads_nothing_heavy():
    # SkillHandler derives from a class of python-frontmatter, which imports pyyaml.
    names = (name for name in satchel.__all__ if name != "SkillHandler")
    loaded = loaded_after(f"from satchel import {', '.join(names)}")
    assert "satchel.satchel" in loaded
    assert not loaded & {"watchfiles", "rich", "mcp", "pydantic", "griffe", "yaml", "click"}
    assert "anyio" not in loaded


def test_a_satchel_without_sessions_loads_neither_sessions_nor_search():
    loaded = loaded_after("from satchel import Satchel; Satchel()")
    assert "satchel.loader" in loaded
    unused = ("satchel.session", "satchel.search", "satchel.setup", "satchel.cli", "satchel.mcp.")
    assert not {name for name in loaded if name.startswith(unused)}


def test_the_bare_import_loads_no_module_of_satchel():
    assert not {name for name in loaded_after("import satchel") if name.startswith("satchel.")}


def test_the_package_exports_what_it_lists():
    assert satchel.__all__ == sorted(satchel.__all__, key=lambda name: (not name.isupper(), name))
    assert set(satchel.__all__) <= set(dir(satchel))
    assert all(getattr(satchel, name).__doc__ for name in satchel.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Satchell'"):
        satchel.Satchell  # noqa: B018 - the access is the test


# ---- state -----------------------------------------------------------------------------------


def mutable_parts(value: ast.expr, *, is_constant: bool) -> Iterator[ast.expr]:
    """Yield the mutable parts of a value; an UPPER_CASE constant may be a filled container."""
    match value:
        case ast.Lambda() | ast.Subscript() | ast.Constant() | ast.Name():
            return
        case ast.Call():
            if ast.unparse(value.func) not in IMMUTABLE_CALLS:
                yield value
            return
        case ast.Dict(keys=items) | ast.List(elts=items) | ast.Set(elts=items):
            if not (items and is_constant):
                yield value
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield value
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            yield from mutable_parts(child, is_constant=is_constant)


def mutable_state(path: str, tree: ast.Module) -> list[str]:
    """Return the module-level and class-level values of a module that can change."""
    faults, classes = [], [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in (statement for scope in (tree, *classes) for statement in scope.body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = ast.unparse(target)
            if name == "__all__" or (path, name) in PROCESS_WIDE:
                continue
            parts = mutable_parts(node.value, is_constant=name.isupper())
            faults += [f"{path}: {name} holds {ast.unparse(part)}" for part in parts]
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(decorator_list=[*decorators], args=arguments):
                names = {ast.unparse(item).split("(")[0] for item in decorators}
                caches = names & {"cache", "lru_cache", "functools.cache", "functools.lru_cache"}
                is_listed = (path, node.name) in PROCESS_WIDE
                if caches and not is_listed and (arguments.args or arguments.kwonlyargs):
                    faults.append(f"{path}: {node.name} caches its arguments")
            case (
                ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
                | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=_))
            ) if name.isupper():
                if isinstance(node, ast.Subscript) or node.func.attr in MUTATORS:
                    faults.append(f"{path}: {ast.unparse(node)} changes a constant")
    return faults


def test_no_module_and_no_class_holds_state():
    faults = [fault for path, tree in MODULES.items() for fault in mutable_state(path, tree)]
    assert faults == []


@pytest.mark.parametrize(
    "text",
    [
        "_SEEN = {}",
        "_seen = {'a': 1}",
        "_seen = dict()",
        "_PAIR = ({'a': []},)",
        "class A:\n    seen: dict = {}",
        "class Thing: ...\n_thing = Thing()",
        "SEEN = {'a': 1}\ndef f():\n    SEEN['b'] = 2",
        "SEEN = {'a': 1}\ndef f():\n    SEEN.update(b=2)",
        "from functools import cache\n@cache\ndef f(x): ...",
    ],
)
def test_state_in_a_module_is_refused(text):
    assert mutable_state("prompt/group_notes.py", ast.parse(text))


# ---- modules that ruff bans (TID251) -------------------------------------------------------------


def banned(*arguments: str, text: str | None = None) -> list[dict]:
    line = [sys.executable, "-m", "ruff", "check", "--select=TID251", "--output-format=json"]
    run = subprocess.run(
        [*line, *arguments], input=text, capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert run.returncode in {0, 1}, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import statistics\nstatistics.mean([1])", 0),
        ("import os\nos.path.join('a', 'b')", 0),
        ("import time\ntime.monotonic()", 0),
        ("import os as system\nsystem.remove('x')", 1),
        ("from os.path import exists", 1),
        ("def f():\n    import subprocess", 1),
        ("from time import time", 1),
    ],
)
def test_a_middleware_may_import_only_modules_without_side_effects(text, count):
    path = "src/satchel/runtime/middleware/added.py"
    assert len(banned("--stdin-filename", path, "-", text=text)) == count


def excepted() -> list[str]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    return [path for path in settings["per-file-ignores"] if path.startswith("src/")]


def test_every_exception_to_the_banned_modules_is_needed():
    faults = banned("--config", "lint.per-file-ignores = {}", "src")
    users = {Path(fault["filename"]).relative_to(REPOSITORY).as_posix() for fault in faults}
    assert [path for path in excepted() if not any(fnmatch(user, path) for user in users)] == []


def test_only_excepted_modules_open_files():
    """Ruff cannot ban a built-in function."""
    openers = [
        f"src/satchel/{path}"
        for path, tree in MODULES.items()
        if any(isinstance(node, ast.Name) and node.id == "open" for node in ast.walk(tree))
    ]
    assert openers
    assert [path for path in openers if not any(fnmatch(path, it) for it in excepted())] == []
