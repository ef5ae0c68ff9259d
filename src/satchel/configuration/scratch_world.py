"""A temporary environment without any user configuration."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from satchel.configuration.configuration import FOLDER_VARIABLE
from satchel.files.state_files import CACHE_VARIABLE

_PREFIX = "SATCHEL_"


@contextmanager
def scratch_world() -> Iterator[str]:
    """Yield an empty temporary folder; the user's configuration and cache are below it meanwhile.

    All other `SATCHEL_` variables are unset until the block ends.
    """
    kept = {name: value for name, value in os.environ.items() if name.startswith(_PREFIX)}
    with TemporaryDirectory(prefix="satchel-", ignore_cleanup_errors=True) as folder:
        _clear()
        os.environ[FOLDER_VARIABLE] = os.path.join(folder, "config")
        os.environ[CACHE_VARIABLE] = os.path.join(folder, "cache")
        try:
            yield folder
        finally:
            _clear()
            os.environ.update(kept)


def _clear() -> None:
    for name in [name for name in os.environ if name.startswith(_PREFIX)]:
        del os.environ[name]
