"""Every adapter passes the same checks.

`make adapters` makes an environment for each framework and runs this in it.
"""

import asyncio
import importlib
import os
import sys
from pathlib import Path

import pytest

from satchel.testing.adapter_checks import CHECKS, run_check

HOSTS = Path(__file__).parent / "hosts"
sys.path.insert(0, str(HOSTS))
WANTED = os.environ.get("SATCHEL_ADAPTER")
TURNS = int(os.environ.get("SATCHEL_ADAPTER_TURNS", "60"))


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", [WANTED] if WANTED else [])
def test_an_adapter_passes_the_checks(name, check):
    host = importlib.import_module(f"{name}_host").Host()
    cannot = host.cannot.get(check)
    place = cannot.place() if cannot else ""
    try:
        asyncio.run(run_check(host, check, turns=TURNS))
    except AssertionError:
        if cannot is None:
            raise
        pytest.xfail(f"{cannot.reason}: {place}")
    assert cannot is None, f"{name} can do it now: remove the reason from its host"
