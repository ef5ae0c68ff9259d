"""What all sessions of one satchel share."""

import pickle
from collections.abc import Callable, Hashable, Iterable
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

_MOST = 1_024
"""How many scenes of one generation, or answers of one scene, are kept."""


class Memo:
    """What was worked out, by what it was worked out for; the oldest goes first."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Any]] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for a key, or make it."""
        # Asked once: another thread may take it away in between.
        known = self._known.get(key)
        if known is not None:
            return cast("T", known[0])
        made = make()
        if len(self._known) >= _MOST:  # hosts may ask with ever new keys
            for oldest in tuple(self._known)[: _MOST // 8]:
                self._known.pop(oldest, None)
        self._known[key] = (made,)
        return made


class SharedView(Memo):
    """What all sessions with the same groups switched on see of one generation.

    What is made of it is made once: sessions are many, and most see the same. None of it may
    hold the scene: a generation goes, with the code of its plugins, when the last step lets go
    of it, and not when Python next looks for cycles.
    """

    __slots__ = ("generation", "view")

    def __init__(self, generation: "Generation", view: View) -> None:
        super().__init__()
        self.generation, self.view = generation, view

    @property
    def catalog(self) -> Catalog:
        """Return the catalog that is seen."""
        return self.generation.catalog


class Generation(Memo):
    """One generation, and what is the same in all its scenes."""

    __slots__ = ("_before", "catalog", "layers")

    def __init__(self, catalog: Catalog, before: CatalogDigest | None = None) -> None:
        super().__init__()
        self.catalog, self._before = catalog, before
        self.layers: tuple[ScopedMiddleware, ...] = tuple(
            layer for plugin in catalog.plugins.values() for layer in plugin.supply.layers
        )

    @property
    def traits(self) -> CatalogDigest:
        """Return what tells all that it holds from later versions."""
        return self.once("traits", lambda: digest_catalog(self.catalog, self._before))

    @property
    def sections(self) -> str:
        """Return the texts with which plugins end every prompt, or `""`."""
        plugins = self.catalog.plugins.values()
        texts = (text for plugin in plugins for text in plugin.supply.sections)
        return self.once("sections", lambda: render_sections(texts))

    @property
    def known_traits(self) -> CatalogDigest | None:
        """Return the traits if anybody asked for them."""
        known = self._known.get("traits")
        return known[0] if known else None


class SharedViews:
    """The scenes of one generation; they hold it, and it does not hold them."""

    __slots__ = ("_by_activation", "_by_active", "_of_some", "generation")

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._by_activation, self._by_active, self._of_some = Memo(), Memo(), Memo()

    def only(self, tools: NamePatterns) -> "SharedViews":
        """Return the scenes in which there are only some of the tools."""
        if tools.let_all:
            return self
        catalog = self.generation.catalog
        return self._of_some.once(tools, lambda: SharedViews(Generation(catalog.only(tools.lets))))

    def of(self, activation: Activation) -> SharedView:
        """Return what an activation makes visible; what comes to the same is the same scene."""
        return self._by_activation.once(activation, lambda: self._made(activation))

    def _made(self, activation: Activation) -> SharedView:
        catalog = self.generation.catalog
        active = active_in(catalog, activation)

        def made() -> SharedView:
            # Few groups hold skills, so most scenes show the same ones.
            matter = active & catalog.groups_of_skills
            key = ("skills", matter)
            skills = self.generation.once(key, lambda: visible_skills(catalog, matter))
            return SharedView(self.generation, view_of(catalog, activation, skills))

        return self._by_active.once(active, made)


class SharedState:
    """The current catalog and what sessions make of it, the limits, and the middleware."""

    def __init__(self, store: CatalogStore, limits: Limits, skill_style: SkillPrompt) -> None:
        self._store, self.limits, self.skill_style = store, limits, skill_style
        self.layers: tuple[ScopedMiddleware, ...] = ()
        self._scenes = SharedViews(Generation(store.current))
        self._schemas: dict[tuple[int, str], tuple[Tool, PackedValue]] = {}
        self._index: SearchIndex | None = None
        self._indexed: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """Return the newest generation."""
        return self._store.current

    def publish(self, catalog: Catalog) -> None:
        """Make a catalog the current one; nothing of the last one is held here any more."""
        self._store.publish(catalog)
        self._scenes = SharedViews(Generation(catalog, self._scenes.generation.known_traits))
        served = {id(entry.tool) for entry in catalog.all_tools}
        # A copy: sessions of other threads may add to it meanwhile.
        kept = tuple(self._schemas.items())
        self._schemas = {key: known for key, known in kept if key[0] in served}
        self._indexed = None

    def scene(self, activation: Activation, tools: NamePatterns | None = None) -> SharedView:
        """Return what an activation makes visible of the newest generation."""
        scenes = self._scenes.only(tools) if tools else self._scenes
        return scenes.of(activation)

    def schema(self, tool: Tool, dialect: str) -> Any:
        """Return the schema of a tool of the catalog; it is made once for each version."""
        key = (id(tool), dialect)
        if (known := self._schemas.get(key)) is None:
            # With the tool itself, so that no other can take its id.
            known = self._schemas[key] = (tool, PackedValue(tool.to_schema(dialect)))
        return known[1].unpacked()

    def search(self, words: str, kind: str, most: int) -> list[SearchHit]:
        """Find tools or skills of the newest generation, the best first."""
        index = self._index = self._index or SearchIndex()
        catalog = self.catalog
        if self._indexed is not catalog:
            index.bring_up_to_date(documents_of(catalog))
            self._indexed = catalog
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


def packed(values: Iterable[Any]) -> PackedValue:
    """Pack several values into one list."""
    return PackedValue(list(values))
