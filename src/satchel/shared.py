"""What all sessions of one satchel share."""

import pickle
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from satchel.catalog import Catalog, CatalogStore
from satchel.groups import Activation, View, view_of
from satchel.prompt import SkillPrompt
from satchel.runtime import Layer
from satchel.search import Hit, Index, documents_of
from satchel.settings import Limits
from satchel.tools import Tool

T = TypeVar("T")

_MOST = 256
"""How many scenes of one generation, or answers of one scene, are kept."""


class Scene:
    """What all sessions with the same groups switched on see of one generation.

    What is made of it is made once: sessions are many, and most see the same.
    """

    __slots__ = ("_known", "catalog", "view")

    def __init__(self, catalog: Catalog, view: View) -> None:
        self.catalog, self.view = catalog, view
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for a key, or make it."""
        if key in self._known:
            return cast("T", self._known[key])
        made = make()
        if len(self._known) >= _MOST:  # hosts may ask with ever new keys
            self._known.clear()
        self._known[key] = made
        return made


@dataclass(slots=True)
class _Generation:
    """One generation and its scenes."""

    catalog: Catalog
    scenes: dict[Activation, Scene] = field(default_factory=dict)


class Shared:
    """The current catalog and what sessions make of it, the limits, and the middleware."""

    def __init__(self, store: CatalogStore, limits: Limits, skill_style: SkillPrompt) -> None:
        self._store, self.limits, self.skill_style = store, limits, skill_style
        self.layers: tuple[Layer, ...] = ()
        self._generation = _Generation(store.current)
        self._schemas: dict[tuple[int, str], tuple[Tool, Packed]] = {}
        self._index: Index | None = None
        self._indexed: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """Return the newest generation."""
        return self._store.current

    def publish(self, catalog: Catalog) -> None:
        """Make a catalog the current one; nothing of the last one is held here any more."""
        self._store.publish(catalog)
        self._generation = _Generation(catalog)
        served = {id(entry.tool) for entry in catalog.all_tools}
        self._schemas = {key: kept for key, kept in self._schemas.items() if key[0] in served}
        self._indexed = None

    def scene(self, activation: Activation) -> Scene:
        """Return what an activation makes visible of the newest generation."""
        now = self._generation  # read once: another may be published meanwhile
        scene = now.scenes.get(activation)
        if scene is None:
            if len(now.scenes) >= _MOST:
                now.scenes.clear()
            scene = Scene(now.catalog, view_of(now.catalog, activation))
            now.scenes[activation] = scene
        return scene

    def schema(self, tool: Tool, dialect: str) -> Any:
        """Return the schema of a tool of the catalog; it is made once for each version."""
        key = (id(tool), dialect)
        if (known := self._schemas.get(key)) is None:
            # With the tool itself, so that no other can take its id.
            known = self._schemas[key] = (tool, Packed(tool.to_schema(dialect)))
        return known[1].unpacked()

    def search(self, words: str, kind: str, most: int) -> list[Hit]:
        """Find tools or skills of the newest generation, the best first."""
        index = self._index = self._index or Index()
        catalog = self.catalog
        if self._indexed is not catalog:
            index.bring_up_to_date(documents_of(catalog))
            self._indexed = catalog
        return index.search(words, kind, most)


class Packed:
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


def packed(values: Iterable[Any]) -> Packed:
    """Pack several values into one list."""
    return Packed(list(values))
