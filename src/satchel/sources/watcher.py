"""Watching: hints that something in the watched folders may have changed.

A hint is never the news itself. The operating system reports half-written files, drops events
without a word, loses sight of folders that are deleted and made again, and may die; whoever
takes a hint reads the unit whole and compares. What the events miss, the heartbeat finds: it
looks at the roots and at the folders of installed packages directly, and compares everything
now and then.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.settings import WatchTimings
from satchel.sources.file_reader import StampedPath, stamped
from satchel.sources.git_locks import git_locks
from satchel.sources.watched_roots import RootAliases, RootIdentity, readable_ones

# What the backend raises: a ValueError for a root whose name is not UTF-8.
_FAILURES = (OSError, RuntimeError, ValueError)

# A watcher that keeps dying is replaced by comparing; this many deaths within this time.
_DEATHS, _DEATHS_WITHIN = 5, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTargets:
    """What is to be watched now; a change of it rebuilds the watcher."""

    roots: tuple[str, ...]
    links: frozenset[tuple[str, str]] = frozenset()
    installed: tuple[StampedPath, ...] = ()
    """Folders of installed packages with the stamps they had when they were read."""
    awaited: tuple[str, ...] = ()
    """Files whose appearance ends an installation under way."""
    unsettled: frozenset[str] = frozenset()
    """Paths that were read while they may have been half written."""
    unreadable: tuple[str, ...] = ()
    """Folders and files that could not be read; a watch may be blind below them."""


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """Look again: at the units that these paths touch, or at everything if `paths` is `None`."""

    paths: frozenset[str] | None
    trouble: tuple[Diagnostic, ...] = ()
    """What is wrong with the watching itself at this time."""


class Notifier(Protocol):
    """The part of `watchfiles`' Rust backend that is used here."""

    def watch(self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: Any) -> Any:
        """Return a set of (kind, path), or a word when there is no news."""

    def close(self) -> None:
        """Stop watching."""


def native_notifier(roots: list[str]) -> Notifier:
    """Ask the system for events below these folders. Raises `OSError` or `RuntimeError`."""
    # Lazy: `import satchel` must stay light. The backend is used directly because `awatch` cannot
    # say when its watches stand, and dies with its first error.
    from watchfiles._rust_notify import RustNotify

    return RustNotify(roots, False, False, 0, True, True)


def change_events(
    watched: Callable[[], WatchTargets],
    stop: threading.Event,
    pace: WatchTimings,
    *,
    polling: bool = False,
    notifier: Callable[[list[str]], Notifier] = native_notifier,
) -> Iterator[ChangeEvent]:
    """Yield hints until `stop` is set, waiting in the calling thread.

    Each time the watches stand anew, the first hint is to look at everything: whatever happened
    before is found by that look, whatever happens later by an event. `watched` is asked again
    after each hint.
    """
    watch = _Watch(watched, stop, pace, notifier)
    while not stop.is_set():
        if polling or watch.dies_too_often():
            yield from watch.by_comparing(always=polling)
        else:
            yield from watch.by_events()


class _Watch:
    """The supervisor of one watch; it lives in one thread."""

    def __init__(
        self,
        watched: Callable[[], WatchTargets],
        stop: threading.Event,
        pace: WatchTimings,
        notifier: Callable[[list[str]], Notifier],
    ) -> None:
        self._watched, self._stop, self._pace, self._notifier = watched, stop, pace, notifier
        self._deaths: list[float] = []
        self._left_locks: set[tuple[str, int]] = set()
        self._trouble: tuple[Diagnostic, ...] = ()

    def dies_too_often(self) -> bool:
        """Tell whether the events are to be given up for a while."""
        return self._recent_deaths() >= _DEATHS

    def _recent_deaths(self) -> int:
        return sum(time.monotonic() - at < _DEATHS_WITHIN for at in self._deaths)

    def by_comparing(self, *, always: bool) -> Iterator[ChangeEvent]:
        """Yield a hint to look at everything at each tick, until events may be tried again."""
        if not any(item.code == "watcher-polling" for item in self._trouble):
            self._trouble = (*self._trouble, _polling("events are switched off"))
        while not self._stop.is_set() and (always or self.dies_too_often()):
            yield ChangeEvent(None, self._trouble)
            self._stop.wait(self._pace.settle if self._watched().unsettled else self._pace.poll)

    def by_events(self) -> Iterator[ChangeEvent]:
        """Yield hints until the watches must be built anew."""
        start = self._watched()
        with ExitStack() as stack:
            identity = stack.enter_context(RootIdentity(start.roots))
            aliases = RootAliases(start.roots)
            present = [root for root in start.roots if os.path.isdir(root)]
            try:
                notifier = self._notifier(present) if present else _Silence(self._stop)
            except _FAILURES as error:
                self._died(error)
                return
            stack.callback(notifier.close)
            yield ChangeEvent(None, self._trouble)
            try:
                for hint in self._news(notifier, start, identity):
                    yield replace(hint, paths=aliases.of(hint.paths))
            except _FAILURES as error:
                self._died(error)

    def _died(self, error: Exception) -> None:
        self._deaths.append(time.monotonic())
        self._trouble = (_failed(error),)
        if self.dies_too_often():
            self._trouble = (_polling(str(error)),)
        self._stop.wait(self._pace.step)

    def _news(
        self, notifier: Notifier, start: WatchTargets, identity: "RootIdentity"
    ) -> Iterator[ChangeEvent]:
        """Yield a hint for each batch of events, and for what the heartbeat sees."""
        pace = self._pace
        looked, active = time.monotonic(), True
        readable = readable_ones(start.unreadable)
        while not self._stop.is_set():
            now = self._watched()
            if (now.roots, now.links) != (start.roots, start.links) or not identity.holds():
                return
            # What becomes readable was not watched until now.
            if (now.unreadable, readable_ones(now.unreadable)) != (start.unreadable, readable):
                return
            beat = min(pace.heartbeat, pace.settle) if now.unsettled else pace.heartbeat
            paths = self._batch(notifier, beat)
            if now.unsettled and not paths:
                yield ChangeEvent(now.unsettled, self._trouble)
            elif paths:
                if paths & set(start.roots):
                    return
                active, looked = True, time.monotonic()
                yield ChangeEvent(paths | now.unsettled, self._trouble)
            elif self._installed_moved(now) or self._resync_is_due(looked, active=active):
                active, looked = False, time.monotonic()
                if not self._recent_deaths():
                    self._trouble = ()
                yield ChangeEvent(None, self._trouble)

    def _resync_is_due(self, looked: float, *, active: bool) -> bool:
        pause = self._pace.resync_active if active else self._pace.resync_idle
        return time.monotonic() - looked >= pause

    def _installed_moved(self, now: WatchTargets) -> bool:
        stamps = stamped(folder for folder, _ in now.installed)
        return stamps != now.installed or any(os.path.exists(path) for path in now.awaited)

    def _batch(self, notifier: Notifier, timeout: float) -> frozenset[str]:
        """Wait for events; of a burst, or of a checkout under way, wait for the end."""
        paths = self._events(notifier, timeout)
        deadline = time.monotonic() + self._pace.patience
        while paths and time.monotonic() < deadline and not self._stop.is_set():
            if len(paths) < self._pace.burst and not self._is_locked():
                break
            more = self._events(notifier, self._pace.quiet)
            if not more and not self._is_locked():
                break
            paths |= more
        if paths and time.monotonic() >= deadline:
            # A lock that outlives our patience was left behind by a git that died.
            self._left_locks = self._locks()
        return paths

    def _events(self, notifier: Notifier, timeout: float) -> frozenset[str]:
        step = max(int(self._pace.step * 1000), 1)
        news = notifier.watch(step * 5, step, max(int(timeout * 1000), 1), self._stop)
        if isinstance(news, str):
            return frozenset()
        return frozenset(path for _, path in news)

    def _is_locked(self) -> bool:
        """Tell whether git is changing one of the work trees at this moment."""
        return bool(self._locks() - self._left_locks)

    def _locks(self) -> set[tuple[str, int]]:
        """Return the locks that exist, each with the time that tells it from a later one."""
        found = set()
        for lock in git_locks(self._watched().roots):
            with suppress(OSError):
                found.add((lock, os.stat(lock).st_ctime_ns))
        return found


class _Silence:
    """Stands in for a notifier while there is nothing to watch yet."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def watch(self, _debounce: int, _step: int, timeout_ms: int, _stop: Any) -> str:
        self._stop.wait(timeout_ms / 1000)
        return "timeout"

    def close(self) -> None:
        """Nothing is open."""


def _failed(error: Exception) -> Diagnostic:
    return make_diagnostic(
        "watcher-failed",
        Where("watcher"),
        f"the watcher died and was started again; everything was compared ({error})",
        "rename files whose names are not UTF-8" if "decode" in str(error) else "",
    )


def _polling(why: str) -> Diagnostic:
    return make_diagnostic(
        "watcher-polling",
        Where("watcher"),
        f"no events from the operating system ({why}); all folders are compared every second",
        "raise fs.inotify.max_user_watches, or watch fewer folders" if "limit" in why else "",
    )
