"""Modules as they were before a test."""

import sys

import pytest


@pytest.fixture
def untouched_modules():
    """Put `sys.modules` and `sys.path` back as they were."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    sys.path[:] = path
