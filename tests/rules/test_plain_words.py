"""Words with a plainer alternative occur neither in code nor in what people read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
NEWLINE = "\n"

AVOIDED = {
    r"told|telling": "reported, or the verb of what happens",
    r"mend(?:s|ed|ing)?": "fix",
    r"whoever|nobody|somebody": "name who it is, or use the passive",
    r"anew": "again",
    r"(?:that|it|they) (?:is|are) none": "is not one, is invalid",
    r"go(?:es)? on|going on": "continue",
    r"of ours|of strangers|strangers?": "of Satchel, of others",
    r"(?:is|are) to be": "must be, will be",
}
"""Each avoided word, and what to write instead."""

ALLOWED = {
    "src/satchel/scan/lure_rules.yaml": "quotes the texts of attackers",
    "src/satchel/scan/foreign_words.yaml": "words of attackers in other languages",
    "docs/reference/scan-rules.md": "says what those texts do: a model is told something",
    "docs/how-to/lock-for-production.md": "shows the output of a rule of the scan",
}

_PATTERN = re.compile(rf"\b(?:{'|'.join(f'({words})' for words in AVOIDED)})\b", re.IGNORECASE)

EMPTY_NAMES = frozenset(
    "found given its known made more said thing told wanted what".split()  # noqa: SIM905
)
"""Names of local variables that do not say what they hold."""


def pages() -> Iterator[Path]:
    """Yield each file that people read; they read code, too."""
    yield from (REPOSITORY / name for name in ("README.md", "CHANGELOG.md", "Makefile"))
    yield from (REPOSITORY / "docs").rglob("*.md")
    yield from (REPOSITORY / "skills").rglob("*.md")
    for ending in ("html", "py", "yaml"):
        yield from (REPOSITORY / "src/satchel").rglob(f"*.{ending}")


def findings(path: Path, text: str) -> list[str]:
    name, advice = path.relative_to(REPOSITORY).as_posix(), list(AVOIDED.values())
    return [
        f"{name}:{text[: match.start()].count(NEWLINE) + 1}: {match[0]!r}: write "
        + advice[match.lastindex - 1]
        for match in _PATTERN.finditer(text.replace("_", " "))
        if name not in ALLOWED and not match[0].endswith("is None")  # of Python
    ]


def test_code_messages_and_pages_use_plain_words():
    files = sorted(pages())
    assert len(files) > 500
    assert [fault for path in files for fault in findings(path, path.read_text("utf-8"))] == []


def test_the_rule_reads_names_strings_and_comments():
    text = '# mend it\ntold = "go on"  # anew\ndef ask_nobody(strangers): it is None\n'
    words = [item.split(": ")[1] for item in findings(REPOSITORY / "module.py", text)]
    assert words == ["'mend'", "'told'", "'go on'", "'anew'", "'nobody'", "'strangers'"]


def names(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and name of each function and variable, and whether it is a variable.

    Fields, which a class declares with a type, are left out: they may be part of a format.
    """
    fields = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields.update(item.target for item in node.body if isinstance(item, ast.AnnAssign))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name, False
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            yield node.lineno, node.id, True


def test_names_are_those_of_variables_with_and_without_a_type_but_not_of_fields():
    text = "class A:\n  field: int\n  def call(self, known):\n    found: int = 1\n    made = 2\n"
    variables = {name for _, name, is_variable in names(ast.parse(text)) if is_variable}
    assert variables == {"self", "known", "found", "made"}


def test_local_names_say_what_they_hold(modules):
    faults = {
        f"{path}:{line}: {name}"
        for path, tree in modules.items()
        for line, name, is_variable in names(tree)
        if is_variable and name in EMPTY_NAMES
    }
    assert sorted(faults) == []


def test_names_in_tests_use_plain_words():
    faults = {
        f"{path}:{line}: {name}"
        for path in sorted((REPOSITORY / "tests").rglob("*.py"))
        for line, name, is_variable in names(ast.parse(path.read_text(encoding="utf-8")))
        if (name in EMPTY_NAMES if is_variable else findings(path, name))
    }
    assert sorted(faults) == []
