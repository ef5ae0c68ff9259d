"""The source that the rules read."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/satchel"


@pytest.fixture(scope="package")
def modules() -> dict[str, ast.Module]:
    """The syntax trees of all modules, by path; parsed once, and only where rules are tested."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }
