"""What all sessions of one satchel share."""

from dataclasses import dataclass, field

from satchel.catalog import Catalog, CatalogStore
from satchel.groups import Activation, View, view_of
from satchel.prompt import SkillPrompt
from satchel.runtime import Layer
from satchel.settings import Limits


@dataclass(slots=True)
class _Views:
    """The views of one generation; most sessions see one of few."""

    catalog: Catalog
    by_activation: dict[Activation, View] = field(default_factory=dict)


class Shared:
    """The current catalog and what sessions make of it, the limits, and the middleware."""

    def __init__(self, store: CatalogStore, limits: Limits, skill_style: SkillPrompt) -> None:
        self._store, self.limits, self.skill_style = store, limits, skill_style
        self.layers: tuple[Layer, ...] = ()
        self._views = _Views(store.current)

    @property
    def catalog(self) -> Catalog:
        """Return the newest generation."""
        return self._store.current

    def publish(self, catalog: Catalog) -> None:
        """Make a catalog the current one; nothing of the last one is held here any more."""
        self._store.publish(catalog)
        self._views = _Views(catalog)

    def view(self, activation: Activation) -> tuple[Catalog, View]:
        """Return the newest generation and what an activation makes visible of it."""
        views = self._views  # read once: another generation may be published meanwhile
        view = views.by_activation.get(activation)
        if view is None:
            view = views.by_activation[activation] = view_of(views.catalog, activation)
        return views.catalog, view
