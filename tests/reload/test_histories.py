"""Whatever happened on disk, the live catalog ends as that of a fresh load of the same tree."""

import itertools
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from satchel import Settings, WatchTimings
from satchel.diagnostics import has_error

# A long run to look for rare races: SATCHEL_HISTORIES=1000 pytest tests/reload/test_histories.py
HISTORIES = int(os.environ.get("SATCHEL_HISTORIES", "40"))
STEPS = 20

# The look at everything now and then would hide what the events and partial looks miss.
WITHOUT_RESYNC = Settings(
    pace=WatchTimings(
        heartbeat=0.05, settle=0.1, quiet=0.05, safety_scan_active=1000, safety_scan_idle=1000
    )
)

NAMES = st.sampled_from(["pdf", "docx", "xlsx"])
FOLDERS = st.sampled_from(["", "team", "team/inner", "other"])
BROKEN = st.sampled_from(["", "---\n", "no fence", "---\nname: x\n---\n", "---\na: *b\n---\n"])
WORDS = st.sampled_from(["aaaa", "bbbb", "cccc"])


@pytest.fixture
def history(watched, skill_text):  # noqa: C901 - a machine with many rules
    """Make the machine: each run of it has a root of its own and a satchel that watches it."""

    class History(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.stack = ExitStack()
            base = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
            self.root, self.away = base / "skills", base / "away"
            self.numbers = itertools.count()
            self.root.mkdir()
            self.away.mkdir()
            self.seen = self.stack.enter_context(
                watched(skills=[self.root], settings=WITHOUT_RESYNC)
            )

        def put(self, folder: Path, text: str) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "SKILL.md").write_text(text)

        @rule(folder=FOLDERS, name=NAMES, words=WORDS)
        def write(self, folder, name, words):
            self.put(self.root / folder / name, skill_text(name, words))

        @rule(folder=FOLDERS, name=NAMES, text=BROKEN)
        def break_(self, folder, name, text):
            self.put(self.root / folder / name, text)

        @rule(folder=FOLDERS, name=NAMES, words=WORDS)
        def write_in_pieces(self, folder, name, words):
            path = self.root / folder / name
            path.mkdir(parents=True, exist_ok=True)
            with (path / "SKILL.md").open("w") as file:
                for letter in skill_text(name, words):
                    file.write(letter)
                    file.flush()

        @rule(folder=FOLDERS, name=NAMES, words=WORDS)
        def save_by_rename(self, folder, name, words):
            path = self.root / folder / name
            path.mkdir(parents=True, exist_ok=True)
            (path / "SKILL.tmp").write_text(skill_text(name, words))
            (path / "SKILL.tmp").replace(path / "SKILL.md")

        @rule(folder=FOLDERS, name=NAMES, words=WORDS)
        def write_beside(self, folder, name, words):
            path = self.root / folder / name / "references"
            path.mkdir(parents=True, exist_ok=True)
            (path / "notes.md").write_text(words)

        @rule(folder=FOLDERS, name=NAMES)
        def rename_to_the_wrong_case(self, folder, name):
            path = self.root / folder / name / "SKILL.md"
            if path.is_file():
                path.rename(path.with_name("skill.md"))

        @rule(folder=FOLDERS, name=NAMES)
        def delete(self, folder, name):
            shutil.rmtree(self.root / folder / name, ignore_errors=True)

        @rule(folder=FOLDERS)
        def delete_all_of(self, folder):
            shutil.rmtree(self.root / folder, ignore_errors=True)
            self.root.mkdir(exist_ok=True)

        @rule(folder=FOLDERS.filter(bool), to=FOLDERS.filter(bool))
        def rename_folder(self, folder, to):
            free = (self.root / folder).is_dir() and not (self.root / to).exists()
            if free and not to.startswith(folder + "/"):
                (self.root / to).parent.mkdir(parents=True, exist_ok=True)
                (self.root / folder).rename(self.root / to)

        @rule(folder=FOLDERS.filter(bool))
        def move_out_and_in(self, folder):
            outside = self.away / folder.replace("/", "-")
            if outside.exists():
                if not (self.root / folder).exists():
                    (self.root / folder).parent.mkdir(parents=True, exist_ok=True)
                    outside.rename(self.root / folder)
            elif (self.root / folder).is_dir():
                (self.root / folder).rename(outside)

        @rule(name=NAMES, to=FOLDERS.filter(bool))
        def link(self, name, to):
            path = self.root / f"link-{name}"
            path.unlink(missing_ok=True)
            path.symlink_to(to)

        @rule()
        def replace_the_root(self):
            shutil.move(self.root, self.away / f"root-{next(self.numbers)}")
            self.root.mkdir()

        @rule()
        def pause_until_something_was_seen(self):
            count = len(self.seen.changes)
            self.put(self.root / "marker", skill_text("marker", f"After {count}."))
            self.seen.until(lambda: len(self.seen.changes) > count)

        def teardown(self) -> None:
            with self.stack:
                self.the_same_units_are_broken()
                self.fix()
                self.seen.until_as_cold()

        def the_same_units_are_broken(self) -> None:
            def broken(satchel):
                entries = satchel.catalog.all_skills
                return {entry.unit for entry in entries if has_error(entry.diagnostics)}

            self.seen.until(lambda: broken(self.seen.app) == broken(self.seen.cold()))

        def fix(self) -> None:
            """A stale unit differs from a cold load by design; mended, nothing may differ."""
            for entry in self.seen.cold().catalog.all_skills:
                if entry.state == "failed":
                    self.put(Path(entry.path), skill_text(Path(entry.path).name, "Mended."))

    return History


@pytest.mark.slow
def test_after_any_history_hot_equals_cold(history):
    run_state_machine_as_test(
        history,
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=STEPS,
            deadline=None,
            # Not shrunk: each try of a failing history waits for what never comes.
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
