"""Contracts of the host: which tool they apply to, and which tools they match."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from satchel import (
    ConflictError,
    DefinitionError,
    NotFoundError,
    Satchel,
    Tool,
    ToolCall,
    ToolConfigParam,
    ToolContext,
    ToolContract,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
    tool,
)

WORD = {"word": "str - a word"}


def call(app, name, /, **arguments):
    return asyncio.run(app.session().call(name, arguments))


def codes(app) -> list[str]:
    # What others installed here is no matter of these tests.
    others = {"plugin-not-enabled", "tool-undescribed"}
    return [it.code for it in app.catalog.diagnostics if it.code not in others]


def refusing(name="say", text="Say.", schema=None, **parts) -> ToolContract:
    """Return a contract with a rule that no call keeps."""
    rule = ToolInvariant(id="never", rule="Never.", check=lambda call, state, config: False)
    return ToolContract(
        name=name,
        schema=WORD if schema is None else schema,
        description=text,
        invariants=(rule,),
        **parts,
    )


def plain(name="say", text="Say.", schema=None, **parts) -> ToolContract:
    return ToolContract(
        name=name, schema=WORD if schema is None else schema, description=text, **parts
    )


@tool
def say(word: str) -> str:
    """Say a word."""
    return word


@pytest.mark.parametrize("is_first", [True, False])
def test_a_contract_may_come_before_its_tool_or_after_it(is_first):
    app = Satchel()
    if is_first:
        app.register_contract(refusing())
        assert codes(app) == ["contract-tool-unknown"]
        app.register_tool(say)
    else:
        app.register_tool(say)
        app.register_contract(refusing())
    assert codes(app) == []
    assert call(app, "say", word="x").error_code == "rejected"
    (schema,) = [it for it in app.session().schemas("anthropic") if it["name"] == "say"]
    assert schema["description"] == "Say."
    assert schema["input_schema"]["properties"]["word"]["description"] == "a word"


def test_a_contract_without_a_tool_names_the_near_misses():
    app = Satchel()
    app.register_tool(say, name="saying")
    app.register_contract(plain("sayin"))
    (problem,) = [it for it in app.catalog.diagnostics if it.code == "contract-tool-unknown"]
    assert "saying" in problem.fix


def test_a_second_contract_of_one_tool_is_refused_until_the_first_is_removed():
    app = Satchel()
    app.register_tool(say)
    app.register_contract(refusing())
    with pytest.raises(ConflictError, match="say"):
        app.register_contract(plain())
    app.remove_contract("say")
    assert call(app, "say", word="x").text == "x"
    app.register_contract(plain(text="Anew."))
    assert app.catalog.tools["say"].description == "Anew."


def test_invalid_and_unknown_contracts_are_refused():
    app = Satchel()
    app.register_contract(plain())
    for junk in ({"name": "say"}, "say", None, ToolContract):
        with pytest.raises(DefinitionError):
            app.register_contract(junk)
    with pytest.raises(NotFoundError) as caught:
        app.remove_contract("sai")
    assert "say" in str(caught.value)


def test_a_contract_that_does_not_match_is_refused_and_nothing_changes():
    app = Satchel()
    app.register_tool(say)
    before = app.catalog
    for odd in (
        plain(config_params=(ToolConfigParam("limit"),)),
        plain(schema={"wrd": "str - w"}),
        plain(schema={"word": "str = 'x' - w", "more": "str - m"}),
    ):
        with pytest.raises(DefinitionError, match="say"):
            app.register_contract(odd)
    assert app.catalog is before
    app.register_contract(plain())


def test_a_later_tool_that_does_not_match_is_left_out_and_recovers():
    app = Satchel()
    app.register_contract(plain(config_params=(ToolConfigParam("limit", 5),)))
    app.register_tool(say)
    app.register_tool(say, name="other")
    assert codes(app) == ["contract-unfit"], "there is such a tool"
    assert call(app, "say", word="x").error_code == "tool_not_found"
    assert call(app, "other", word="x").text == "x"

    def fitting(word: str, limit: int) -> str:
        return f"{word} {limit}"

    app.register_tool(fitting, name="say", on_conflict="override")
    assert codes(app) == []
    assert call(app, "say", word="x").text == "x 5"


def test_a_contract_stays_when_its_tool_goes_and_comes_back():
    app = Satchel()
    app.register_tool(say)
    app.register_contract(refusing())
    app.remove_tool("say")
    assert codes(app) == ["contract-tool-unknown"]
    app.register_tool(say)
    assert (codes(app), call(app, "say", word="x").error_code) == ([], "rejected")


PLUGIN = """
    from satchel import ToolConfigParam, ToolContract, ToolStateRead, hookimpl, tool

    @tool
    def say(word: str, limit: int, user: str) -> str:
        return f"{word} {limit} {user}"

    SAY = ToolContract(name="say", schema={"word": "str - of the plugin"},
        description="Of the plugin.",
        config_params=[ToolConfigParam("limit", 5)], state_reads=[ToolStateRead("user", "me")])

    @hookimpl
    def satchel_contracts():
        return [SAY]
"""


def test_removing_the_hosts_contract_restores_the_plugins(tmp_path, write_plugin):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    app = Satchel(plugins=[tmp_path])
    assert call(app, "say", word="x").text == "x 5 me"
    own = app.catalog.tools["say"]
    app.register_contract(
        plain(
            text="Of the host.",
            config_params=(ToolConfigParam("limit", "7", int), ToolConfigParam("user", "you")),
        )
    )
    entry = app.catalog.tools["say"]
    assert (entry.description, entry.tool.description) == ("Of the host.", "Of the host.")
    assert entry.version != own.version
    assert call(app, "say", word="x").text == "x 7 you"
    app.remove_contract("say")
    assert app.catalog.tools["say"].version == own.version
    assert app.catalog.tools["say"].contract is own.contract
    assert call(app, "say", word="x").text == "x 5 me"
    assert codes(app) == []


def test_the_hosts_contract_must_pass_the_same_values_as_the_plugins(tmp_path, write_plugin):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    app = Satchel(plugins=[tmp_path])
    with pytest.raises(DefinitionError, match="limit"):
        app.register_contract(plain())
    with pytest.raises(DefinitionError, match="nobody"):
        app.register_contract(
            plain(
                config_params=(ToolConfigParam("limit", 7), ToolConfigParam("user", "u")),
                state_reads=(ToolStateRead("nobody"),),
            )
        )
    assert call(app, "say", word="x").text == "x 5 me"


def test_the_hosts_contract_applies_to_every_version_of_a_plugins_tool(tmp_path, write_plugin):
    source = (
        "from satchel import tool\n\n@tool\ndef say(word: str) -> str:\n    return word + '1'\n"
    )
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path])
    rule = ToolInvariant(
        id="short", rule="Be short.", check=lambda c, s, k: len(c.arguments["word"]) < 5
    )
    app.register_contract(
        ToolContract(name="say", schema=WORD, description="Say.", invariants=(rule,))
    )
    assert call(app, "say", word="x").text == "x1"
    write_plugin(tmp_path, "demo", tools=source.replace("'1'", "'2'"))
    app.refresh()
    assert call(app, "say", word="x").text == "x2"
    assert call(app, "say", word="too long").error_code == "rejected"
    write_plugin(
        tmp_path, "demo", tools=source.replace("word: str", "other: str").replace("word +", "")
    )
    app.refresh()
    assert "contract-unfit" in codes(app)
    assert call(app, "say", word="x").error_code == "tool_not_found"
    write_plugin(tmp_path, "demo", tools=source.replace("'1'", "'3'"))
    app.refresh()
    assert (codes(app), call(app, "say", word="x").text) == ([], "x3")


def test_a_contract_matches_a_tool_with_presets():
    def look(word: str, key: str, limit: int = 3) -> str:
        return f"{word} {key} {limit}"

    app = Satchel()
    app.register_tool(look, presets={"key": "secret"})
    app.register_contract(plain("look", config_params=(ToolConfigParam("limit", 9),)))
    assert call(app, "look", word="x").text == "x secret 9"
    assert "secret" not in str(app.session().schemas())
    assert call(app, "look", word="x", key="mine").error_code == "invalid_arguments"
    app.remove_contract("look")
    with pytest.raises(DefinitionError, match="key"):
        app.register_contract(plain("look", config_params=(ToolConfigParam("key", "no"),)))


def test_a_contract_matches_a_tool_with_state_fields():
    @tool(state=["key"])
    def look(word: str, key: str, user: str) -> str:
        return f"{word} {key} {user}"

    app = Satchel(config={"host": {"key": "secret"}})
    app.register_tool(look)
    app.register_contract(plain("look", state_reads=(ToolStateRead("user", "me"),)))
    assert call(app, "look", word="x").text == "x secret me"
    assert "key" not in str(app.session().schemas())


def test_state_fields_of_a_plugins_tool_are_configured_under_its_contract(tmp_path, write_plugin):
    source = """
        from satchel import ToolContract, ToolStateRead, hookimpl, tool

        @tool(state=["key"])
        def look(word: str, key: str, user: str) -> str:
            return f"{word} {key} {user}"

        @hookimpl
        def satchel_contracts():
            return [ToolContract(name="look", schema={"word": "str - w"}, description="Look.",
                state_reads=[ToolStateRead("user", "me")])]
    """
    write_plugin(tmp_path, "demo", tools=source)
    app = Satchel(plugins=[tmp_path], config={"demo": {"key": "secret"}})
    assert call(app, "look", word="x").text == "x secret me"
    app.register_contract(plain("look", state_reads=(ToolStateRead("user", "you"),)))
    assert call(app, "look", word="x").text == "x secret you"


class Saying(Tool):
    name = "say"
    description = "Say a word."
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}}  # noqa: RUF012

    async def execute(self, /, **arguments: Any) -> str:
        return " ".join(f"{key}={value}" for key, value in sorted(arguments.items()))


class Starting(Saying):
    def bind(self, call):
        return lambda: "started"


def test_a_contract_matches_a_tool_that_is_an_object():
    app = Satchel()
    app.register_tool(Saying())
    app.register_contract(plain(config_params=(ToolConfigParam("limit", 5),)))
    assert call(app, "say", word="x").text == "limit=5 word=x"
    assert call(app, "say", wrd="x").error_code == "invalid_arguments"


def test_a_tool_that_runs_itself_cannot_have_a_contract():
    app = Satchel()
    app.register_tool(Starting())
    with pytest.raises(DefinitionError, match="overrides bind"):
        app.register_contract(plain())


class Further(BaseModel):
    more: int


def test_a_tool_takes_the_further_arguments_that_its_contract_names():
    def say(word: str, **further: Any) -> str:
        return f"{word} {further}"

    app = Satchel()
    app.register_tool(say)
    app.register_contract(plain(schema={**WORD, "more": "int - m"}))
    assert call(app, "say", word="x", more=3).text == "x {'more': 3}"


def test_a_tool_has_an_extended_model_or_a_contract_not_both():
    def say(word: str, **further: Any) -> str:
        return f"{word} {further}"

    app = Satchel()
    app.register_tool(say)
    contract = plain(schema={**WORD, "more": "int - m"})
    app.set_extended_model("say", Further)
    with pytest.raises(DefinitionError, match="model"):
        app.register_contract(contract)
    assert call(app, "say", word="x", more=3).text == "x {'more': 3}"
    app.set_extended_model("say", None)
    app.register_contract(contract)
    with pytest.raises(DefinitionError, match="has its own schema"):
        app.set_extended_model("say", Further)
    assert call(app, "say", word="x", more=3).text == "x {'more': 3}"
    app.remove_contract("say")
    assert call(app, "say", word="x").text == "x {}"


def test_an_idempotent_tool_with_a_contract_without_values_runs_once():
    ran = []

    def say(word: str) -> str:
        ran.append(word)
        return word

    app = Satchel()
    app.register_tool(say, idempotent=True)
    app.register_contract(plain())
    session = app.session()

    async def twice():
        await session.call("say", {"word": "x"})
        await session.call("say", {"word": "x"})

    asyncio.run(twice())
    assert ran == ["x"]
    assert "'idempotentHint': True" in str(app.session().schemas("mcp"))


def test_an_idempotent_tool_with_contract_values_runs_again():
    ran = []

    def say(word: str, user: str) -> str:
        ran.append(user)
        return user

    app = Satchel()
    app.register_tool(say, idempotent=True)
    app.register_contract(plain(state_reads=(ToolStateRead("user"),)))
    session = app.session()

    async def twice():
        for user in ("a", "b"):
            session.state["user"] = user
            await session.call("say", {"word": "x"})

    asyncio.run(twice())
    assert ran == ["a", "b"]
    assert "'idempotentHint': True" in str(app.session().schemas("mcp"))


def test_a_tool_gets_its_configuration_from_its_context():
    def say(word: str, context: ToolContext) -> str:
        return f"{word} {context.config['limit']}"

    app = Satchel()
    app.register_tool(say)
    app.register_contract(plain(config_params=(ToolConfigParam("limit", "5", int),)))
    assert call(app, "say", word="x").text == "x 5"


def test_without_code_contracts_of_the_host_are_listed_and_nothing_is_called(
    tmp_path, write_plugin
):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    app = Satchel(plugins=[tmp_path], run_code=False)
    app.register_contract(refusing(text="Of the host."))
    entry = app.catalog.tools["say"]
    assert entry.tool is None
    assert entry.description == entry.contract.description == "Of the host."
    assert [rule.id for rule in entry.contract.invariants] == ["never"]
    session = app.session()
    assert call(app, "say", word="x").error_code == "tool_not_found"
    assert [it.code for it in session.validate([ToolCall(name="say")]).rejected] == [
        "tool_not_found"
    ]
    assert list(session.contracts) == []
    app.remove_contract("say")
    assert app.catalog.tools["say"].contract is None


def test_a_session_sees_a_contract_that_comes_while_it_lasts():
    app = Satchel()
    app.register_tool(say)
    session = app.session()
    assert asyncio.run(session.call("say", {"word": "x"})).text == "x"
    app.register_contract(
        plain(state_effects=(ToolStateEffect(key="said", type_hint=list, merge="append"),))
    )
    asyncio.run(session.call("say", {"word": "x"}))
    assert session.state == {"said": ["x"]}


def test_two_equal_contracts_are_distinguished():
    app = Satchel()
    app.register_tool(say)
    changes = []
    app.subscribe(lambda change: changes.append((change.event, change.kind, change.name)))
    app.register_contract(refusing())
    allowing = ToolInvariant(id="never", rule="Never.", check=lambda call, state, config: True)
    app.remove_contract("say")
    changes.clear()
    app.register_contract(
        ToolContract(name="say", schema=WORD, description="Say.", invariants=(allowing,))
    )
    assert call(app, "say", word="x").text == "x"
    assert [str(event) for event, kind, _ in changes if kind == "tool"] == ["changed"]


def test_the_catalog_knows_all_contracts_of_served_tools():
    app = Satchel()
    app.create_group("maps", "Maps.")
    app.register_tool(say, group="maps")
    contract = plain()
    app.register_contract(contract)
    assert dict(app.catalog.contracts) == {"say": contract}


def test_several_contracts_are_registered_at_once_or_none():
    app = Satchel()
    before = app.catalog.generation
    app.register_tool(say)
    app.register_tool(say, name="tell")
    app.register_contract(plain(text="Say it."), plain("tell", "Tell it."))
    assert {name: it.description for name, it in app.catalog.contracts.items()} == {
        "say": "Say it.",
        "tell": "Tell it.",
    }
    assert app.catalog.generation == before + 3
    with pytest.raises(ConflictError):
        app.register_contract(plain("later"), plain("tell"))
    assert "later" not in str(app.catalog.diagnostics)


def test_an_equal_contract_is_a_different_one():
    app = Satchel()
    app.register_tool(say)
    messages = []
    for number in range(3):
        rule = ToolInvariant(
            id="is", rule="Is.", check=lambda *args, number=number: messages.append(number) or True
        )
        app.register_contract(
            ToolContract(name="say", schema=WORD, description="Say.", invariants=rule)
        )
        call(app, "say", word="a")
        app.remove_contract("say")
    assert messages == [0, 1, 2]
