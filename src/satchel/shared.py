"""The state that all sessions of one `Satchel` share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from satchel.background_loop import LazyEventLoop
from satchel.catalog.catalog import Catalog
from satchel.groups.group_activation import active_in, view_of, visible_skills
from satchel.groups.view_digest import digest_catalog

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import SkillEntry
    from satchel.catalog.entry_filter import EntryFilter
    from satchel.groups.group_activation import Activation, View
    from satchel.groups.view_digest import CatalogDigest
    from satchel.prompt.skill_listing import PromptListing, SkillTexts
    from satchel.prompt.skill_prompt import SkillPrompt
    from satchel.runtime.error_results import ErrorText
    from satchel.runtime.middleware_chain import ScopedMiddleware
    from satchel.runtime.prepared_tool import PreparedTool
    from satchel.runtime.scoped_runner import ScopedRunner
    from satchel.search.search_index import SearchHit, SearchIndex
    from satchel.settings import Limits
    from satchel.tools import Tool

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds that closing waits for calls that ignore their cancellation."""
_MAX_VALUES = 4_096
"""How many derived values of one catalog are kept."""


class Memo:
    """A bounded memo; evicts the oldest values."""

    __slots__ = ("_max_values", "_values")

    def __init__(self, max_values: int | None = None) -> None:
        self._values: dict[Hashable, tuple[Any]] = {}
        self._max_values = max_values or _MAX_VALUES

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key; make it if there is none."""
        # One lookup: another thread may evict the value between two.
        stored = self._values.get(key)
        if stored is not None:
            cached: T = stored[0]
            return cached
        value = make()
        if len(self._values) >= self._max_values:  # The number of possible keys has no limit.
            for oldest in tuple(self._values)[: self._max_values // 8 + 1]:
                self._values.pop(oldest, None)
        self._values[key] = (value,)
        return value


class CatalogCache(Memo):
    """A catalog with the values derived from it; each is made once.

    All sessions and servers share it, and it is freed with the catalog. No value in it may refer
    to it: the catalog and its plugins' code are freed with the last step that uses them, without
    waiting for the garbage collector.
    """

    __slots__ = (
        "_previous_digest",
        "catalog",
        "has_contracts",
        "last_listings",
        "listings",
        "middleware",
        "names_runners",
        "schemas",
        "skill_texts",
    )

    def __init__(self, catalog: Catalog, before: CatalogCache | None = None) -> None:
        """Start with the schemas that the cache `before` has for tools that still exist."""
        super().__init__()
        self.catalog = catalog
        self.middleware: tuple[ScopedMiddleware, ...] = tuple(
            item for plugin in catalog.plugins.values() for item in plugin.contribution.middleware
        )
        self.names_runners = any(group.runner for group in catalog.groups.values()) or any(
            plugin.contribution.runner or plugin.contribution.runners
            for plugin in catalog.plugins.values()
        )
        """Whether a group or a manifest names a runner of the host; tools may do so, too."""
        self.has_contracts = any(entry.contract for entry in catalog.all_tools)
        """Whether any tool has a contract."""
        self._previous_digest = before.known_digest if before else None
        self.listings: dict[Hashable, tuple[Sequence[SkillEntry], PromptListing]] = {}
        """The skill listings that were made, with the skills that they list."""
        self.last_listings = before.listings if before else {}
        self.skill_texts: SkillTexts | None = before.skill_texts if before else None
        served = {id(entry.tool) for entry in catalog.all_tools}
        # A copy: sessions in other threads may add to it at the same time.
        kept = before.schemas.copy().items() if before else ()
        self.schemas: dict[tuple[int, str], tuple[Tool, PackedValue]] = {
            key: value for key, value in kept if key[0] in served
        }

    @property
    def digest(self) -> CatalogDigest:
        """The digests that distinguish its entries from later versions."""
        return self.get_or_make(
            "digest", lambda: digest_catalog(self.catalog, self._previous_digest)
        )

    @property
    def known_digest(self) -> CatalogDigest | None:
        """Return the digest if it was already computed, or else the last one before."""
        stored = self._values.get("digest")
        return stored[0] if stored else self._previous_digest

    @property
    def sections(self) -> str:
        """The sections that plugins add to the end of every prompt, or `""`."""
        plugins = self.catalog.plugins.values()
        texts = (text for plugin in plugins for text in plugin.contribution.sections)
        from satchel.prompt.group_notes import render_sections  # lazy: needed only with a session

        return self.get_or_make("sections", lambda: render_sections(texts))

    def shared_view(
        self, activation: Activation, entry_filter: EntryFilter | None = None
    ) -> SharedView:
        """Return the view of an activation, limited to some of the tools and skills."""
        if entry_filter is not None:
            limited = self.get_or_make(entry_filter, lambda: self._limited_to(entry_filter))
            return limited.shared_view(activation)
        return SharedView(self, *self._active_view(activation))

    def schema(self, tool: Tool, dialect: str) -> Any:
        """Return a copy of a tool's schema, which is made once."""
        key = (id(tool), dialect)
        if (stored := self.schemas.get(key)) is None:
            # Stored with the tool, so that no other tool can get the same id.
            stored = self.schemas[key] = (tool, PackedValue(tool.to_schema(dialect)))
        return stored[1].unpacked()

    def _limited_to(self, entry_filter: EntryFilter) -> CatalogCache:
        limited = CatalogCache(self.catalog.only(entry_filter.accepts))
        limited.schemas = self.schemas
        return limited

    def _active_view(
        self, activation: Activation
    ) -> tuple[Hashable, View, dict[str, PreparedTool]]:
        """Return a key of what is active, its view and its tools; equal keys share them."""
        catalog = self.catalog
        active = active_in(catalog, activation)

        def make_view() -> tuple[View, dict[str, PreparedTool]]:
            # Few groups contain skills, so most views share the same skills.
            relevant = active & catalog.groups_of_skills
            skills = self.get_or_make(
                ("skills", relevant), lambda: visible_skills(catalog, relevant)
            )
            return view_of(catalog, activation, skills), {}

        key = (active, activation.tools, activation.defers)
        return key, *self.get_or_make(("view", key), make_view)


class SharedView:
    """The view of one catalog that all sessions with the same active groups and tools share."""

    __slots__ = ("__weakref__", "_active", "cache", "prepared", "view")

    def __init__(
        self, cache: CatalogCache, active: Hashable, view: View, prepared: dict[str, PreparedTool]
    ) -> None:
        self.cache, self._active, self.view = cache, active, view
        self.prepared = prepared
        """The tools that were called, by name; they are prepared for the first call."""

    @property
    def catalog(self) -> Catalog:
        """The catalog of the view."""
        return self.cache.catalog

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key for these groups; make it if there is none."""
        return self.cache.get_or_make((self._active, key), make)


class HostExtensions(NamedTuple):
    """What the host registered for the calls of some tools."""

    middleware: tuple[ScopedMiddleware, ...] = ()
    runners: tuple[ScopedRunner, ...] = ()


class SharedState:
    """The current catalog with its derived values, the limits, and the middleware."""

    def __init__(
        self,
        limits: Limits,
        skill_style: SkillPrompt,
        errors: ErrorText = "summary",
    ) -> None:
        self.limits, self.skill_style, self.errors = limits, skill_style, errors
        self.extensions = HostExtensions()
        self.unknown_runners: frozenset[str] = frozenset()
        """The names of runners that were reported as not registered."""
        self._current = CatalogCache(Catalog()), Memo()
        self._index: SearchIndex | None = None
        self.programs: tuple[Any, Any] | None = None
        """The `ProgramRunner` of the host, if any, and its `Sandbox`."""
        self.background_loop = LazyEventLoop("satchel-calls", _PATIENCE)
        """The loop for hosts that have none."""

    @property
    def newest(self) -> CatalogCache:
        """The newest catalog with the values derived from it."""
        return self._current[0]

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""
        return self._current[0].catalog

    def publish(self, catalog: Catalog) -> None:
        """Make a catalog the current one; readers see the old one or the new one, never a mix."""
        self._current = CatalogCache(catalog, self.newest), Memo()

    def shared_view(
        self, activation: Activation, entry_filter: EntryFilter | None = None
    ) -> SharedView:
        """Return the view of an activation on the newest catalog; it is made once."""
        cache, views = self._current
        # Not in the cache: a view refers to it.
        return views.get_or_make(
            (activation, entry_filter), lambda: cache.shared_view(activation, entry_filter)
        )

    def search(self, words: str, kind: str, limit: int) -> list[SearchHit]:
        """Find tools or skills of the newest catalog, the best match first."""
        from satchel.search.search_documents import documents_of  # lazy: needed only by a search
        from satchel.search.search_index import SearchIndex

        index, newest = self._index or SearchIndex(), self.newest
        self._index = index
        newest.get_or_make("index", lambda: index.bring_up_to_date(documents_of(newest.catalog)))
        return index.search(words, kind, limit)


class PackedValue:
    """A value that is copied quickly for each reader."""

    __slots__ = ("_bytes", "_value")

    def __init__(self, value: Any) -> None:
        import pickle

        self._value: Any = None
        try:
            self._bytes = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception:  # A tool's schema may contain any object.
            self._bytes, self._value = b"", copy.deepcopy(value)

    def unpacked(self) -> Any:
        """Return a copy."""
        if self._bytes:
            import pickle

            return pickle.loads(self._bytes)  # noqa: S301 - pickled above
        return copy.deepcopy(self._value)
