"""Fixtures: `pytest_plugins = ["satchel.testing.fixtures"]` in a conftest.py brings them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from satchel.satchel import Satchel
from satchel.sources.scratch_world import scratch_world


@pytest.fixture
def make_satchel() -> Iterator[Callable[..., Satchel]]:
    """Return `Satchel`, to be called in a world in which the user has configured nothing.

    Each that is made is closed when the test ends.
    """
    with scratch_world(), ExitStack() as made:

        def make(*args: Any, **options: Any) -> Satchel:
            return made.enter_context(Satchel(*args, **options))

        yield make
