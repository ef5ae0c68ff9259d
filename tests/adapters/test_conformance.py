"""Every adapter whose framework is installed passes the same checks.

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
NAMES = sorted(path.stem.removesuffix("_host") for path in HOSTS.glob("*_host.py"))
WANTED = os.environ.get("SATCHEL_ADAPTER")
TURNS = int(os.environ.get("SATCHEL_ADAPTER_TURNS", "60"))


def host_of(name: str):
    """Return the host of a framework; skip if that is not installed, unless it must be."""
    if WANTED not in {None, name}:
        pytest.skip(f"only {WANTED} is asked for")
    try:
        module = importlib.import_module(f"{name}_host")
    except ModuleNotFoundError as missing:
        if WANTED or (missing.name or "").startswith("satchel"):
            raise
        pytest.skip(f"{missing.name} is not installed: make adapters")
    return module.Host()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_passes_the_checks(name, check):
    host = host_of(name)
    cannot = host.cannot.get(check)
    place = cannot.place() if cannot else ""
    try:
        asyncio.run(run_check(host, check, turns=TURNS))
    except AssertionError:
        if cannot is None:
            raise
        pytest.xfail(f"{cannot.reason}: {place}")
    assert cannot is None, f"{name} can do it now: remove the reason from its host"
