"""Names are unique, so that each is clear without its package."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import satchel

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def classes(modules) -> list[tuple[str, ast.ClassDef]]:
    return [
        (f"src/satchel/{path}", node)
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


def recurring(names) -> dict[str, int]:
    return {name: count for name, count in Counter(names).items() if count > 1}


def test_every_public_class_name_is_unique(classes):
    assert recurring(node.name for _, node in classes if not node.name.startswith("_")) == {}


def test_every_file_name_is_unique(modules):
    names = (path.rpartition("/")[2] for path in modules)
    assert recurring(name for name in names if not name.startswith("__")) == {}


def test_the_glossary_has_every_public_name():
    text = (REPOSITORY / "docs/glossary.md").read_text(encoding="utf-8")
    pages = "".join(
        page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs").rglob("*.md")
    )
    lines = re.findall(r"(?m)^ *from satchel\.[a-z_.]+ import ([\w, ]+)$", pages)
    names = {name.split(" as ")[0].strip() for line in lines for name in line.split(",")}
    assert sorted(name for name in {*satchel.__all__, *names} if f"`{name}`" not in text) == []


def fields_of(node: ast.ClassDef) -> list[str]:
    return [
        ast.unparse(statement.target)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and "ClassVar" not in ast.unparse(statement.annotation)
        and not (statement.value and "init=False" in ast.unparse(statement.value))
    ]


def test_records_of_more_than_three_fields_are_keyword_only(classes):
    positional = [
        f"{path}: {node.name}"
        for path, node in classes
        for decorator in node.decorator_list
        if ast.unparse(decorator).startswith("dataclass")
        and "kw_only=True" not in ast.unparse(decorator)
        and len(fields_of(node)) > 3
    ]
    assert positional == []


POSITIONAL = {
    "src/satchel/files/file_reader.py: Stamp": "it is made of a tuple of all its fields at once",
    "src/satchel/contracts/plan.py: Validation": "hosts unpack it",
}
"""Each named tuple of more than three fields, and why it is no record."""


def test_named_tuples_have_at_most_three_fields(classes):
    names = {
        f"{path}: {node.name}"
        for path, node in classes
        if {"NamedTuple", "typing.NamedTuple"}.intersection(map(ast.unparse, node.bases))
        and len(fields_of(node)) > 3
    }
    assert names == POSITIONAL.keys()
