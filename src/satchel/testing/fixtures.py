"""Fixtures: `pytest_plugins = ["satchel.testing.fixtures"]` in a conftest.py brings them."""

from collections.abc import Callable, Iterator

import pytest

from satchel.satchel import Satchel
from satchel.sources.scratch import scratch_world


@pytest.fixture
def make_satchel() -> Iterator[Callable[..., Satchel]]:
    """Return `Satchel`, to be called in a world in which the user has configured nothing."""
    with scratch_world():
        yield Satchel
