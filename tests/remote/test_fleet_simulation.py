"""The simulation of a fleet holds its invariants, also in a small form with other faults."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("docket", reason="pydocket is not installed")

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "simulating_fleet.py"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_fleet_with_faults_and_a_new_version_loses_and_doubles_nothing(seed):
    size = ["--sessions", "100", "--workers", "5", "--hosts", "2", "--time", "40"]
    done = subprocess.run(
        [sys.executable, PROGRAM, *size, "--seed", str(seed)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "calls that ended once: 200 of 200" in done.stdout
