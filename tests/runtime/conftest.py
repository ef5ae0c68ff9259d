"""Lets the tests of this folder import what lies beside them, and the stage of the executors."""

import logging
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "executors")]


@pytest.fixture
def log(caplog):
    """Return the records of our own logger, whatever their level."""
    caplog.set_level(logging.DEBUG, logger="satchel")
    return caplog
