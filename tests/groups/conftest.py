"""A catalog with three groups, made without touching a disk."""

import pytest

from satchel.catalog import Catalog, Group, Supply, ToolSupply, build, build_plugins
from satchel.sources import Scope


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """`basic` with `say`, `maps` with `route` and `geocode`, and `web`, which begins active."""
    tools = {"say": "basic", "route": "maps", "geocode": "maps", "fetch": "web"}
    supply = Supply(
        name="demo",
        source="plugins",
        scope=Scope.EXPLICIT,
        path="/plugins/demo",
        unit="/plugins/demo",
        rank=(0, "demo"),
        digest="1",
        groups=(Group("web", active=True), Group("maps", notes="Geocode first.")),
        tools=tuple(ToolSupply(name, "", "", "1", (group,)) for name, group in tools.items()),
    )
    return build((), build_plugins((supply,), Catalog()), Catalog())
