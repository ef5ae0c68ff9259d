"""Measure how many small changes of the code the tests detect (mutation testing).

    python tests/mutants.py                  40 changes of each target
    python tests/mutants.py catalog -n 0     every possible change of one target

Each change is made in a copy of the source, and the tests of its target run on that copy. Surviving
changes are printed: write a test for each, unless the changed code has the same behaviour.

The tests write many small files: a TMPDIR in memory makes them several times faster.
"""

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]

TARGETS = {
    "catalog": (
        ["src/satchel/catalog/*.py"],
        ["tests/catalog", "tests/loader", "tests/test_satchel.py"],
    ),
    "skill reader": (
        ["src/satchel/formats/skill_*.py"],
        [
            *("tests/formats/test_skill_manifest.py", "tests/formats/test_simple_skill.py"),
            *("tests/formats/test_skill_handler.py", "tests/formats/test_skill_arguments.py"),
            "tests/formats/test_front_matter.py",
        ],
    ),
    "loader": (
        ["src/satchel/loader/[!t]*.py"],
        [
            *("tests/loader", "tests/catalog", "tests/reload/test_plugins.py"),
            *("tests/reload/test_config.py", "tests/reload/test_contracts.py"),
            *("tests/reload/test_enabled_units.py", "tests/cli/test_lock.py"),
            *("tests/reload/test_open_plugins.py", "tests/reload/test_lost_skills.py"),
            *("tests/importing/test_packages.py", "tests/sources/test_empty_roots.py"),
            *("tests/providers", "tests/tools/test_tool_bounds.py"),
        ],
    ),
    "trust gate": (
        ["src/satchel/loader/trust_gate.py"],
        [
            *("tests/loader/test_trust_gate.py", "tests/reload/test_trust.py"),
            *("tests/test_hostile_project.py", "tests/cli/test_trust.py"),
        ],
    ),
    "trust": (
        ["src/satchel/trust/*.py"],
        [
            *(
                "tests/trust",
                "tests/loader/test_lock_guard.py",
                "tests/loader/test_name_choices.py",
            ),
            *("tests/cli/test_trust_report.py", "tests/test_hostile_project.py"),
            *("tests/cli/test_trust.py", "tests/cli/test_lock.py"),
        ],
    ),
    "tool patterns": (
        ["src/satchel/session/tool_patterns.py"],
        ["tests/session/test_skill_permissions.py"],
    ),
    "group activation": (["src/satchel/groups/group_activation.py"], ["tests/groups"]),
    "prompt": (["src/satchel/prompt/*.py"], ["tests/prompt"]),
    "session": (
        ["src/satchel/session/*.py"],
        [
            *("tests/session", "tests/test_satchel.py", "tests/test_state_values.py"),
            *("tests/mcp_servers/test_browser_login.py", "tests/test_hostile_project.py"),
        ],
    ),
    "runtime": (["src/satchel/runtime/**/*.py"], ["tests/runtime", "tests/remote"]),
    "configuration": (
        ["src/satchel/configuration/*.py"],
        [
            *("tests/configuration", "tests/cli/test_enable.py", "tests/cli/test_config.py"),
            *("tests/reload/test_enabled_units.py", "tests/trust/test_project_inventory.py"),
        ],
    ),
    "setup": (
        ["src/satchel/setup/*.py"],
        [
            *("tests/setup", "tests/test_hostile_marketplace.py"),
            *("tests/cli/test_add.py", "tests/cli/test_install.py"),
        ],
    ),
}
"""Each target: the modules to change, and the tests that should detect the changes."""

TIME_LIMIT = 120
"""Seconds after which a change counts as detected, since it made a test hang."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


FALSE_RETURNS = {"return None", "return False", "return ''", "return ()"}
"""Their readers ask whether the value is true, so `None` would say the same."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one module."""

    target: str
    path: str
    line: int
    before: str
    after: str
    source: str


def changes(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - a case an operator
    """Yield the replacements of a node."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=others):
            yield ast.Compare(left, [COMPARISONS[type(operator)]()], others)
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield ast.BinOp(left, ast.Sub(), right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield ast.BinOp(left, ast.Add(), right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp(test=test, body=body, orelse=other):
            yield ast.IfExp(test, other, body)
        case ast.If(test=test, body=body, orelse=other):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, other)
        case ast.Return(value=ast.expr()) if ast.unparse(node) not in FALSE_RETURNS:
            yield ast.Return(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.comprehension(target=target, iter=items, ifs=[_, *_]):
            yield ast.comprehension(target, items, [], node.is_async)
        case ast.Subscript(value=value, slice=ast.Slice(lower=ast.expr() | None)):
            yield value


def nodes(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield each node with its parent and position, without annotations and decorators."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not (is_assertion(child) or is_for_types(child)):
                yield node, field, index, child
                yield from nodes(child)


def is_assertion(node: ast.AST) -> bool:
    """Return whether it only checks what is always so, as `strict` of `zip` does."""
    return isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg == "strict")


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def mutants(target: str) -> Iterator[Mutant]:
    """Yield every change of the modules of a target."""
    for module in (it for path in TARGETS[target][0] for it in sorted(REPOSITORY.glob(path))):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for parent, field, index, node in list(nodes(tree)):
            for other in changes(node):
                put(parent, field, index, other)
                yield Mutant(
                    target=target,
                    path=str(module.relative_to(REPOSITORY)),
                    line=getattr(node, "lineno", getattr(parent, "lineno", 0)),
                    before=ast.unparse(node).split("\n")[0],
                    after=ast.unparse(other).split("\n")[0],
                    source=ast.unparse(ast.fix_missing_locations(tree)),
                )
                put(parent, field, index, node)


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def is_detected(copy: Path, mutant: Mutant) -> bool:
    """Return whether the tests fail on a copy of the source with one change."""
    changed = copy / Path(mutant.path).relative_to("src")
    original = changed.read_text(encoding="utf-8")
    changed.write_text(mutant.source, encoding="utf-8")
    try:
        return tests_on(copy, mutant.target).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        changed.write_text(original, encoding="utf-8")


def tests_on(copy: Path, target: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    return subprocess.run(
        [*line, *TARGETS[target][1]],
        cwd=REPOSITORY,
        # No bytecode: Python would not notice two changes of one length within a second.
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )


def main() -> None:
    """Print the survivors and, for each target, how many changes were detected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="target")
    parser.add_argument("-n", "--number", type=int, default=40, help="changes a target; 0: all")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(options.jobs):
            shutil.copytree(REPOSITORY / "src", Path(folder, str(number)))
            free.put(Path(folder, str(number)))

        def run(mutant: Mutant) -> bool:
            copy = free.get()
            try:
                return is_detected(copy, mutant)
            finally:
                free.put(copy)

        for target in options.targets:
            unchanged = tests_on(Path(folder, "0"), target)
            if unchanged.returncode:
                sys.exit(f"{target} fails on the unchanged source:\n{unchanged.stdout}")
            every = list(mutants(target))
            number = min(options.number or len(every), len(every))
            chosen = random.Random(options.seed).sample(every, number)
            count = 0
            with ThreadPoolExecutor(options.jobs) as pool:
                for mutant, was_detected in zip(chosen, pool.map(run, chosen), strict=True):
                    count += was_detected
                    if not was_detected:
                        place = f"{mutant.path}:{mutant.line}"
                        print(
                            f"  survived: {place}: {mutant.before!r} -> {mutant.after!r}",
                            flush=True,
                        )
            share = count / number
            print(f"{target}: {count} of {number} detected ({share:.0%})", flush=True)


if __name__ == "__main__":
    main()
