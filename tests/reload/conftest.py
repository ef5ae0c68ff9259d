"""A satchel that is being watched, and ways to wait for what it should become."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from satchel import Catalog, Change, Satchel, Settings, WatchTimings

# Generous: it is only ever waited out when a test fails.
PATIENCE = 120.0

LIVELY = Settings(
    mcp_servers=False,
    pace=WatchTimings(
        heartbeat=0.05, settle=0.1, quiet=0.05, safety_scan_active=0.5, safety_scan_idle=5, poll=0.1
    ),
)


def picture(catalog: Catalog) -> Any:
    """Everything a catalog says but for generations and the watcher's own troubles."""
    return (
        [replace(entry, generation=0) for entry in catalog.entries],
        {item for item in catalog.source_diagnostics if not item.code.startswith("watcher-")},
    )


def shown(app) -> tuple:
    """Return what is compared: the catalog, and what a new session sends to a model."""
    session = app.session()
    return picture(app.catalog), session.prompt(), json.dumps(session.schemas())


@dataclass
class Watched:
    """A satchel under watch, with the changes it told so far."""

    app: Satchel
    arguments: dict[str, Any]
    changes: list[Change] = field(default_factory=list)
    _news: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.app.subscribe(self._note)

    def _note(self, change: Change) -> None:
        self.changes.append(change)
        self._news.set()

    def until(self, expected: Callable[[], object]) -> None:
        """Wait until something holds; a change wakes us, and what tells no change is looked at."""
        deadline = time.monotonic() + PATIENCE
        while not expected():
            assert time.monotonic() < deadline, f"never came: {self.summary()}"
            self._news.wait(0.02)
            self._news.clear()

    def until_names(self, *names: str) -> None:
        self.until(lambda: sorted(self.app.catalog.skills) == sorted(names))

    def until_event(self, event: str, name: str) -> Change:
        results: list[Change] = []
        self.until(
            lambda: (
                results.extend(c for c in self.changes if (c.event, c.name) == (event, name))
                or results
            )
        )
        return results[0]

    def until_as_cold(self) -> None:
        """Wait until the live catalog is that of a fresh load, to the byte."""
        self.until(lambda: shown(self.app) == shown(self.cold()))

    def cold(self) -> Satchel:
        return Satchel(**self.arguments)

    def events(self) -> list[tuple[str, str, str]]:
        return [(str(change.event), change.kind, change.name) for change in self.changes]

    def summary(self) -> Any:
        states = [(entry.name, str(entry.state)) for entry in self.app.catalog.entries]
        return states, [str(item) for item in self.app.catalog.diagnostics], self.events()


@pytest.fixture
def watched():
    """Make a satchel of these arguments and watch it while the block runs."""

    @contextmanager
    def watch(notifier: Any = None, **arguments: Any) -> Iterator[Watched]:
        arguments.setdefault("settings", LIVELY)
        app = Satchel(**arguments)
        if notifier is not None:
            _with_notifier(app, notifier, arguments["settings"])
        seen = Watched(app, arguments)
        with app.watching():
            yield seen

    return watch


def _with_notifier(app: Satchel, notifier: Any, settings: Settings) -> None:
    from satchel.files.watcher import change_events

    app._watch.events = lambda stop: change_events(
        app._watch._targets, stop, settings.pace, notifier=notifier
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder
