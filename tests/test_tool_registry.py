"""The registry of served tools."""

import asyncio

import pytest

from satchel import ConflictError, DefinitionError, NotFoundError, Satchel, ToolRegistry


def alpha() -> str:
    return "alpha"


def beta() -> str:
    return "beta"


def other_alpha() -> str:
    return "other"


PLUGIN = """
    from satchel import tool

    @tool
    def alpha() -> str:
        return "plugin"
"""


@pytest.fixture
def app():
    app = Satchel()
    app.create_group("off")
    app.register_tool(beta, group="off")
    app.register_tool(alpha)
    return app


def say(app, name):
    return asyncio.run(app.session().call(name)).text


def test_the_registry_lists_served_tools_of_all_groups_by_name(app):
    tools = app.tools
    assert isinstance(tools, ToolRegistry)
    assert [tool.name for tool in tools] == ["alpha", "beta"]
    assert tools.list() == list(tools)
    assert len(tools) == 2
    assert repr(tools) == "<ToolRegistry of 2 tools>"


def test_the_registry_is_a_live_view(app):
    tools = app.tools
    app.remove_tool("alpha")
    assert [tool.name for tool in tools] == ["beta"]


def test_the_registry_contains_names_and_tools(app):
    alpha_tool = app.tools.get("alpha")
    assert "alpha" in app.tools
    assert alpha_tool in app.tools
    assert "gamma" not in app.tools
    assert 5 not in app.tools
    assert [] not in app.tools
    app.register_tool(other_alpha, name="alpha", on_conflict="override")
    assert alpha_tool not in app.tools, "another tool has its name"


def test_an_unknown_tool_is_none_or_raises_with_similar_names(app):
    assert app.tools.get("alpa") is None
    assert app.tools.get_or_raise("alpha") is app.tools.get("alpha")
    with pytest.raises(NotFoundError, match="did you mean alpha"):
        app.tools.get_or_raise("alpa")


def test_a_tool_without_code_is_not_in_the_registry(tmp_path, write_plugin):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    tools = Satchel(plugins=[tmp_path], run_code=False).tools
    assert len(tools) == 0
    assert "alpha" not in tools
    with pytest.raises(NotFoundError) as caught:
        tools.get_or_raise("alpha")
    assert caught.value.near == ()


def test_several_are_added_in_one_generation_with_the_same_options():
    app = Satchel()
    app.create_group("words")
    before = app.catalog.generation
    added = app.tools.register_many([alpha, beta], group="words")
    assert app.catalog.generation == before + 1
    assert [tool.name for tool in added] == ["alpha", "beta"]
    assert app.catalog.groups["words"].tools == ("alpha", "beta")


@pytest.mark.parametrize(
    ("last", "error"),
    [(alpha, ConflictError), (5, DefinitionError), (None, DefinitionError)],
)
def test_if_one_cannot_be_added_none_is(last, error):
    app = Satchel()
    before = app.catalog
    with pytest.raises(error):
        app.tools.register_many([alpha, beta, last])
    assert app.catalog is before
    app.tools.register_many([alpha, beta])
    assert len(app.tools) == 2


def test_none_is_added_if_the_tools_themselves_end_with_an_error():
    def tools():
        yield alpha
        raise RuntimeError("boom")

    app = Satchel()
    with pytest.raises(RuntimeError):
        app.tools.register_many(tools())
    assert len(app.tools) == 0


def test_a_failed_registration_restores_overridden_tools(app):
    def replacement() -> str:
        return "replaced"

    replacement.__name__ = "alpha"
    with pytest.raises(DefinitionError):
        app.tools.register_many([replacement, 5], on_conflict="override")
    assert say(app, "alpha") == "alpha"


def test_a_failed_registration_shadows_no_plugins_tool(tmp_path, write_plugin):
    write_plugin(tmp_path, "demo", "active: true\n", tools=PLUGIN)
    app = Satchel(plugins=[tmp_path])
    with pytest.raises(DefinitionError):
        app.tools.register_many([alpha, 5])
    assert say(app, "alpha") == "plugin"


def test_conflicts_within_one_registration_are_resolved_in_order():
    app = Satchel()
    added = app.tools.register_many([alpha, alpha, alpha], on_conflict="rename")
    assert [tool.name for tool in added] == ["alpha", "alpha_2", "alpha_3"]


def test_only_tools_of_the_host_can_be_unregistered(tmp_path, write_plugin):
    write_plugin(tmp_path, "demo", "active: true\n", tools=PLUGIN)
    app = Satchel(plugins=[tmp_path])
    with pytest.raises(NotFoundError):
        app.tools.unregister("alpha")
    app.tools.register_many([beta])
    with pytest.raises(NotFoundError, match="did you mean beta"):
        app.tools.unregister("betta")
    app.tools.unregister("beta")
    assert [tool.name for tool in app.tools] == ["alpha"]
