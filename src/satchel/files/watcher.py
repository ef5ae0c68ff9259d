"""Watch folders and yield change events.

An event only means that something may have changed; its receiver reads and compares. The operating
system reports half-written files, drops events silently, loses folders that are deleted and
recreated, and may fail. The heartbeat finds what the events miss: it checks the roots and the
folders of installed packages, and regularly a safety scan compares everything.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, Protocol

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import Stamp, real_path, stamped
from satchel.files.git_locks import git_locks
from satchel.files.watch_targets import WatchTargets
from satchel.files.watched_roots import LinkTargets, PathAliases, RootIdentity, readable_ones
from satchel.lazy_dataclass import dataclass
from satchel.settings import WatchTimings

# Errors of the backend; it raises ValueError for a root whose name is not UTF-8.
_BACKEND_ERRORS = (OSError, RuntimeError, ValueError)

# After this many failures within this time (in seconds), polling replaces the events.
_MAX_FAILURES, _FAILURES_WITHIN = 5, 10.0

# Safety scans take at most these shares of a core, so they are rarer in a large catalog: the one
# after a change, and those while nothing changes. So a watch that waits stays below 1 %.
_ACTIVE_SHARE, _IDLE_SHARE = 0.01, 0.003

# Merge the notifiers of links above this number: the system limits inotify instances.
_MOST_OF_LINKS = 4

# Events that keep coming are collected for at most this long, in milliseconds.
_MOST_COLLECTED = 50


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """Paths that may have changed; `None` means that everything may have changed."""

    paths: frozenset[str] | None
    diagnostics: tuple[Diagnostic, ...] = ()
    """Diagnostics of the watcher itself."""


class EventNotifier(Protocol):
    """The part of `watchfiles`' Rust backend that is used here."""

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: Any) -> Any:
        """Return a set of (kind, path), or a text if there are no events."""

    def close(self) -> None:
        """Stop watching."""


def native_notifier(roots: list[str]) -> EventNotifier:
    """Return a notifier for events below these folders. Raises `OSError` or `RuntimeError`."""
    # Lazy: `import satchel` must stay light. The backend is used directly, because `awatch` does
    # not report when its watches are set, and ends at the first error.
    from watchfiles._rust_notify import RustNotify

    return RustNotify(roots, False, False, 0, True, True)


def change_events(
    watched: Callable[[], WatchTargets],
    stop: threading.Event,
    pace: WatchTimings,
    *,
    polling: bool = False,
    notifier: Callable[[list[str]], EventNotifier] = native_notifier,
) -> Iterator[ChangeEvent]:
    """Yield change events until `stop` is set; waits in the calling thread.

    The first event after the watches are set has `paths=None`, so it covers all earlier changes.
    `watched` is called again after each event.
    """
    watch = _Watch(watched, stop, pace, notifier)
    while not stop.is_set():
        if polling or watch.fails_too_often():
            yield from watch.poll(always=polling)
        else:
            yield from watch.watch_events()


def no_events(stop: threading.Event) -> Iterator[ChangeEvent]:
    """Yield that nothing changed, once, and wait until `stop` is set."""
    yield ChangeEvent(frozenset())
    stop.wait()


class _Notifiers:
    """The notifier of the roots, and one for each change of links since; polled in turn."""

    def __init__(self, open_notifier: Callable[[list[str]], EventNotifier]) -> None:
        self._open = open_notifier
        self._all: list[EventNotifier] = []
        self._link_targets: set[str] = set()
        self._events: set[Any] = set()
        """Events of closed notifiers that were not read yet."""

    @property
    def has_links(self) -> bool:
        return bool(self._link_targets)

    def add(self, folders: Iterable[str]) -> None:
        """Watch the folders that exist, too."""
        self._all.append(self._open([path for path in folders if os.path.isdir(path)]))

    def add_targets(self, targets: Iterable[str], stop: threading.Event) -> None:
        """Watch the targets of links that changed."""
        replaced = list[EventNotifier]()
        self._link_targets.update(targets)
        if len(self._all) > _MOST_OF_LINKS:
            replaced, targets = self._all[1:], self._link_targets
        self.add(targets)
        for notifier in replaced:
            events = notifier.watch(1, 1, 1, stop)
            self._events |= set() if isinstance(events, str) else events
            self._all.remove(notifier)
            notifier.close()

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop: threading.Event) -> Any:
        """Return the next events, as a notifier does."""
        if self._events:
            events, self._events = self._events, set()
            return events
        if not self.has_links:
            return self._all[0].watch(debounce_ms, step_ms, timeout_ms, stop)
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            for notifier in self._all:
                events = notifier.watch(debounce_ms, step_ms, step_ms, stop)
                if not isinstance(events, str):
                    return events
            if stop.is_set() or time.monotonic() >= deadline:
                return "timeout"

    def close(self) -> None:
        for notifier in self._all:
            notifier.close()


class _IdleNotifier:
    """A notifier without events, used while there is nothing to watch."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def watch(self, _debounce: int, _step: int, timeout_ms: int, _stop: Any) -> str:
        self._stop.wait(timeout_ms / 1000)
        return "timeout"

    def close(self) -> None:
        """Do nothing."""


class _Watch:
    """Watches one set of roots, and recovers from failures of the backend; not thread-safe."""

    def __init__(
        self,
        watched: Callable[[], WatchTargets],
        stop: threading.Event,
        pace: WatchTimings,
        notifier: Callable[[list[str]], EventNotifier],
    ) -> None:
        self._watched, self._stop, self._pace, self._notifier = watched, stop, pace, notifier
        self._failures: list[float] = []
        self._scan_seconds = 0.0
        self._stale_locks: set[tuple[str, int]] = set()
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._set_links(WatchTargets())

    def fails_too_often(self) -> bool:
        return self._recent_failures() >= _MAX_FAILURES

    def _recent_failures(self) -> int:
        return sum(time.monotonic() - at < _FAILURES_WITHIN for at in self._failures)

    def poll(self, *, always: bool) -> Iterator[ChangeEvent]:
        """Yield an event without paths at each interval, until native events can be tried again."""
        if not any(item.code == "watcher-polling" for item in self._diagnostics):
            self._diagnostics = (*self._diagnostics, _polling("events are switched off"))
        while not self._stop.is_set() and (always or self.fails_too_often()):
            yield ChangeEvent(None, self._diagnostics)
            self._stop.wait(self._pace.settle if self._watched().settling else self._pace.poll)

    def watch_events(self) -> Iterator[ChangeEvent]:
        start = self._watched()
        with (
            RootIdentity(start.roots) as identity,
            closing(_Notifiers(self._open_notifier)) as notifiers,
        ):
            self._set_links(start)
            try:
                notifiers.add(start.roots)
                yield from self._everything()
                for event in self._change_events(notifiers, start, identity):
                    yield replace(event, paths=self._aliases.of(event.paths))
            except _BACKEND_ERRORS as error:
                self._record_failure(error)

    def _open_notifier(self, folders: list[str]) -> EventNotifier:
        return self._notifier(folders) if folders else _IdleNotifier(self._stop)

    def _set_links(self, targets: WatchTargets) -> None:
        self._aliases = PathAliases(targets.roots, targets.links)
        self._link_targets = LinkTargets(targets.roots, targets.links)

    def _record_failure(self, error: Exception) -> None:
        self._failures.append(time.monotonic())
        self._diagnostics = (_failed(error),)
        if self.fails_too_often():
            self._diagnostics = (_polling(str(error)),)
        self._stop.wait(self._pace.step)

    def _change_events(
        self,
        notifier: _Notifiers,
        start: WatchTargets,
        identity: RootIdentity,
    ) -> Iterator[ChangeEvent]:
        """Yield an event for each batch of paths, and for what the heartbeat finds."""
        pace = self._pace
        last_scan, active = time.monotonic(), True
        readable = readable_ones(start.unreadable)
        while not self._stop.is_set():
            now = self._watched()
            changed_links = now.links ^ start.links
            moved = self._link_targets.moved()
            if (changed_links or moved) and now.roots == start.roots:
                # Watch where new links lead, and where gone ones led: what is reported by the path
                # of a link that is gone is in no root.
                start = replace(start, links=now.links)
                self._set_links(start)
                targets = {target for _, target in changed_links} | set(map(real_path, moved))
                notifier.add_targets(targets, self._stop)
                active, last_scan = True, time.monotonic()
                links = moved.union(path for path, _ in changed_links)
                yield ChangeEvent(links, self._diagnostics)
                continue
            # Paths that became readable are not watched yet, so set the watches again.
            unreadable = (now.unreadable, readable_ones(now.unreadable))
            is_same = (now.roots, now.links) == (start.roots, start.links)
            if not (is_same and identity.holds()) or unreadable != (start.unreadable, readable):
                return
            beat = min(pace.heartbeat, pace.settle) if now.settling else pace.heartbeat
            paths = self._batch(notifier, beat)
            if now.settling and not paths:
                yield ChangeEvent(now.settling, self._diagnostics)
            elif paths:
                if paths & set(start.roots):
                    return
                active, last_scan = True, time.monotonic()
                yield ChangeEvent(paths | now.settling, self._diagnostics)
            elif changed := _changed_files(now):
                yield ChangeEvent(changed | now.settling, self._diagnostics)
            elif self._installed_changed(now) or self._safety_scan_is_due(
                last_scan,
                # What may be read but could not: no handle was left, so try again soon.
                active=active or any(unreadable[1]),
            ):
                if notifier.has_links:
                    return  # one notifier for all again
                active, last_scan = False, time.monotonic()
                yield from self._everything()

    def _everything(self) -> Iterator[ChangeEvent]:
        """Yield an event without paths, and measure how long its receiver computes."""
        if not self._recent_failures():
            self._diagnostics = ()
        started = time.thread_time()
        yield ChangeEvent(None, self._diagnostics)
        self._scan_seconds = time.thread_time() - started

    def _safety_scan_is_due(self, last_scan: float, *, active: bool) -> bool:
        pace = self._pace
        pause, share = (
            (pace.safety_scan_active, _ACTIVE_SHARE)
            if active
            else (pace.safety_scan_idle, _IDLE_SHARE)
        )
        return time.monotonic() - last_scan >= max(pause, self._scan_seconds / share)

    def _installed_changed(self, now: WatchTargets) -> bool:
        stamps = stamped(folder for folder, _ in now.installed)
        return stamps != now.installed or any(os.path.exists(path) for path in now.awaited)

    def _batch(self, notifier: _Notifiers, timeout: float) -> frozenset[str]:
        """Wait for events, and for the end of a burst of events or of a git checkout."""
        paths = self._events(notifier, timeout)
        deadline = time.monotonic() + self._pace.patience
        while paths and time.monotonic() < deadline and not self._stop.is_set():
            if len(paths) < self._pace.burst and not self._is_locked():
                break
            later_paths = self._events(notifier, self._pace.quiet)
            if not later_paths and not self._is_locked():
                break
            paths |= later_paths
        if paths and time.monotonic() >= deadline:
            # After so long, assume that the git process died and left its lock behind.
            self._stale_locks = self._locks()
        return paths

    def _events(self, notifier: _Notifiers, timeout: float) -> frozenset[str]:
        step = max(int(self._pace.step * 1000), 1)
        most = max(step, _MOST_COLLECTED)
        events = notifier.watch(most, step, max(int(timeout * 1000), 1), self._stop)
        if isinstance(events, str):
            return frozenset()
        return frozenset(path for _, path in events)

    def _is_locked(self) -> bool:
        return bool(self._locks() - self._stale_locks)

    def _locks(self) -> set[tuple[str, int]]:
        """Return the existing lock files, each with its time of creation."""
        locks = set()
        for lock in git_locks(self._watched().roots):
            with suppress(OSError):
                locks.add((lock, os.stat(lock).st_ctime_ns))
        return locks


def _changed_files(now: WatchTargets) -> frozenset[str]:
    return frozenset(path for path, stamp in now.files if Stamp.at(path) != stamp)


def _failed(error: Exception) -> Diagnostic:
    return make_diagnostic(
        "watcher-failed",
        Where("watcher"),
        f"the watcher failed and was restarted; everything was compared ({error})",
        "rename files whose names are not UTF-8" if "decode" in str(error) else "",
    )


def _polling(why: str) -> Diagnostic:
    return make_diagnostic(
        "watcher-polling",
        Where("watcher"),
        f"no events from the operating system ({why}); all folders are compared every second",
        "raise fs.inotify.max_user_watches, or watch fewer folders" if "limit" in why else "",
    )
