"""The lifecycle of one version of a plugin: startup, catalog notifications, shutdown."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from satchel.importing.code_guard import (
    PluginCodeError,
    PluginTimeoutError,
    describe_error,
    guarded,
)
from satchel.importing.exit_guard import alarm
from satchel.plugins.plugin_diagnostics import without_secrets
from satchel.runtime.event_loop_thread import EventLoopThread

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog

_log = logging.getLogger("satchel")

_CANCEL_GRACE = 1.0
"""Seconds that the shutdown waits for tasks that ignore their cancellation."""


class Lifecycle:
    """Runs the lifecycle hooks of one version, each within a time limit.

    A version starts once and ends once.
    """

    def __init__(self, name: str, hooks: pluggy.HookRelay, limit: float) -> None:
        self._name, self._hooks, self._limit = name, hooks, limit
        self._loop: EventLoopThread | None = None
        self._has_begun = self._is_muted = False
        self.values: Mapping[str, Any] = {}
        """What its startup received; no message shows them."""
        self._lock = threading.Lock()

    @property
    def has_startup(self) -> bool:
        """Whether it implements `satchel_startup`; then a new configuration means a new import."""
        return bool(self._hooks.satchel_startup.get_hookimpls())

    @property
    def wants_catalogs(self) -> bool:
        """Whether it implements `satchel_catalog_built`."""
        return bool(self._hooks.satchel_catalog_built.get_hookimpls())

    @property
    def is_needed(self) -> bool:
        """Whether it implements any lifecycle hook."""
        has_shutdown = bool(self._hooks.satchel_shutdown.get_hookimpls())
        return has_shutdown or self.has_startup or self.wants_catalogs

    def begin(self, config: Mapping[str, Any], *, alone: bool) -> tuple[str, ...]:
        """Run the startup; return the names of reverted changes to the process.

        Raises `PluginCodeError` for every error of the code.
        """
        hook, self.values = self._hooks.satchel_startup, dict(config)
        try:
            _, changed = guarded(
                lambda: self._await_results(hook(config=dict(config))),
                self._limit,
                "hook",
                alone=alone,
            )
        except PluginCodeError:
            self._stop_loop()
            raise
        self._has_begun = True
        return changed

    def notify(self, catalog: Catalog) -> None:
        """Call `satchel_catalog_built`; errors are logged.

        Publishing a catalog waits for this hook, so it is not called again after a timeout.
        """
        hook = self._hooks.satchel_catalog_built
        if not self._is_muted:
            self._call(lambda: self._await_results(hook(catalog=catalog)), "satchel_catalog_built")

    def end(self) -> None:
        """Run the shutdown if the version was started; errors are logged.

        A second caller waits until the first one is done.
        """
        with self._lock:
            had_begun, self._has_begun = self._has_begun, False
            if had_begun:
                hook = self._hooks.satchel_shutdown
                self._call(lambda: self._await_results(hook()), "satchel_shutdown")
                self._stop_loop()

    def _call(self, work: Callable[[], None], hook: str) -> None:
        try:
            if threading.main_thread().is_alive():
                guarded(work, self._limit, "hook", alone=False)
            else:  # The interpreter is shutting down and cannot start threads.
                _in_time(work, self._limit)
        except PluginTimeoutError as problem:
            self._is_muted = True
            self._log(hook, problem)
        except PluginCodeError as problem:
            self._log(hook, problem)
        except BaseException as problem:
            self._log(hook, describe_error(problem))

    def _log(self, hook: str, problem: PluginCodeError) -> None:
        message = without_secrets(problem, self.values)
        _log.error("%s of plugin %s failed: %s", hook, self._name, message)

    def _await_results(self, results: Iterable[Any]) -> None:
        """Await the coroutines among the results of a hook; raise the first exception."""
        for result in results:
            if inspect.isawaitable(result):
                if self._loop is None:
                    self._loop = EventLoopThread(f"satchel-plugin-{self._name}")
                if problem := self._loop.begin(_exception_of(result)).result():
                    raise problem

    def _stop_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop(_CANCEL_GRACE)


def _in_time(work: Callable[[], None], limit: float) -> None:
    """Run `work` with a time limit, if this is the main thread and the system has timers."""

    def stop(*_: object) -> None:
        raise PluginTimeoutError(f"took longer than {limit:g} s (limit hook)")

    with alarm(stop, limit):
        work()


async def _exception_of(awaitable: Any) -> BaseException | None:
    """Return the exception of a coroutine; `SystemExit` must not end the loop."""
    try:
        await awaitable
    except BaseException as problem:
        return problem
    return None
