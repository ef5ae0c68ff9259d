"""What all sessions of one satchel share."""

import pickle
from collections.abc import Callable, Hashable
from copy import deepcopy
from typing import Any, TypeVar, cast

from satchel.catalog import Catalog, CatalogStore
from satchel.groups import (
    Activation,
    CatalogDigest,
    View,
    active_in,
    digest_catalog,
    view_of,
    visible_skills,
)
from satchel.names import NamePatterns
from satchel.prompt import SkillPrompt, render_sections
from satchel.runtime import ScopedMiddleware
from satchel.search import SearchHit, SearchIndex, documents_of
from satchel.settings import Limits
from satchel.tools import Tool

T = TypeVar("T")

_MOST = 4_096
"""How many derived values of one catalog are kept."""


class Memo:
    """A bounded memo; the oldest values go first."""

    __slots__ = ("_known", "_most")

    def __init__(self, most: int | None = None) -> None:
        self._known: dict[Hashable, tuple[Any]] = {}
        self._most = most or _MOST

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for a key, or make it."""
        # Asked once: another thread may take it away in between.
        known = self._known.get(key)
        if known is not None:
            return cast("T", known[0])
        made = make()
        if len(self._known) >= self._most:  # hosts may ask with ever new keys
            for oldest in tuple(self._known)[: self._most // 8 + 1]:
                self._known.pop(oldest, None)
        self._known[key] = (made,)
        return made


class Generation(Memo):
    """A catalog with all that was derived from it, each value made once.

    All sessions and servers share it, and it is freed with the catalog. No value in it may hold
    it: a catalog and the code of its plugins go when the last step lets go of them, and not when
    Python next looks for cycles.
    """

    __slots__ = ("_before", "catalog", "layers", "schemas")

    def __init__(self, catalog: Catalog, before: "Generation | None" = None) -> None:
        """Begin with what an earlier one derived from tools that are still there."""
        super().__init__()
        self.catalog = catalog
        self.layers: tuple[ScopedMiddleware, ...] = tuple(
            layer for plugin in catalog.plugins.values() for layer in plugin.supply.layers
        )
        self._before = before.known_traits if before else None
        served = {id(entry.tool) for entry in catalog.all_tools}
        # A copy: sessions of other threads may add to it meanwhile.
        kept = tuple(before.schemas.items()) if before else ()
        self.schemas: dict[tuple[int, str], tuple[Tool, PackedValue]] = {
            key: known for key, known in kept if key[0] in served
        }

    @property
    def traits(self) -> CatalogDigest:
        """Return what tells all that it holds from later versions."""
        return self.once("traits", lambda: digest_catalog(self.catalog, self._before))

    @property
    def known_traits(self) -> CatalogDigest | None:
        """Return the traits if anybody asked for them."""
        known = self._known.get("traits")
        return known[0] if known else None

    @property
    def sections(self) -> str:
        """Return the texts with which plugins end every prompt, or `""`."""
        plugins = self.catalog.plugins.values()
        texts = (text for plugin in plugins for text in plugin.supply.sections)
        return self.once("sections", lambda: render_sections(texts))

    def scene(self, activation: Activation, tools: NamePatterns | None = None) -> "SharedView":
        """Return what an activation makes visible of some of the tools."""
        if tools and not tools.let_all:
            return self.once(tools, lambda: self._only(tools)).scene(activation)
        active, view = self.once(activation, lambda: self._seen(activation))
        return SharedView(self, active, view)

    def schema(self, tool: Tool, dialect: str) -> Any:
        """Return a copy of the schema of a tool of the catalog; it is made once."""
        key = (id(tool), dialect)
        if (known := self.schemas.get(key)) is None:
            # With the tool itself, so that no other can take its id.
            known = self.schemas[key] = (tool, PackedValue(tool.to_schema(dialect)))
        return known[1].unpacked()

    def _only(self, tools: NamePatterns) -> "Generation":
        part = Generation(self.catalog.only(tools.lets))
        part.schemas = self.schemas
        return part

    def _seen(self, activation: Activation) -> tuple[frozenset[str], View]:
        """Return the active groups, and the one view of all that have the same ones active."""
        catalog = self.catalog
        active = active_in(catalog, activation)

        def made() -> View:
            # Few groups hold skills, so most views show the same ones.
            matter = active & catalog.groups_of_skills
            skills = self.once(("skills", matter), lambda: visible_skills(catalog, matter))
            return view_of(catalog, activation, skills)

        return active, self.once(("view", active), made)


class SharedView:
    """What all sessions with the same groups active see of one catalog."""

    __slots__ = ("_active", "generation", "view")

    def __init__(self, generation: Generation, active: frozenset[str], view: View) -> None:
        self.generation, self._active, self.view = generation, active, view

    @property
    def catalog(self) -> Catalog:
        """Return the catalog that is seen."""
        return self.generation.catalog

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made of it for a key, or make it."""
        return self.generation.once((self._active, key), make)


class SharedState:
    """The current catalog and what sessions make of it, the limits, and the middleware."""

    def __init__(self, store: CatalogStore, limits: Limits, skill_style: SkillPrompt) -> None:
        self._store, self.limits, self.skill_style = store, limits, skill_style
        self.layers: tuple[ScopedMiddleware, ...] = ()
        self.newest = Generation(store.current)
        self._index: SearchIndex | None = None

    @property
    def catalog(self) -> Catalog:
        """Return the newest generation."""
        return self._store.current

    def publish(self, catalog: Catalog) -> None:
        """Make a catalog the current one; nothing of the last one is held here any more."""
        self._store.publish(catalog)
        self.newest = Generation(catalog, self.newest)

    def scene(self, activation: Activation, tools: NamePatterns | None = None) -> SharedView:
        """Return what an activation makes visible of the newest generation."""
        return self.newest.scene(activation, tools)

    def search(self, words: str, kind: str, most: int) -> list[SearchHit]:
        """Find tools or skills of the newest generation, the best first."""
        index, newest = self._index or SearchIndex(), self.newest
        self._index = index
        newest.once("index", lambda: index.bring_up_to_date(documents_of(newest.catalog)))
        return index.search(words, kind, most)


class PackedValue:
    """A value of which everybody gets a copy of their own, as fast as Python can copy."""

    __slots__ = ("_bytes", "_value")

    def __init__(self, value: Any) -> None:
        self._value: Any = None
        try:
            self._bytes = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception:  # what a stranger's tool puts into its schema may be anything
            self._bytes, self._value = b"", deepcopy(value)

    def unpacked(self) -> Any:
        """Return a copy."""
        if self._bytes:
            return pickle.loads(self._bytes)  # noqa: S301 - bytes of our own
        return deepcopy(self._value)
