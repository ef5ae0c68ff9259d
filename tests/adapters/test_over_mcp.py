"""A framework without a host still has the lines of source that show why."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from over_mcp import WHY


@pytest.mark.parametrize("name", WHY)
def test_the_lines_that_show_why_there_is_no_host_are_there(name):
    if os.environ.get("SATCHEL_ADAPTER") != name:
        pytest.skip("it runs in the framework's environment: make adapters")
    assert WHY[name].place()
