"""Short ways to read a text."""

import pytest

from satchel.manifests import Reading
from satchel.settings import Limits


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


@pytest.fixture(scope="session")
def codes():
    """The codes of a reading in their order."""

    def of(reading: Reading) -> list[str]:
        return [item.code for item in reading.diagnostics]

    return of
