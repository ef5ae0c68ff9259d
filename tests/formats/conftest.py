"""Short ways to read a text."""

import pytest

from satchel.formats.read_result import ReadResult
from satchel.settings import Limits


@pytest.fixture(scope="session")
def limits() -> Limits:
    return Limits()


@pytest.fixture(scope="session")
def codes():
    """The codes of a reading in their order."""

    def of(reading: ReadResult) -> list[str]:
        return [item.code for item in reading.diagnostics]

    return of
