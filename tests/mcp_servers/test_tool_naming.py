from hypothesis import given
from hypothesis import strategies as st

from satchel.mcp_servers import tool_naming
from satchel.names import SESSION_TOOLS, tool_name_fault


def names_for(servers, taken):
    names = {server: {tool: tool for tool in tools} for server, tools in servers}
    named = tool_naming.names_for(names, dict.fromkeys(taken, "plugin 'p'"))
    return {server: naming.names for server, naming in named.items()}


def test_a_free_name_is_kept_and_the_first_server_has_the_first_choice():
    named = names_for([("one", ["a", "b"]), ("two", ["a", "c"])], ["b"])
    assert named == {"one": {"a": "a", "b": "one_b"}, "two": {"a": "two_a", "c": "c"}}


def test_a_server_keeps_a_name_that_it_has_already_whatever_the_order():
    servers = {name: {"x": "x", "y": "y"} for name in ("one", "two")}
    named = tool_naming.names_for(servers, {"y": "plugin 'p'"}, {}, dict.fromkeys("xy", "two"))
    names = {server: naming.names for server, naming in named.items()}
    assert names == {"one": {"x": "one_x", "y": "one_y"}, "two": {"x": "x", "y": "two_y"}}
    assert named["one"].owners == {"x": "MCP server 'two'", "y": "plugin 'p'"}


def test_what_providers_reject_gets_another_name_after_all_good_ones():
    assert names_for([("box", ["a.b", "a_b"])], []) == {"box": {"a_b": "a_b", "a.b": "box_a_b"}}
    assert names_for([("box", ["1st"])], []) == {"box": {"1st": "box_1st"}}


def test_the_tools_of_sessions_keep_their_names():
    named = names_for([("box", [*SESSION_TOOLS])], [])
    assert SESSION_TOOLS.isdisjoint(named["box"].values())


def test_no_server_can_take_the_last_name_of_another():
    (last,) = names_for([("b", ["x"])], ["x", "b_x"])["b"].values()
    named = names_for([("a", ["x", "b_x", last]), ("b", ["x"])], [])
    names = [name for own in named.values() for name in own.values()]
    assert len({*names}) == 4


@given(
    st.dictionaries(st.from_regex(r"[a-zA-Z0-9][a-z.-]{0,70}", fullmatch=True), st.sets(st.text())),
    st.sets(st.text()),
)
def test_every_tool_gets_a_name_that_is_good_and_its_own(servers, taken):
    named = names_for(servers.items(), taken)
    names = [name for own in named.values() for name in own.values()]
    assert len({*names}) == len(names) == sum(map(len, servers.values()))
    assert taken.isdisjoint(names)
    assert [name for name in names if tool_name_fault(name)] == []


def test_a_new_folder_does_not_take_the_name_of_a_remote_tool(tmp_path, plain, write_plugin):
    """Neither while everything runs nor when all of it starts again."""
    from satchel import Satchel

    def started():
        app = Satchel(plugins=[tmp_path / "plugins"])
        app.register_mcp_server(plain("search", "other"), name="web", group="basic")
        return app

    def states(app):
        return {it.address: str(it.state) for it in app.catalog.all_tools if "search" in it.name}

    with started() as app:
        assert states(app) == {"mcp:web:search": "ok"}
        code = 'from satchel import tool\n@tool\ndef search() -> str:\n    """Find."""\n'
        write_plugin(tmp_path / "plugins", "a-new-one", tools=code)
        app.refresh()
        expected = {"a-new-one:search": "held", "mcp:web:search": "ok"}
        assert states(app) == expected
        (held,) = (it for it in app.catalog.all_tools if it.state == "held")
        assert "'mcp:web'" in held.diagnostics[-1].message
    with started() as app:
        assert states(app) == expected


def test_a_remote_tool_does_not_take_the_name_of_a_plugin_that_was_first(
    tmp_path, plain, write_plugin
):
    from satchel import Satchel

    code = 'from satchel import tool\n@tool\ndef search() -> str:\n    """Find."""\n'
    write_plugin(tmp_path / "plugins", "maps", tools=code)
    with Satchel(plugins=[tmp_path / "plugins"]) as app:
        app.register_mcp_server(plain("search"), name="web", group="basic")
        app.refresh()
        assert {*app.catalog.tools} == {"search", "web_search"}
        assert app.catalog.tools["search"].source == "maps"
