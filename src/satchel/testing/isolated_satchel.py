"""A satchel that does not depend on the user who runs the test."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from satchel.configuration.scratch_world import scratch_world
from satchel.satchel import Satchel

PathLike = str | os.PathLike[str]


@contextmanager
def scratch_satchel(
    skills: Iterable[PathLike] | PathLike = (),
    plugins: Iterable[PathLike] | PathLike = (),
    entry_points: Iterable[str] | str = (),
    *,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Iterator[Satchel]:
    """Yield a `Satchel` with these sources; `options` are its other parameters.

    Inside the block the user's configuration folder is a temporary, empty one, and the process
    has no other environment variable that begins with `SATCHEL_`. The satchel is closed at the end.
    """
    with (
        scratch_world(),
        Satchel(skills, plugins, entry_points, config=config, **options) as app,
    ):
        yield app
