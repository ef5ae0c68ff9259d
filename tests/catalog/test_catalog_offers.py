"""The prompts and resources of a catalog: whose they are, and which are active."""

import pytest

from satchel.catalog.catalog_offers import CatalogOffers, active_offers
from satchel.tools.mcp_offers import McpPrompt, McpResource


def prompt(name, *, server="", groups=()):
    offer = McpPrompt(lambda: "text", name=name)
    offer.server, offer.groups = server, groups
    return offer


def resource(uri, *, server=""):
    def read(day: str = "") -> str:
        return day

    offer = McpResource(uri, read)
    offer.server = server
    return offer


def test_offers_of_plugins_keep_their_names_and_those_of_servers_give_way(make):
    own, url = prompt("review"), "notes://all"
    plugins = [
        make.plugin("a-server", order=3, offers=(prompt("review", server="a"),)),
        make.plugin("b-server", order=2, offers=(prompt("review", server="b"), prompt("free"))),
        make.plugin("own", order=9, offers=(own, resource(url))),
        make.plugin("c-server", order=4, offers=(resource(url, server="c"),)),
    ]
    offers = CatalogOffers.of(make.catalog(plugins=plugins), taken={"b_review"})
    assert offers.prompts["review"] is own
    assert [*offers.prompts] == ["review", "b_review", "free", "a_review"]
    assert [*offers.resources] == [url, f"c+{url}"]


def test_a_prompt_of_a_server_gives_way_to_a_taken_name(make):
    plugin = make.plugin("s", offers=(prompt("skill", server="s"), prompt("free", server="s")))
    catalog = make.catalog(plugins=[plugin])
    assert [*CatalogOffers.of(catalog, taken={"skill"}).prompts] == ["s_skill", "free"]


def test_only_offers_of_active_groups_are_active(make):
    offers = (prompt("one", groups=("maps",)), prompt("two", groups=("web",)))
    plugin = make.catalog(plugins=[make.plugin("p", offers=offers)]).plugins["p"]
    assert [*active_offers(plugin, None)] == [*offers]
    assert [*active_offers(plugin, frozenset({"maps"}))] == [offers[0]]


def test_a_resource_is_found_by_its_uri_or_its_template(make):
    day, today = resource("notes://{day}"), resource("notes://today")
    other = resource("mail://{day}")
    plugin = make.plugin("p", offers=(other, day, today))
    offers = CatalogOffers.of(make.catalog(plugins=[plugin]))
    assert offers.find("notes://today") == (today, {})
    assert offers.find("notes://monday") == (day, {"day": "monday"})
    assert offers.find("files://a") is None


def test_a_resource_may_take_parts_of_its_own_uri(make):
    class AtServer(McpResource):
        def match(self, uri):
            return {"uri": uri}

    def read() -> str:
        return ""

    exact = AtServer("notes://today", read)
    offers = CatalogOffers.of(make.catalog(plugins=[make.plugin("p", offers=(exact,))]))
    assert offers.find("notes://today") == (exact, {"uri": "notes://today"})


@pytest.mark.parametrize(
    ("server", "scheme"),
    [("maps", "maps"), ("My Notes", "my-notes"), ("a.b-2", "a.b-2"), ("2nd", "s2nd"), ("-", "s-")],
)
def test_the_name_of_a_server_begins_the_uri_of_a_resource_that_is_taken(make, server, scheme):
    uri = "notes://all"
    plugins = [
        make.plugin("p", offers=(resource(uri),)),
        make.plugin("q", offers=(resource(uri, server=server),)),
    ]
    assert [*CatalogOffers.of(make.catalog(plugins=plugins)).resources] == [uri, f"{scheme}+{uri}"]
