"""The life of one version of a plugin: its startup, what it is told meanwhile, its shutdown."""

import inspect
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pluggy

from satchel.catalog import Catalog, PluginEntry
from satchel.plugins.plugin_diagnostics import without_secrets
from satchel.runtime.event_loop_thread import EventLoopThread
from satchel.sources import PluginCodeError, PluginTimeoutError, guarded
from satchel.sources.code_guard import describe_error

_log = logging.getLogger("satchel")

_LINGER = 1.0
"""Seconds that the end waits for tasks that do not end when they are cancelled."""


class Lifecycle:
    """Runs the hooks of one version that are not asked but told: each within a time limit.

    Nothing of it happens twice: a version starts once and ends once.
    """

    def __init__(self, name: str, hooks: pluggy.HookRelay, limit: float) -> None:
        self._name, self._hooks, self._limit = name, hooks, limit
        self._loop: EventLoopThread | None = None
        self._has_begun = self._is_deaf = False
        self._values: Mapping[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def has_startup(self) -> bool:
        """Tell whether it has a startup, so that another configuration means another life."""
        return bool(self._hooks.satchel_startup.get_hookimpls())

    @property
    def is_told_of_catalogs(self) -> bool:
        """Tell whether it wants to see each generation."""
        return bool(self._hooks.satchel_catalog_built.get_hookimpls())

    @property
    def is_needed(self) -> bool:
        """Tell whether there is anything to run."""
        told = self.has_startup or self.is_told_of_catalogs
        return told or bool(self._hooks.satchel_shutdown.get_hookimpls())

    def begin(self, config: Mapping[str, Any], *, alone: bool) -> tuple[str, ...]:
        """Run the startup, and return what it changed in the process that was put back.

        Raises `PluginCodeError` whatever the code does.
        """
        hook, self._values = self._hooks.satchel_startup, dict(config)
        try:
            _, meddled = guarded(
                lambda: self._finish(hook(config=dict(config))), self._limit, "hook", alone=alone
            )
        except PluginCodeError:
            self._stop_loop()
            raise
        self._has_begun = True
        return meddled

    def show(self, catalog: Catalog) -> None:
        """Let the plugin look at a generation; what it raises is logged.

        One that once took too long is shown nothing more: whoever publishes waits for it.
        """
        hook = self._hooks.satchel_catalog_built
        if not self._is_deaf:
            self._tell(lambda: self._finish(hook(catalog=catalog)), "satchel_catalog_built")

    def end(self) -> None:
        """Run the shutdown, unless there was no startup; faults are logged.

        Whoever comes second waits until it is done.
        """
        with self._lock:
            had_begun, self._has_begun = self._has_begun, False
            if had_begun:
                hook = self._hooks.satchel_shutdown
                self._tell(lambda: self._finish(hook()), "satchel_shutdown")
                self._stop_loop()

    def _tell(self, work: Callable[[], None], hook: str) -> None:
        try:
            if threading.main_thread().is_alive():
                guarded(work, self._limit, "hook", alone=False)
            else:  # The interpreter ends, and starts no more threads.
                _in_time(work, self._limit)
        except PluginTimeoutError as problem:
            self._is_deaf = True
            self._log(hook, problem)
        except PluginCodeError as problem:
            self._log(hook, problem)
        except BaseException as problem:
            self._log(hook, describe_error(problem))

    def _log(self, hook: str, problem: PluginCodeError) -> None:
        told = without_secrets(problem, self._values)
        _log.error("%s of plugin %s failed: %s", hook, self._name, told)

    def _finish(self, answers: Iterable[Any]) -> None:
        """Wait for the coroutines among what the implementations of a hook returned."""
        for answer in answers:
            if inspect.isawaitable(answer):
                if self._loop is None:
                    self._loop = EventLoopThread(f"satchel-plugin-{self._name}")
                if problem := self._loop.begin(_outcome(answer)).result():
                    raise problem

    def _stop_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop(_LINGER)


def notify_catalog_built(catalog: Catalog) -> None:
    """Let the plugins that a generation serves look at it.

    What they keep of it must not keep old versions alive, their own among them.
    """
    lives = [entry.supply.life for entry in catalog.plugins.values() if entry.supply.life]
    listeners = [life for life in lives if life.is_told_of_catalogs]
    if listeners:
        plugins = tuple(_without_handles(entry) for entry in catalog.all_plugins)
        shown = replace(catalog, all_plugins=plugins)
        for life in listeners:
            life.show(shown)


def _without_handles(entry: PluginEntry) -> PluginEntry:
    supply = replace(entry.supply, code=None, life=None, layers=(), commands=())
    return replace(entry, supply=supply)


def _in_time(work: Callable[[], None], limit: float) -> None:
    """Run something in the main thread for so long at most, where the system can interrupt it."""

    def stop(*_: object) -> None:
        raise PluginTimeoutError(f"took longer than {limit:g} seconds (limit hook)")

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        work()
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fingerprint(values: Mapping[str, Any]) -> str:
    """Return what differs when one of the values does.

    Salted by Python for each process: it gives no secret away.
    """
    return f"{hash(tuple(map(_text, sorted(values.items())))):x}"


def _text(item: tuple[str, Any]) -> str:
    """Return what differs when a value does; not every value can be written."""
    try:
        return repr(item)
    except Exception:
        return f"{item[0]} {id(item[1]):x}"


async def _outcome(answer: Any) -> BaseException | None:
    """Return what a coroutine raised: an exit that it asks for must not end the loop."""
    try:
        await answer
    except BaseException as problem:
        return problem
    return None
