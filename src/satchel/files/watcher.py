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
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Protocol

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import Stamp, stamped
from satchel.files.git_locks import git_locks
from satchel.files.watch_targets import WatchTargets
from satchel.files.watched_roots import PathAliases, RootIdentity, readable_ones
from satchel.lazy_dataclass import dataclass
from satchel.settings import WatchTimings

# Errors of the backend; it raises ValueError for a root whose name is not UTF-8.
_BACKEND_ERRORS = (OSError, RuntimeError, ValueError)

# After this many failures within this time (in seconds), polling replaces the events.
_MAX_FAILURES, _FAILURES_WITHIN = 5, 10.0

# Safety scans take at most these shares of a core, so they are rarer in a large catalog: the one
# after a change, and those while nothing changes. So a watch that waits stays below 1 %.
_ACTIVE_SHARE, _IDLE_SHARE = 0.01, 0.003

# After this many changes of links, all watches are set again, with one notifier.
_MOST_LINK_NOTIFIERS = 4

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
    """The notifier of the roots, and one for each later change of links; asked in turn."""

    def __init__(self, of_roots: EventNotifier) -> None:
        self._all = [of_roots]

    @property
    def has_links(self) -> bool:
        return len(self._all) > 1

    @property
    def is_full(self) -> bool:
        return len(self._all) > _MOST_LINK_NOTIFIERS

    def add(self, notifier: EventNotifier) -> None:
        self._all.append(notifier)

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop: threading.Event) -> Any:
        """Return the next events, as a notifier does."""
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
        self._aliases = PathAliases((), frozenset())

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
        with ExitStack() as stack:
            identity = stack.enter_context(RootIdentity(start.roots))
            self._aliases = PathAliases(start.roots, start.links)
            try:
                notifier = _Notifiers(self._open(start.roots, stack))
                yield from self._everything()
                for event in self._change_events(notifier, start, identity, stack):
                    yield replace(event, paths=self._aliases.of(event.paths))
            except _BACKEND_ERRORS as error:
                self._record_failure(error)

    def _open(self, roots: Iterable[str], stack: ExitStack) -> EventNotifier:
        present = [root for root in roots if os.path.isdir(root)]
        notifier = self._notifier(present) if present else _IdleNotifier(self._stop)
        stack.callback(notifier.close)
        return notifier

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
        identity: "RootIdentity",
        stack: ExitStack,
    ) -> Iterator[ChangeEvent]:
        """Yield an event for each batch of paths, and for what the heartbeat finds."""
        pace = self._pace
        last_scan, active = time.monotonic(), True
        readable = readable_ones(start.unreadable)
        while not self._stop.is_set():
            now = self._watched()
            changed_links = now.links ^ start.links
            if changed_links and now.roots == start.roots and not notifier.is_full:
                # Watch the targets of new links, and of gone ones: their folders may still be found
                # at another path, and events at the path of a gone link are in no root.
                notifier.add(self._open({target for _, target in changed_links}, stack))
                start = replace(start, links=now.links)
                self._aliases = PathAliases(start.roots, start.links)
                links = frozenset(path for path, _ in changed_links)
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
            elif changed := self._aliases.moved() | _changed_files(now):
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
