"""Where the material that is shared between checkouts lies, and short ways to read a text."""

import os
from pathlib import Path

import hypothesis
import pytest

from satchel.manifests import Reading
from satchel.settings import Limits

# A busy machine is no fault of a reader; that it never hangs is tested by hostile files.
hypothesis.settings.register_profile("steady", deadline=None)
hypothesis.settings.load_profile("steady")

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real and hostile files; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("SATCHEL_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "corpus").is_dir():
        pytest.skip("no shared corpus here (set SATCHEL_SHARED)")
    return folder


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


@pytest.fixture(scope="session")
def codes():
    """The codes of a reading in their order."""

    def of(reading: Reading) -> list[str]:
        return [item.code for item in reading.diagnostics]

    return of
