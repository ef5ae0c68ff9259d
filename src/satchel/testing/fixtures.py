"""Pytest fixtures; enable them by `pytest_plugins = ["satchel.testing.fixtures"]`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from satchel.satchel import Satchel
from satchel.sources.scratch_world import scratch_world


@pytest.fixture
def make_satchel() -> Iterator[Callable[..., Satchel]]:
    """Return a factory with the parameters of `Satchel` that ignores the user's configuration.

    All satchels are closed when the test ends.
    """
    with scratch_world(), ExitStack() as stack:

        def make(*args: Any, **options: Any) -> Satchel:
            return stack.enter_context(Satchel(*args, **options))

        yield make
