"""Load what the host wants, publish each new catalog, and notify the listeners."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_changes import diff
from satchel.errors import ConflictError
from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
from satchel.loader.name_choices import served_names
from satchel.loader.reconcile_pass import reconcile
from satchel.loader.scan_cache import ScanCache
from satchel.provider_registry import ProviderRegistry
from satchel.workers.worker_processes import WorkerPool

if TYPE_CHECKING:
    from satchel.catalog.catalog_changes import Change
    from satchel.catalog.catalog_entries import PluginEntry
    from satchel.mcp_servers.client_callbacks import AskHost
    from satchel.mcp_servers.server_contributions import ServerOffer
    from satchel.providers.provider import Provider
    from satchel.server_registry import ServerRegistry
    from satchel.shared import SharedState
    from satchel.watch_thread import ImportRetry

T = TypeVar("T")


class Listeners(Generic[T]):
    """Functions that are called with each event; one that fails is logged."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[T], object]] = []

    def add(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Add a listener; return a function that removes it."""
        self._listeners.append(listener)

        def undo() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return undo

    def notify(self, event: T) -> None:
        """Call all listeners."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                import logging

                logging.getLogger("satchel").exception("a listener failed on %s", event)


class Reconciler:
    """Holds what the host wants loaded, what the last pass found, and where both come from.

    Its lock protects all of it, for those who change several parts at once as well.
    """

    def __init__(
        self,
        config: LoaderConfig,
        shared: SharedState,
        on_elicit: AskHost | None,
        on_sample: AskHost | None,
    ) -> None:
        self.lock = threading.RLock()
        self.shared, self.settings = shared, config.settings
        refresh = self._weak_callback()
        self._workers = WorkerPool(self.settings.limits, refresh, shared.errors)
        weakref.finalize(self, self._workers.close)
        self.config = replace(config, workers=self._workers)
        self.cache = ScanCache()
        self.is_importing = False
        """Whether slow plugins are still being imported."""
        self.providers = ProviderRegistry(self.settings.limits, refresh)
        self.servers: ServerRegistry | None = None
        self._on_elicit, self._on_sample = on_elicit, on_sample
        self.change_listeners: Listeners[Change] = Listeners()
        self.catalog_listeners: Listeners[Catalog] = Listeners()
        self._import_retry: ImportRetry | None = None
        self._is_batching = self._is_closed = False
        self._recorded = -1

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""
        return self.shared.catalog

    def require_open(self) -> None:
        """Raise `ConflictError` if it is closed."""
        if self._is_closed:
            raise ConflictError("this satchel is closed", fix="create a new one")

    def close(self) -> None:
        """Publish an empty catalog, stop everything, and shut down the plugins."""
        with self.lock:
            self._is_closed = True
            lifecycles = [
                entry.contribution.lifecycle
                for entry in self.catalog.all_plugins
                if entry.contribution.lifecycle
            ]
            self.cache = ScanCache()
            self.is_importing = False
            self.shared.publish(Catalog(generation=self.catalog.generation + 1))
        if self.servers is not None:
            self.servers.close()
        self._workers.close()
        self.shared.background_loop.stop()
        for lifecycle in lifecycles:
            lifecycle.end()

    # ---- changing what is loaded ----------------------------------------------------------

    def update(self, **parts: Any) -> None:
        """Change what is loaded, and load it."""
        self.config = replace(self.config, **parts)
        if not self._is_batching:
            self.reconcile(ReconcileOptions(dirty=frozenset(), in_background=True))

    def update_host(self, **parts: Any) -> None:
        """Change what the host contributes in code, and load it."""
        self.update(host=replace(self.config.host, **parts))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Load once for all updates of the block; none of them counts if it raises."""
        with self.lock:
            before, self._is_batching = self.config, True
            try:
                yield
            except BaseException:
                self.config = before
                raise
            finally:
                self._is_batching = False
            self.update()

    def open_servers(self) -> ServerRegistry:
        """Return the MCP servers, for a change. Raises `ConflictError` if it is closed."""
        self.require_open()
        return self._server_registry()

    def _server_registry(self) -> ServerRegistry:
        if self.servers is None:
            # Lazy: needed only with MCP servers.
            from satchel.mcp_servers.client_callbacks import ClientCallbacks
            from satchel.server_registry import ServerRegistry

            callbacks = ClientCallbacks(
                on_elicit=self._on_elicit,
                on_sample=self._on_sample,
                asks_clients=self.settings.ask_mcp_clients,
            )
            self.servers = ServerRegistry(self.settings, self._weak_callback(), callbacks)
            # Sessions, and their tools, may outlive this object.
            weakref.finalize(self.shared, self.servers.close)
        return self.servers

    # ---- staying current ------------------------------------------------------------------

    def refresh_in_background(
        self, dirty: frozenset[str] | None = frozenset(), **options: Any
    ) -> None:
        """Update the catalog with what servers, providers and workers contribute now."""
        with self.lock:
            if not self._is_closed:
                self.reconcile(ReconcileOptions(dirty=dirty, in_background=True, **options))

    def _weak_callback(self, **options: Any) -> Callable[[], None]:
        """Return a callback that refreshes this instance, and does not keep it alive."""
        reference = weakref.WeakMethod(self.refresh_in_background)

        def refresh() -> None:
            if (method := reference()) is not None:
                method(**options)

        return refresh

    def start_import_retry(self) -> None:
        """Try imports that took too long again, from time to time."""
        from satchel.watch_thread import ImportRetry  # lazy: needed by a watch

        self._import_retry = ImportRetry(self._weak_callback(retry_late=True))
        self._import_retry.update(is_late=self._has_late_imports)

    def stop_import_retry(self) -> None:
        """Try no import again."""
        if self._import_retry is not None:
            self._import_retry.stop()
            self._import_retry = None

    @property
    def _has_late_imports(self) -> bool:
        return any(item.code == "plugin-import-timeout" for item in self.catalog.diagnostics)

    def reconcile(
        self, options: ReconcileOptions, provider_names: frozenset[str] = frozenset()
    ) -> tuple[Change, ...]:
        """Run one pass, publish a new catalog, and notify the listeners."""
        with self.lock:
            self.require_open()
            old = self.catalog
            config = self._with_snapshots(options, provider_names)
            left_out = self.cache.left_out
            self.cache, new = reconcile(config, self.cache, old, options)
            # Who waits for an import must not see its end before the catalog with its tools.
            self.is_importing |= bool(self.cache.imported.pending)
            has_news = self._connect_declared() or left_out != self.cache.left_out
            changes: tuple[Change, ...] = ()
            self._record_names(new, config.servers)
            if new is not old:
                self.shared.publish(new)
                _notify_plugins(new)
                # No listener can exist before the first one.
                changes = diff(old, new) if old.generation else ()
                for change in changes:
                    self.change_listeners.notify(change)
                self.catalog_listeners.notify(new)
            self.is_importing = bool(self.cache.imported.pending)
            is_late = self._has_late_imports
            if self._import_retry is not None and (is_late or not self.is_importing):
                self._import_retry.update(is_late=is_late)
            if self.providers.update(_plugin_providers(new)) or has_news:
                changes += self.reconcile(replace(options, dirty=frozenset()))
            return changes

    def _with_snapshots(
        self, options: ReconcileOptions, provider_names: frozenset[str]
    ) -> LoaderConfig:
        """Return the configuration with what servers and providers contribute now."""
        settings = self.settings
        seconds = settings.pace.settle if options.in_background else settings.limits.provider
        return replace(
            self.config,
            servers=self.servers.offered() if self.servers else (),
            provided=self.providers.ask(options.dirty, provider_names, seconds),
        )

    def _record_names(self, new: Catalog, servers: Iterable[ServerOffer]) -> None:
        """Record who serves a name, so that no new folder takes it.

        The names may belong to a plugin that is still being imported, so its end comes first.
        """
        owners = self.config.owners
        is_ready = self.config.run_code and not self.cache.imported.pending
        if owners is None or not is_ready:
            return
        if new.generation != self._recorded:
            # There may be very many skills, so only those are looked at that may be new.
            is_next = new.generation == self._recorded + 1
            skills = new.changed_skills if is_next else None
            owners.record(served_names(new, servers, skills))
            self._recorded = new.generation

    def _connect_declared(self) -> bool:
        """Connect the declared servers; return whether a further pass sees others than before."""
        declared = self.cache.declared if self.config.connects_servers else ()
        if not (declared or self.servers is not None):
            return False
        return self._server_registry().update(declared, self.cache.left_out, self.config.owners)


def _plugin_providers(catalog: Catalog) -> Iterable[tuple[str, Provider, Mapping[str, Any]]]:
    for plugin in catalog.plugins.values():
        lifecycle = plugin.contribution.lifecycle
        for provider in plugin.contribution.providers:
            yield plugin.name, provider, lifecycle.values if lifecycle else {}


def _notify_plugins(catalog: Catalog) -> None:
    """Call `satchel_catalog_built` of the served plugins.

    They receive a copy without handles: a plugin that keeps it must not keep old versions alive.
    """
    lifecycles = (entry.contribution.lifecycle for entry in catalog.plugins.values())
    listeners = [it for it in lifecycles if it and it.wants_catalogs]
    if listeners:
        plugins = tuple(_without_handles(entry) for entry in catalog.all_plugins)
        copied = replace(catalog, all_plugins=plugins)
        for lifecycle in listeners:
            lifecycle.notify(copied)


def _without_handles(entry: PluginEntry) -> PluginEntry:
    contribution = replace(
        entry.contribution, code=None, lifecycle=None, middleware=(), providers=(), commands=()
    )
    return replace(entry, contribution=contribution)
