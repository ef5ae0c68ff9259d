"""Words with a plainer alternative occur neither in code nor in what people read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

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
    "docs/reference/scan-rules.md": "says what those texts do: a model is told something",
    "docs/how-to/lock-for-production.md": "shows the output of a rule of the scan",
}

_PATTERNS = {
    re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE): advice
    for words, advice in AVOIDED.items()
}


def pages() -> Iterator[Path]:
    yield REPOSITORY / "README.md"
    yield from (REPOSITORY / "docs").rglob("*.md")
    yield from (REPOSITORY / "skills").rglob("*.md")
    yield from (REPOSITORY / "src/satchel").rglob("*.html")
    yield from (REPOSITORY / "src/satchel").rglob("*.yaml")


def code_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each name, and each line of a string or comment, with its line number."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for number, line in enumerate(node.value.splitlines(), node.lineno):
                yield number, line
    for number, line in enumerate(source.splitlines(), 1):
        if line.lstrip().startswith("#"):
            yield number, line


def findings(path: Path, texts: Iterator[tuple[int, str]]) -> set[str]:
    name = path.relative_to(REPOSITORY).as_posix()
    return {
        f"{name}:{number}: {match[0]!r}: write {advice}"
        for number, text in texts
        for pattern, advice in _PATTERNS.items()
        for match in pattern.finditer(text)
        if name not in ALLOWED
    }


def test_code_and_messages_use_plain_words():
    files = sorted((REPOSITORY / "src/satchel").rglob("*.py"))
    assert sorted(set().union(*(findings(path, code_texts(path)) for path in files))) == []


@pytest.mark.parametrize("page", sorted(pages()), ids=lambda page: page.name)
def test_pages_use_plain_words(page):
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    assert sorted(findings(page, lines)) == []


def test_the_rule_reads_names_strings_and_comments(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.REPOSITORY", tmp_path)
    path = tmp_path / "module.py"
    path.write_text('# mend it\ntold = "go on"\ndef ask_nobody(strangers): ...\n', encoding="utf-8")
    words = {item.split(": ")[1] for item in findings(path, code_texts(path))}
    assert words == {"'mend'", "'told'", "'go on'", "'nobody'", "'strangers'"}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_names_of_tests_use_plain_words():
    files = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    faults = set()
    for path in files:
        names = ((node.lineno, node.name.replace("_", " ")) for node in functions(path))
        faults |= findings(path, names)
    assert files
    assert sorted(faults) == []


EMPTY_NAMES = frozenset(
    "found given its known made more said thing told wanted what".split()  # noqa: SIM905
)
"""Names of local variables that do not say what they hold."""


def test_local_names_say_what_they_hold():
    faults = set()
    for path in sorted((REPOSITORY / "src/satchel").rglob("*.py")):
        for function in functions(path):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    name = node.arg
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    name = node.id
                else:
                    continue
                if name in EMPTY_NAMES:
                    faults.add(f"{path.relative_to(REPOSITORY)}:{node.lineno}: {name}")
    assert sorted(faults) == []
