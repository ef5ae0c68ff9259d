"""Lets the tests of this folder import what lies beside them, and the hostile folders."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def maker(shared):
    """Load the maker of hostile folders without leaving bytecode beside it."""
    spec = importlib.util.spec_from_file_location("hostile_make", shared / "hostile" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
