"""The prompts and resources that the plugins and servers of a catalog offer."""

import re
from collections.abc import Container, Iterator, Mapping
from copy import copy
from dataclasses import field

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import PluginEntry
from satchel.lazy_dataclass import dataclass
from satchel.tools import McpPrompt, McpResource


@dataclass(frozen=True, slots=True)
class CatalogOffers:
    """Prompts by name, and resources by URI.

    The first of equal names wins. What a server offers never replaces anything: if its name is
    taken, the server's name is put in front.
    """

    prompts: Mapping[str, McpPrompt] = field(default_factory=dict)
    resources: Mapping[str, McpResource] = field(default_factory=dict)

    @classmethod
    def of(
        cls, catalog: Catalog, active: frozenset[str] | None = None, taken: Container[str] = ()
    ) -> "CatalogOffers":
        """Return those that have an active group; with `None`, all.

        `taken` are names that prompts of servers must not have.
        """
        prompts: dict[str, McpPrompt] = {}
        resources: dict[str, McpResource] = {}
        for plugin in _in_order(catalog):
            for offer in active_offers(plugin, active):
                if isinstance(offer, McpPrompt):
                    prompt = _named(offer, prompts, taken)
                    prompts.setdefault(prompt.name, prompt)
                else:
                    resource = _addressed(offer, resources)
                    resources.setdefault(resource.uri, resource)
        return cls(prompts, resources)

    def find(self, uri: str) -> tuple[McpResource, Mapping[str, str]] | None:
        """Return the resource at a URI, and the values of its template; `None` if there is none."""
        if (exact := self.resources.get(uri)) and not exact.is_template:
            return exact, exact.match(uri) or {}
        for resource in self.resources.values():
            if resource.is_template and (parts := resource.match(uri)) is not None:
                return resource, parts
        return None


def active_offers(
    plugin: PluginEntry, active: frozenset[str] | None
) -> Iterator[McpPrompt | McpResource]:
    """Yield what a plugin or server offers in an active group; with `None`, all."""
    own_groups = {group.name for group in plugin.contribution.groups}
    for offer in plugin.contribution.offers:
        if active is None or not active.isdisjoint(own_groups.union(offer.groups)):
            yield offer


def _in_order(catalog: Catalog) -> list[PluginEntry]:
    """Return the plugins, and then the servers in the order in which they were added."""
    plugins: list[PluginEntry] = []
    servers: list[PluginEntry] = []
    for plugin in catalog.plugins.values():
        of_server = any(offer.server for offer in plugin.contribution.offers)
        (servers if of_server else plugins).append(plugin)
    return plugins + sorted(servers, key=lambda server: server.rank)


def _named(offer: McpPrompt, prompts: Container[str], taken: Container[str]) -> McpPrompt:
    """Return a prompt with a name that is free, if a server offers it."""
    if not offer.server or (offer.name not in prompts and offer.name not in taken):
        return offer
    named = copy(offer)
    named.name = f"{offer.server}_{offer.name}"
    return named


def _addressed(offer: McpResource, resources: Container[str]) -> McpResource:
    """Return a resource with a URI that is free, if a server offers it."""
    if not offer.server or offer.uri not in resources:
        return offer
    addressed = copy(offer)
    addressed.prefix = f"{_scheme(offer.server)}+"
    addressed.uri = addressed.prefix + offer.uri
    return addressed


def _scheme(server: str) -> str:
    """Return a server's name as the beginning of the scheme of a URI."""
    text = re.sub("[^a-z0-9.-]+", "-", server.lower())
    return text if text[:1].isalpha() else f"s{text}"
