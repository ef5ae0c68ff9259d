"""What is said of contracts once all sources were looked at."""

import pytest

from satchel import Satchel, ToolContract, ToolStateEffect

NOTED = """
    from satchel import ToolContract, ToolStateEffect, tool

    @tool
    def {tool}(text: str) -> str:
        "Write the text down."
        return text

    NOTE = ToolContract(name="{tool}", schema={{"text": "str - t"}}, description="Note.",
        state_effects=[
        ToolStateEffect(key="{key}", type_hint=list, prompt_template_var="{variable}")])
"""


@pytest.fixture
def write(tmp_path, write_plugin):
    def write(name="demo", notes="", **parts):
        source = NOTED.format(**{"tool": "note", "key": "docs", "variable": "DOCS", **parts})
        manifest = f"contract: tools:NOTE\nnotes: {notes!r}\n"
        write_plugin(tmp_path, name, manifest, tools=source)

    return write


def reported(app) -> list[tuple[str, str]]:
    return [
        (it.code, it.where.path)
        for it in app.catalog.diagnostics
        if it.code not in {"plugin-not-enabled", "tool-undescribed"}
    ]


def test_a_variable_that_a_contract_fills_is_known_wherever_it_stands(write, tmp_path):
    write()
    write("other", notes="{{DOCS}}", tool="more", variable="MORE")
    assert reported(Satchel(plugins=[tmp_path])) == []


def test_a_variable_that_is_not_filled_is_reported_with_its_plugin(write, tmp_path):
    write(notes="{{DOCS}} {{NOBODY}} {{NOBODY}} {{ BLANKS }} {{lower}}")
    app = Satchel(plugins=[tmp_path])
    assert reported(app) == [("prompt-variable-unknown", str(tmp_path / "demo"))]


def test_a_variable_in_a_section_that_is_not_filled_is_reported(tmp_path, write_plugin):
    source = """
        from satchel import hookimpl

        @hookimpl
        def satchel_prompt_sections():
            return ["Plain.", "Say {{NOBODY}}."]
    """
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path])
    assert reported(app) == [("prompt-variable-unknown", str(tmp_path / "demo"))]


def test_notes_of_the_host_are_looked_at_too():
    app = Satchel()
    app.create_group("maps", notes="{{WAY}}")
    assert [code for code, _ in reported(app)] == ["prompt-variable-unknown"]
    app.register_tool(lambda: "x", name="route", description="Route.")
    effect = ToolStateEffect(key="way", prompt_template_var="WAY")
    app.register_contract(
        ToolContract(name="route", schema={}, description="Route.", state_effects=(effect,))
    )
    assert reported(app) == []
    app.remove_tool("route")
    assert [code for code, _ in reported(app)] == [
        "contract-tool-unknown",
        "prompt-variable-unknown",
    ]


def test_two_keys_for_one_variable_are_reported_and_one_key_of_two_tools_is_not(write, tmp_path):
    write()
    write("other", tool="more")
    assert reported(Satchel(plugins=[tmp_path])) == []
    write("other", tool="more", key="rows")
    app = Satchel(plugins=[tmp_path])
    assert [code for code, _ in reported(app)] == ["prompt-variable-contested"]
    session = app.session()
    session.state.update(docs=["of more is the first by name"], rows=["rows"])
    first = app.catalog.contracts.prompt_variables["DOCS"][0]
    (problem,) = [it for it in app.catalog.diagnostics if it.code.startswith("prompt")]
    assert problem.message.index(first) < problem.message.index(
        {"docs": "rows", "rows": "docs"}[first]
    )
    assert session.prompt_variables()["DOCS"] == session.fill("{{DOCS}}").text
    assert str(session.state[first][0]) in session.fill("{{DOCS}}").text


def test_who_only_reads_does_not_hear_of_unknown_variables(write, tmp_path):
    write(notes="{{NOBODY}}")
    assert reported(Satchel(plugins=[tmp_path], run_code=False)) == []


def test_what_is_reported_does_not_depend_on_the_order_of_registration():
    def made(order):
        app = Satchel()
        for name in order:
            app.register_tool(lambda: "x", name=name, description="X.")
            effect = ToolStateEffect(key=f"of_{name}", prompt_template_var="DOCS")
            app.register_contract(
                ToolContract(name=name, schema={}, description="X.", state_effects=(effect,))
            )
        session = app.session()
        session.state.update(of_a="A", of_b="B")
        return session.fill("{{DOCS}}").text, [str(it) for it in app.catalog.diagnostics]

    assert made("ab") == made("ba")


def test_a_tool_without_a_value_is_not_said_to_be_missing():
    app = Satchel()
    app.register_contract(ToolContract(name="route", schema={}, description="Route."))
    assert [code for code, _ in reported(app)] == ["contract-tool-unknown"]


def test_a_tool_that_is_left_out_is_not_said_to_be_missing(tmp_path, write_plugin):
    source = """
        from satchel import tool

        @tool(state=["key"])
        def route(key: str) -> str:
            return key
    """
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path])
    app.register_contract(ToolContract(name="route", schema={}, description="Route."))
    assert [code for code, _ in reported(app)] == ["tool-state-missing"]


def test_what_only_a_shadowed_tool_fills_is_not_filled(write, tmp_path):
    write(notes="{{DOCS}}")
    app = Satchel(plugins=[tmp_path])
    assert reported(app) == []
    app.register_tool(lambda text: text, name="note")
    assert "prompt-variable-unknown" in dict(reported(app))
