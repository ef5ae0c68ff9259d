"""A catalog with three groups, made without touching a disk."""

import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_entries import Group, PluginContribution, ToolContribution
from satchel.catalog.unit_entries import build_plugins
from satchel.sources.search_roots import Precedence


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """`basic` with `say`, `maps` with `route` and `geocode`, and `web`, which begins active."""
    tools = {"say": "basic", "route": "maps", "geocode": "maps", "fetch": "web"}
    supply = PluginContribution(
        name="demo",
        source="plugins",
        scope=Precedence.EXPLICIT,
        path="/plugins/demo",
        unit="/plugins/demo",
        rank=(0, "demo"),
        digest="1",
        groups=(Group(name="web", active=True), Group(name="maps", notes="Geocode first.")),
        tools=tuple(
            ToolContribution(name=name, description="", path="", version="1", groups=(group,))
            for name, group in tools.items()
        ),
    )
    return build((), build_plugins((supply,), Catalog()), Catalog())
