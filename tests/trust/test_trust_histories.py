"""Histories of edits and decisions: no version of code runs that was not trusted at that moment."""

import itertools
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from satchel import Project, Satchel, Settings
from satchel.configuration.projects import TrustLevel
from satchel.trust.project_inventory import read_inventory
from satchel.trust.trust_record import TrustStore

CODE = """
from pathlib import Path
from satchel import tool

with open({log!r}, "a") as file:
    file.write("{version}\\n")

@tool
def bait() -> str:
    "Say which version this is."
    return "{version}"
"""
STEPS = st.lists(
    st.sampled_from(
        ["edit", "back", "remove", "text", "data", "code", "revoke", "corrupt", "refresh", "start"]
    ),
    min_size=4,
    max_size=14,
)


class History:
    """One project, its record, and a satchel that lives through all of it."""

    def __init__(self, base: Path) -> None:
        self.project, self.log = base / "project", base / "log"
        self.file = self.project / "plugins/bait/tools.py"
        self.file.parent.mkdir(parents=True)
        self.log.touch()
        self.settings = Settings(state_folder=str(base / "state"), mcp_servers=False, cache=False)
        self.store = TrustStore(str(base / "state"))
        self.versions = itertools.count(1)
        self.version = self.trusted = 0
        (self.file.parent / "toolkit.yaml").write_text("name: bait\nactive: true\n")
        self.edit()
        self.app = self.opened()

    def opened(self) -> Satchel:
        return Satchel(project=Project(self.project), settings=self.settings)

    def write(self, version: int) -> None:
        self.version = version
        self.file.write_text(CODE.format(log=str(self.log), version=version))

    def decide(self, level: str) -> None:
        record = read_inventory(Project(self.project)).record(TrustLevel(level))
        self.store.write(record)
        is_code = level == "code" and self.file.exists()
        self.trusted = self.version if is_code else 0

    # Steps.

    def edit(self) -> None:
        self.write(next(self.versions))

    def back(self) -> None:
        self.write(max(self.trusted, 1))

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)

    def text(self) -> None:
        skill = self.project / f"skills/s{next(self.versions)}"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {skill.name}\ndescription: d\n---\nDo.\n")

    def data(self) -> None:
        self.decide("data")

    def code(self) -> None:
        self.decide("code")

    def revoke(self) -> None:
        self.store.revoke(str(self.project))
        self.trusted = 0

    def corrupt(self) -> None:
        path = Path(self.store.stamp(str(self.project))[0])
        if path.exists():
            path.write_text("{")
            self.trusted = 0

    def refresh(self) -> None:
        self.app.refresh()

    def start(self) -> None:
        with self.opened():
            pass


@settings(max_examples=25)
@given(STEPS)
@example(["code", "edit", "start", "data"])
@example(["code", "remove", "data", "refresh", "code"])
@example(["code", "edit", "back", "revoke"])
@example(["edit", "code", "remove", "code"])
@example(["code", "corrupt", "code", "remove", "edit"])
def test_only_trusted_versions_run_and_only_while_they_are_trusted(steps):
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        for step in steps:
            before = history.log.read_text()
            getattr(history, step)()
            history.app.refresh()
            new = history.log.read_text().removeprefix(before).split()
            assert set(new) <= {str(history.trusted)}, (steps, step)
            served = history.app.session().call_sync("bait", {})
            if not history.trusted:
                assert served.is_error, (steps, step)
            elif history.version == history.trusted and history.file.exists():
                assert served.text == str(history.trusted), (steps, step)
        history.app.close()
