import pytest

from satchel import Satchel, Settings, tool
from satchel.errors import DefinitionError
from satchel.settings import Limits

TOOLS = '''
from satchel import tool

@tool
def good() -> str:
    """Work."""
    return "ok"
'''


def nested(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def circular():
    schema = {"type": "object"}
    schema["properties"] = {"a": schema, "b": schema}
    return schema


def doubling():
    schema = {"type": "string"}
    for _ in range(40):
        schema = {"anyOf": [schema, schema]}
    return {"type": "object", "properties": {"a": schema}}


BAD = {
    "a large description": "@tool(description='x' * 5_000_000)\ndef bad(): pass\n",
    "a large schema": "@tool(parameters={'type': 'object', 'description': 'x' * 5_000_000})\n"
    "def bad(): pass\n",
    "a group with an odd name": "@tool(group='g\\u0456t')\ndef bad(): pass\n",
}


@pytest.mark.parametrize("source", BAD.values(), ids=BAD)
def test_a_tool_without_bounds_is_left_out_and_the_others_serve(tmp_path, write_plugin, source):
    write_plugin(tmp_path, "maps", tools=TOOLS + source)
    app = Satchel(plugins=[tmp_path])
    assert list(app.catalog.tools) == ["good"]
    assert "plugin-tool-invalid" in [item.code for item in app.catalog.diagnostics]
    assert len(str(app.session().step().schemas())) < 10_000


@pytest.mark.parametrize(
    "parameters",
    [
        nested(200),
        circular(),
        doubling(),
        {"type": "object", "x": "y" * 70_000},
    ],
    ids=["deep", "circular", "doubling", "large"],
)
def test_the_application_cannot_register_such_a_tool(parameters):
    with pytest.raises(DefinitionError):
        Satchel().register_tool(lambda: None, name="bad", parameters=parameters)


def test_the_limits_are_settings():
    @tool(description="x" * 70_000)
    def big() -> None: ...

    app = Satchel(settings=Settings(limits=Limits(tool_definition=100_000)))
    app.register_tool(big)
    assert "big" in app.catalog.tools


def test_long_texts_of_groups_are_cut_and_reported(tmp_path, write_plugin):
    hooks = """
from satchel import Group, hookimpl

@hookimpl
def satchel_groups():
    return [Group(name="routes", description="d" * 5_000_000, notes="n" * 5_000_000, active=True)]
"""
    write_plugin(tmp_path, "maps", tools=TOOLS + hooks)
    app = Satchel(plugins=[tmp_path])
    group = app.catalog.groups["routes"]
    assert (len(group.description), len(group.notes)) == (4096, 65536)
    assert [it.code for it in app.catalog.diagnostics].count("plugin-text-long") == 2
    app.create_group("host", "d" * 5_000_000, notes="n" * 5_000_000, active=True)
    assert len(str(app.session().step().schemas())) < 20_000
    assert len(app.session().prompt()) < 140_000
