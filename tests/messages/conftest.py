"""Snapshots of messages: text files to review; `make snapshots` rewrites them."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(scope="session")
def snapshot():
    """Return a function that compares entries with a snapshot, in any order, or writes them."""

    def compare(name: str, entries: list[str]) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        text = "".join(f"{entry}\n" for entry in entries)
        if text and os.environ.get("SATCHEL_SNAPSHOTS") == "write":
            path.write_text(text, encoding="utf-8")
        reviewed = path.read_text(encoding="utf-8") if path.exists() else ""
        now, before = Counter(text.splitlines()), Counter(reviewed.splitlines())
        changes = [f"- {line}" for line in before - now] + [f"+ {line}" for line in now - before]
        if changes:
            text = "\n".join(changes)
            pytest.fail(f"messages changed; review them, then run 'make snapshots'\n{text}")

    return compare


@pytest.fixture(scope="session")
def snapshot_names():
    return {path.stem for path in SNAPSHOTS.glob("*.txt")}
