import json
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from satchel import Limits, Satchel, Settings, StdioServer
from satchel.catalog.catalog_offers import CatalogOffers
from satchel.diagnostics import Where
from satchel.errors import DefinitionError
from satchel.mcp_servers.list_reader import ListedItems, drop_invalid_items

LYING = str(Path(__file__).with_name("lying.py"))
LISTS = {
    "prompts/list": {"prompts": [{"name": "good"}, 7, {"name": "hid\u200bden"}, {"name": "late"}]},
    "resources/list": {
        "resources": [
            {"name": "bare"},
            {"uri": "note://a", "name": "a"},
            {"uri": "note://a b", "name": "blank"},
            {"uri": "skill://x/SKILL.md", "name": "of a skill"},
        ]
    },
    "resources/templates/list": {
        "resourceTemplates": [
            {"uriTemplate": 5, "name": "t"},
            {"uriTemplate": "n://{x}", "name": "n"},
        ]
    },
}


@pytest.fixture
def diagnostics_of(tmp_path):
    def connected(lists, **limits):
        """Return the names of prompts, the URIs of resources, and what is reported."""
        book = tmp_path / "book.json"
        book.write_text(json.dumps({"skills": [], "lists": lists}))
        settings = Settings(
            limits=Limits(mcp_connect=60, **limits), state_folder=str(tmp_path / "state")
        )
        server = StdioServer(command=sys.executable, args=(LYING, str(book)))
        with Satchel(settings=settings) as app:
            app.register_mcp_server(server, name="box")
            offers = CatalogOffers.of(app.catalog)
            diagnostics = app.catalog.diagnostics
        return (
            sorted(offers.prompts),
            sorted(offers.resources),
            {item.message: item.code for item in diagnostics if item.code.startswith("mcp-")},
        )

    return connected


def test_an_invalid_prompt_or_resource_costs_no_other(diagnostics_of):
    prompts, resources, problems = diagnostics_of(LISTS)
    assert prompts == ["good", "late"]
    assert resources == ["n://{x}", "note://a"]
    assert problems == {
        "MCP server 'box': prompt 'hidden' is left out: its name is empty, longer than "
        "200 characters, or has hidden ones": "mcp-prompt-invalid",
        "MCP server 'box': prompt 'without a name' is left out: it: Input should be a valid "
        "dictionary or instance of Prompt": "mcp-prompt-invalid",
        "MCP server 'box': resource 'blank' is left out: its URI is empty, longer than "
        "2000 characters, or has blanks or hidden ones": "mcp-resource-invalid",
        "MCP server 'box': resource 'bare' is left out: uri: "
        "Field required": "mcp-resource-invalid",
        "MCP server 'box': resource 't' is left out: uriTemplate: "
        "Input should be a valid string": "mcp-resource-invalid",
    }


def test_a_list_of_prompts_has_a_limit_that_is_reported(diagnostics_of):
    lists = {"prompts/list": {"prompts": [{"name": f"p{number}"} for number in range(9)]}}
    prompts, _, problems = diagnostics_of(lists, mcp_tools=4)
    assert prompts == ["p0", "p1", "p2", "p3"]
    message = "MCP server 'box': it lists more than 4 prompts (limit mcp_tools)"
    assert problems == {f"{message}; the rest is left out": "mcp-too-many-prompts"}


@pytest.mark.parametrize("key", ["tools", "prompts", "resources", "resourceTemplates"])
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_invalid_items_are_dropped_in_each_version_of_the_protocol(key, version):
    valid = {
        "name": "a",
        "uri": "a://b",
        "uriTemplate": "a://{b}",
        "inputSchema": {"type": "object"},
    }
    page = {key: [{"name": "bad", "title": 5}, valid, {}], "_meta": "nothing", "ttlMs": 0}
    drop_invalid_items(page, version, 10)
    assert page[key] == [valid]
    dropped = page["_meta"]["dev.satchel/invalid"]
    assert [name for name, _ in dropped] == ["bad", "without a name"]


def test_what_a_server_says_was_dropped_does_not_count():
    page = {"tools": [], "_meta": {"dev.satchel/invalid": 5, "other": 1}}
    drop_invalid_items(page, "2025-11-25", 10)
    assert page["_meta"] == {"dev.satchel/invalid": [], "other": 1}


def test_the_first_valid_item_of_a_name_counts_and_the_shortest_ttl():
    def check(item):
        if item.fault:
            raise DefinitionError("it is bad")
        return item.name, item.number, 1

    items = ListedItems(
        "tool", Where("x"), check, most=(9, "mcp_tools"), largest=(9, "mcp_listing")
    )
    named = partial(SimpleNamespace, name="a", fault=False)
    for ttl, numbers in ((0, (0,)), (3_000, (1, 2)), (5_000, ())):
        page = [named(number=number, fault=not number) for number in numbers]
        assert items.add(SimpleNamespace(ttl_ms=ttl, meta=None, tools=page), "tools")
    assert (items.values, items.ttl) == ((1,), 3)
    assert [item.message for item in items.diagnostics] == [
        "tool 'a' is left out: it is bad",
        "tool 'a' is left out: the list has an earlier tool of that name",
    ]
