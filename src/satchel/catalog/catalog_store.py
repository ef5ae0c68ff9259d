"""The reference to the current catalog."""

from satchel.catalog.catalog import Catalog


class CatalogStore:
    """Holds the current catalog; readers see the old one or the new one, never a mix."""

    def __init__(self) -> None:
        self._current = Catalog()

    @property
    def current(self) -> Catalog:
        """Return the newest generation."""
        return self._current

    def publish(self, catalog: Catalog) -> None:
        """Make a catalog the current one."""
        self._current = catalog
