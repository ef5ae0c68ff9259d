import itertools
import json
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from satchel import Limits, Satchel, Settings, StdioServer
from satchel.catalog.catalog_offers import CatalogOffers
from satchel.diagnostics import Where
from satchel.errors import DefinitionError
from satchel.mcp_servers.list_reader import ListedItems, read_list, reject_invalid_items

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
    def connected(lists, refuse=(), **limits):
        """Return the names of prompts, the URIs of resources, and what is reported."""
        book = tmp_path / "book.json"
        book.write_text(json.dumps({"skills": [], "lists": lists, "refuse": refuse}))
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
        "MCP server 'box': prompt 'hidden' is left out: its name has invisible "
        "characters": "mcp-prompt-invalid",
        "MCP server 'box': a prompt without a name is left out: it is not an "
        "object": "mcp-prompt-invalid",
        "MCP server 'box': resource 'blank' is left out: its URI has "
        "blanks": "mcp-resource-invalid",
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
    reject_invalid_items(page, version, 10)
    assert page[key] == [valid]
    assert [name for name, _ in page["_meta"]["dev.satchel/rejected"]] == ["bad", ""]


@pytest.mark.parametrize(("key", "meta"), [("tools", {"dev.satchel/rejected": []}), ("skills", {})])
def test_what_a_server_says_was_rejected_does_not_count(key, meta):
    page = {key: [], "_meta": {"dev.satchel/rejected": 5, "other": 1}}
    reject_invalid_items(page, "2025-11-25", 10)
    assert page["_meta"] == {**meta, "other": 1}


def test_files_of_skills_do_not_count_as_resources(diagnostics_of):
    files = [{"uri": f"skill://{number}/SKILL.md", "name": "s"} for number in range(9)]
    templates = [{"uriTemplate": "SKILL://{x}", "name": "t"}] * 9
    lists = {
        "resources/list": {"resources": [*files, *files, {"uri": "note://a", "name": "a"}]},
        "resources/templates/list": {"resourceTemplates": templates},
    }
    assert diagnostics_of(lists, mcp_tools=2) == ([], ["note://a"], {})


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ({"refuse": ["prompts/list"]}, "the server answered 'no way'"),
        ({"lists": {"prompts/list": {"prompts": "x"}}}, "its response is not a list of prompts"),
    ],
)
def test_a_list_that_cannot_be_read_is_reported(diagnostics_of, message, failure):
    _, _, problems = diagnostics_of(**{"lists": {}, **message})
    assert problems == {
        f"MCP server 'box': cannot list its prompts: {failure}": "mcp-prompt-invalid"
    }


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "its name is empty"),
        ("x" * 201, "its name has 201 characters, 200 are allowed"),
        ("a\nb", "its name has invisible characters"),
    ],
)
def test_the_fault_of_a_name_is_said(diagnostics_of, name, fault):
    _, _, problems = diagnostics_of({"prompts/list": {"prompts": [{"name": name}]}})
    (message,) = problems
    assert message.endswith(f" is left out: {fault}")


def page_of(ttl=0, **lists):
    return SimpleNamespace(ttl_ms=ttl, meta=None, next_cursor=None, **lists)


@pytest.mark.parametrize("ttl", [None, "soon", -5, float("nan"), 10**400])
def test_an_odd_ttl_costs_nothing(ttl):
    items = listed_tools(lambda item: (item, item, 1))
    assert items.add(page_of(ttl, tools=["a"]), "tools")
    assert items.values == ("a",)
    assert items.ttl == (86_400 if ttl == 10**400 else None)


async def test_a_list_without_end_is_reported():
    numbers = itertools.count()

    async def fetch(cursor):
        page = page_of(tools=[])
        page.next_cursor = str(next(numbers))
        return page

    items = listed_tools(lambda item: (item, item, 1))
    assert await read_list(fetch, "tools", items, 60) == ""
    (problem,) = items.diagnostics
    assert problem.message == "it lists more than 1,000 pages of tools; the rest is left out"


@pytest.mark.parametrize(
    ("cursors", "fault"),
    [
        (["a", "b", "a"], "the server repeated a cursor"),
        (["", ""], "the server repeated a cursor"),
        ([5], "a cursor is not a string"),
        ([{}], "a cursor is not a string"),
        (["a", "b", None], ""),
    ],
)
async def test_a_list_whose_cursors_do_not_lead_on_is_served_and_reported(cursors, fault):
    asked = []

    async def fetch(cursor):
        asked.append(cursor)
        page = page_of(tools=[f"t{len(asked)}"])
        page.next_cursor = cursors[len(asked) - 1]
        return page

    items = listed_tools(lambda item: (item, item, 1))
    assert await read_list(fetch, "tools", items, 60) == ""
    assert asked == [None, *cursors[:-1]]
    assert len(items.values) == len(cursors)
    faults = [(item.code, item.message) for item in items.diagnostics]
    message = f"its list of tools may be incomplete: {fault}"
    assert faults == ([("mcp-tool-invalid", message)] if fault else [])


@pytest.mark.parametrize(("pages", "failure"), [(0, ""), (1, "the server answered 'no'")])
async def test_only_a_server_that_lists_nothing_need_not_know_the_request(pages, failure):
    async def fetch(cursor):
        if len(items.values) == pages:
            raise MCPError(METHOD_NOT_FOUND, "no")
        page = page_of(tools=["a"])
        page.next_cursor = "next"
        return page

    items = listed_tools(lambda item: (item, item, 1))
    message = await read_list(fetch, "tools", items, 60, may_lack=True)
    assert message == (f"cannot list its tools: {failure}" if failure else "")


def test_prompts_whose_list_repeats_a_cursor_are_served(diagnostics_of):
    lists = {"prompts/list": {"prompts": [{"name": "good"}], "nextCursor": "x"}}
    prompts, _, problems = diagnostics_of(lists)
    assert prompts == ["good"]
    assert (
        problems[
            "MCP server 'box': its list of prompts may be incomplete: the server repeated a cursor"
        ]
        == "mcp-prompt-invalid"
    )


def listed_tools(check):
    return ListedItems(
        "tool", Where("x"), check, count_limit=(9, "mcp_tools"), size_limit=(9, "mcp_listing")
    )


def test_the_first_valid_item_of_a_name_counts_and_the_shortest_ttl():
    def check(item):
        if item.fault:
            raise DefinitionError("it is bad")
        return item.name, item.number, 1

    items = listed_tools(check)
    named = partial(SimpleNamespace, name="a", fault=False)
    for ttl, numbers in ((0, (0,)), (3_000, (1, 2)), (5_000, ())):
        page = [named(number=number, fault=not number) for number in numbers]
        assert items.add(SimpleNamespace(ttl_ms=ttl, meta=None, tools=page), "tools")
    assert (items.values, items.ttl) == ((1,), 3)
    assert [item.message for item in items.diagnostics] == [
        "tool 'a' is left out: it is bad",
        "tool 'a' is left out: it is in the list twice; the first one counts",
    ]
