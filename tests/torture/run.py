"""Run all trials, print a table, and exit with 1 if anything went wrong: `make torture`.

SATCHEL_TORTURE is the part of the long form that is run: 1 for all of it, 0.01 for a hundredth.
Arguments are parts of the names of trials, to run only those. The hostile cases beside the checkout
are run by their own tests.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from trials import TRIALS

REPOSITORY = Path(__file__).parents[2]
HOSTILE = (
    "tests/test_hostile_skills.py",
    "tests/plugins/test_hostile_plugins.py",
    "tests/formats/test_real_and_hostile.py",
    "tests/reload/test_histories.py",
)
_SHOWN = 5


def main(names: list[str]) -> int:
    """Run the trials; return the number of those with faults, 1 at most."""
    scale = float(os.environ.get("SATCHEL_TORTURE", "1"))
    rows, faults = [], []
    for trial in TRIALS:
        if names and not any(part in trial.name for part in names):
            continue
        if trial.program and not shutil.which(trial.program):
            print(f"left out: {trial.name} (no {trial.program})")
            continue
        count = max(round(trial.long * scale), 1)
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder, _own_folders(folder):
            tally = trial.run(count, Path(folder))
        seconds = time.monotonic() - started
        rows.append(
            (trial.name, f"{tally.done:,}", len(tally.faults), f"{seconds:.0f} s", tally.note)
        )
        faults += [f"{trial.name}: {fault}" for fault in tally.faults[:_SHOWN]]
        print(".", end="", flush=True)
    if not names or "hostile" in names:
        rows.append(_hostile())
        faults += ["hostile: see above"] * rows[-1][2]
    print()
    width = max(len(row[0]) for row in rows)
    for name, done, wrong, seconds, note in rows:
        print(f"{name:{width}}  {done:>10}  {wrong:>3} faults  {seconds:>7}  {note}")
    for fault in faults:
        print(f"  {fault}"[:400])
    return 1 if faults else 0


def _own_folders(folder: str):
    """Keep away from the folders of the user."""
    from unittest.mock import patch

    names = ("CONFIG", "STATE", "CACHE", "DATA")
    return patch.dict(
        os.environ, {f"SATCHEL_{name}_DIR": f"{folder}/own/{name.lower()}" for name in names}
    )


def _hostile() -> tuple[str, str, int, str, str]:
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-profile=long", *HOSTILE]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    if done.returncode:
        print(done.stdout[-3_000:])
    seconds = f"{time.monotonic() - started:.0f} s"
    return "hostile cases, histories of the tests", "", int(done.returncode != 0), seconds, last


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
