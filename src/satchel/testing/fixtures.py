"""Pytest fixtures. Pytest finds them in every environment that has Satchel.

So importing this module must cost next to nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from satchel.configuration.scratch_world import scratch_world

if TYPE_CHECKING:
    from satchel.satchel import Satchel


@pytest.fixture
def make_satchel() -> Iterator[Callable[..., "Satchel"]]:
    """Return a factory with the parameters of `Satchel` that ignores the user's configuration.

    All satchels are closed when the test ends.
    """
    from satchel.satchel import Satchel  # late: pytest imports this module at every start

    with scratch_world(), ExitStack() as stack:

        def make(*args: Any, **options: Any) -> "Satchel":
            return stack.enter_context(Satchel(*args, **options))

        yield make
