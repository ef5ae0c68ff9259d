"""The short form of `make torture`; tests/torture/run.py runs the long one."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from trials import TRIALS


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("trial", TRIALS, ids=[trial.name for trial in TRIALS])
def test_torture_finds_nothing(trial, tmp_path):
    if trial.program and not shutil.which(trial.program):
        pytest.skip(f"needs {trial.program}")
    tally = trial.run(trial.short, tmp_path)
    assert tally.done
    assert tally.faults[:5] == []
