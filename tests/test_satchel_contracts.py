"""Contracts that the host gives: whose tool they hold, what they fit, and what goes with them."""

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


def call(bag, name, /, **arguments):
    return asyncio.run(bag.session().call(name, arguments))


def codes(bag) -> list[str]:
    # What others installed here is no matter of these tests.
    return [it.code for it in bag.catalog.diagnostics if it.code != "plugin-not-enabled"]


def refusing(name="say", text="Say.", schema=None, **parts) -> ToolContract:
    """Return a contract with a rule that nothing keeps."""
    rule = ToolInvariant("never", "Never.", lambda call, state, config: False)
    return ToolContract(name, WORD if schema is None else schema, text, (rule,), **parts)


def plain(name="say", text="Say.", schema=None, **parts) -> ToolContract:
    return ToolContract(name, WORD if schema is None else schema, text, **parts)


@tool
def say(word: str) -> str:
    """Say a word."""
    return word


@pytest.mark.parametrize("is_first", [True, False])
def test_a_contract_may_come_before_its_tool_or_after_it(is_first):
    bag = Satchel()
    if is_first:
        bag.register_contract(refusing())
        assert codes(bag) == ["contract-tool-unknown"]
        bag.register_tool(say)
    else:
        bag.register_tool(say)
        bag.register_contract(refusing())
    assert codes(bag) == []
    assert call(bag, "say", word="x").error_code == "rejected"
    (schema,) = [it for it in bag.session().schemas("anthropic") if it["name"] == "say"]
    assert schema["description"] == "Say."
    assert schema["input_schema"]["properties"]["word"]["description"] == "a word"


def test_a_contract_without_a_tool_names_the_near_misses():
    bag = Satchel()
    bag.register_tool(say, name="saying")
    bag.register_contract(plain("sayin"))
    (problem,) = [it for it in bag.catalog.diagnostics if it.code == "contract-tool-unknown"]
    assert "saying" in problem.fix


def test_a_second_contract_of_one_tool_is_refused_until_the_first_is_removed():
    bag = Satchel()
    bag.register_tool(say)
    bag.register_contract(refusing())
    with pytest.raises(ConflictError, match="say"):
        bag.register_contract(plain())
    bag.remove_contract("say")
    assert call(bag, "say", word="x").text == "x"
    bag.register_contract(plain(text="Anew."))
    assert bag.catalog.tools["say"].description == "Anew."


def test_what_is_no_contract_and_what_is_not_there_are_refused():
    bag = Satchel()
    bag.register_contract(plain())
    for junk in ({"name": "say"}, "say", None, ToolContract):
        with pytest.raises(DefinitionError):
            bag.register_contract(junk)
    with pytest.raises(NotFoundError) as caught:
        bag.remove_contract("sai")
    assert "say" in str(caught.value)


def test_a_contract_that_does_not_fit_is_refused_and_nothing_changes():
    bag = Satchel()
    bag.register_tool(say)
    before = bag.catalog
    for odd in (
        plain(config_params=(ToolConfigParam("limit"),)),
        plain(schema={"wrd": "str - w"}),
        plain(schema={"word": "str = 'x' - w", "more": "str - m"}),
    ):
        with pytest.raises(DefinitionError, match="say"):
            bag.register_contract(odd)
    assert bag.catalog is before
    bag.register_contract(plain())


def test_a_tool_that_comes_later_and_does_not_fit_is_left_out_alone_and_recovers():
    bag = Satchel()
    bag.register_contract(plain(config_params=(ToolConfigParam("limit", 5),)))
    bag.register_tool(say)
    bag.register_tool(say, name="other")
    assert codes(bag) == ["contract-unfit"], "there is such a tool"
    assert call(bag, "say", word="x").error_code == "tool_not_found"
    assert call(bag, "other", word="x").text == "x"

    def fitting(word: str, limit: int) -> str:
        return f"{word} {limit}"

    bag.register_tool(fitting, name="say", on_conflict="override")
    assert codes(bag) == []
    assert call(bag, "say", word="x").text == "x 5"


def test_a_contract_stays_when_its_tool_goes_and_comes_back():
    bag = Satchel()
    bag.register_tool(say)
    bag.register_contract(refusing())
    bag.remove_tool("say")
    assert codes(bag) == ["contract-tool-unknown"]
    bag.register_tool(say)
    assert (codes(bag), call(bag, "say", word="x").error_code) == ([], "rejected")


PLUGIN = """
    from satchel import ToolConfigParam, ToolContract, ToolStateRead, hookimpl, tool

    @tool
    def say(word: str, limit: int, user: str) -> str:
        return f"{word} {limit} {user}"

    SAY = ToolContract("say", {"word": "str - of the plugin"}, "Of the plugin.",
        config_params=[ToolConfigParam("limit", 5)], state_reads=[ToolStateRead("user", "me")])

    @hookimpl
    def satchel_contracts():
        return [SAY]
"""


def test_a_contract_of_the_host_takes_the_place_of_a_plugins_and_gives_it_back(
    tmp_path, write_plugin
):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    bag = Satchel(plugins=[tmp_path])
    assert call(bag, "say", word="x").text == "x 5 me"
    own = bag.catalog.tools["say"]
    bag.register_contract(
        plain(
            text="Of the host.",
            config_params=(ToolConfigParam("limit", "7", int), ToolConfigParam("user", "you")),
        )
    )
    entry = bag.catalog.tools["say"]
    assert (entry.description, entry.tool.description) == ("Of the host.", "Of the host.")
    assert entry.version != own.version
    assert call(bag, "say", word="x").text == "x 7 you"
    bag.remove_contract("say")
    assert bag.catalog.tools["say"].version == own.version
    assert bag.catalog.tools["say"].contract is own.contract
    assert call(bag, "say", word="x").text == "x 5 me"
    assert codes(bag) == []


def test_what_a_plugins_contract_handed_over_the_hosts_must_hand_over_too(tmp_path, write_plugin):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    bag = Satchel(plugins=[tmp_path])
    with pytest.raises(DefinitionError, match="limit"):
        bag.register_contract(plain())
    with pytest.raises(DefinitionError, match="nobody"):
        bag.register_contract(
            plain(
                config_params=(ToolConfigParam("limit", 7), ToolConfigParam("user", "u")),
                state_reads=(ToolStateRead("nobody"),),
            )
        )
    assert call(bag, "say", word="x").text == "x 5 me"


def test_the_hosts_contract_holds_whatever_version_of_a_plugins_tool_is_served(
    tmp_path, write_plugin
):
    source = (
        "from satchel import tool\n\n@tool\ndef say(word: str) -> str:\n    return word + '1'\n"
    )
    write_plugin(tmp_path, "demo", tools=source)
    bag = Satchel(plugins=[tmp_path])
    rule = ToolInvariant("short", "Be short.", lambda c, s, k: len(c.arguments["word"]) < 5)
    bag.register_contract(ToolContract("say", WORD, "Say.", (rule,)))
    assert call(bag, "say", word="x").text == "x1"
    write_plugin(tmp_path, "demo", tools=source.replace("'1'", "'2'"))
    bag.refresh()
    assert call(bag, "say", word="x").text == "x2"
    assert call(bag, "say", word="too long").error_code == "rejected"
    write_plugin(
        tmp_path, "demo", tools=source.replace("word: str", "other: str").replace("word +", "")
    )
    bag.refresh()
    assert "contract-unfit" in codes(bag)
    assert call(bag, "say", word="x").error_code == "tool_not_found"
    write_plugin(tmp_path, "demo", tools=source.replace("'1'", "'3'"))
    bag.refresh()
    assert (codes(bag), call(bag, "say", word="x").text) == ([], "x3")


def test_a_contract_fits_the_tool_that_has_presets():
    def look(word: str, key: str, limit: int = 3) -> str:
        return f"{word} {key} {limit}"

    bag = Satchel()
    bag.register_tool(look, presets={"key": "secret"})
    bag.register_contract(plain("look", config_params=(ToolConfigParam("limit", 9),)))
    assert call(bag, "look", word="x").text == "x secret 9"
    assert "secret" not in str(bag.session().schemas())
    assert call(bag, "look", word="x", key="mine").error_code == "invalid_arguments"
    bag.remove_contract("look")
    with pytest.raises(DefinitionError, match="key"):
        bag.register_contract(plain("look", config_params=(ToolConfigParam("key", "no"),)))


def test_a_contract_fits_the_tool_that_has_state_fields():
    @tool(state=["key"])
    def look(word: str, key: str, user: str) -> str:
        return f"{word} {key} {user}"

    bag = Satchel(config={"host": {"key": "secret"}})
    bag.register_tool(look)
    bag.register_contract(plain("look", state_reads=(ToolStateRead("user", "me"),)))
    assert call(bag, "look", word="x").text == "x secret me"
    assert "key" not in str(bag.session().schemas())


def test_state_fields_of_a_plugins_tool_are_configured_under_its_contract(tmp_path, write_plugin):
    source = """
        from satchel import ToolContract, ToolStateRead, hookimpl, tool

        @tool(state=["key"])
        def look(word: str, key: str, user: str) -> str:
            return f"{word} {key} {user}"

        @hookimpl
        def satchel_contracts():
            return [ToolContract("look", {"word": "str - w"}, "Look.",
                state_reads=[ToolStateRead("user", "me")])]
    """
    write_plugin(tmp_path, "demo", tools=source)
    bag = Satchel(plugins=[tmp_path], config={"demo": {"key": "secret"}})
    assert call(bag, "look", word="x").text == "x secret me"
    bag.register_contract(plain("look", state_reads=(ToolStateRead("user", "you"),)))
    assert call(bag, "look", word="x").text == "x secret you"


class Saying(Tool):
    name = "say"
    description = "Say a word."
    parameters = {"type": "object", "properties": {"word": {"type": "string"}}}  # noqa: RUF012

    async def execute(self, /, **arguments: Any) -> str:
        return " ".join(f"{key}={value}" for key, value in sorted(arguments.items()))


class Starting(Saying):
    async def start(self, arguments, context):
        return "started"


def test_a_contract_fits_a_tool_that_is_an_object():
    bag = Satchel()
    bag.register_tool(Saying())
    bag.register_contract(plain(config_params=(ToolConfigParam("limit", 5),)))
    assert call(bag, "say", word="x").text == "limit=5 word=x"
    assert call(bag, "say", wrd="x").error_code == "invalid_arguments"


def test_a_tool_that_runs_itself_cannot_be_held():
    bag = Satchel()
    bag.register_tool(Starting())
    with pytest.raises(DefinitionError, match="runs itself"):
        bag.register_contract(plain())


class Further(BaseModel):
    more: int


def test_a_tool_takes_the_further_arguments_that_its_contract_names():
    def say(word: str, **further: Any) -> str:
        return f"{word} {further}"

    bag = Satchel()
    bag.register_tool(say)
    bag.register_contract(plain(schema={**WORD, "more": "int - m"}))
    assert call(bag, "say", word="x", more=3).text == "x {'more': 3}"


def test_a_tool_is_extended_by_a_model_or_held_to_a_contract_and_not_both():
    def say(word: str, **further: Any) -> str:
        return f"{word} {further}"

    bag = Satchel()
    bag.register_tool(say)
    contract = plain(schema={**WORD, "more": "int - m"})
    bag.set_extended_model("say", Further)
    with pytest.raises(DefinitionError, match="model"):
        bag.register_contract(contract)
    assert call(bag, "say", word="x", more=3).text == "x {'more': 3}"
    bag.set_extended_model("say", None)
    bag.register_contract(contract)
    with pytest.raises(DefinitionError, match="written by hand"):
        bag.set_extended_model("say", Further)
    assert call(bag, "say", word="x", more=3).text == "x {'more': 3}"
    bag.remove_contract("say")
    assert call(bag, "say", word="x").text == "x {}"


def test_an_idempotent_tool_runs_once_under_a_contract_that_hands_it_nothing():
    ran = []

    def say(word: str) -> str:
        ran.append(word)
        return word

    bag = Satchel()
    bag.register_tool(say, idempotent=True)
    bag.register_contract(plain())
    session = bag.session()

    async def twice():
        await session.call("say", {"word": "x"})
        await session.call("say", {"word": "x"})

    asyncio.run(twice())
    assert ran == ["x"]
    assert "'idempotentHint': True" in str(bag.session().schemas("mcp"))


def test_an_idempotent_tool_that_is_handed_values_runs_again():
    ran = []

    def say(word: str, user: str) -> str:
        ran.append(user)
        return user

    bag = Satchel()
    bag.register_tool(say, idempotent=True)
    bag.register_contract(plain(state_reads=(ToolStateRead("user"),)))
    session = bag.session()

    async def twice():
        for user in ("a", "b"):
            session.state["user"] = user
            await session.call("say", {"word": "x"})

    asyncio.run(twice())
    assert ran == ["a", "b"]
    assert "'idempotentHint': True" in str(bag.session().schemas("mcp"))


def test_a_tool_is_told_its_configuration_by_its_context():
    def say(word: str, context: ToolContext) -> str:
        return f"{word} {context.config['limit']}"

    bag = Satchel()
    bag.register_tool(say)
    bag.register_contract(plain(config_params=(ToolConfigParam("limit", "5", int),)))
    assert call(bag, "say", word="x").text == "x 5"


def test_without_code_contracts_of_the_host_are_listed_and_nothing_is_called(
    tmp_path, write_plugin
):
    write_plugin(tmp_path, "demo", tools=PLUGIN)
    bag = Satchel(plugins=[tmp_path], run_code=False)
    bag.register_contract(refusing(text="Of the host."))
    entry = bag.catalog.tools["say"]
    assert entry.tool is None
    assert entry.description == entry.declared.description == "Of the host."
    assert [rule.id for rule in entry.declared.rules] == ["never"]
    session = bag.session()
    assert call(bag, "say", word="x").error_code == "tool_not_found"
    assert [it.code for it in session.validate([ToolCall("say")]).rejected] == ["tool_not_found"]
    assert list(session.contracts) == []
    bag.remove_contract("say")
    assert bag.catalog.tools["say"].declared.description == "Of the plugin."


def test_a_session_sees_a_contract_that_comes_while_it_lasts():
    bag = Satchel()
    bag.register_tool(say)
    session = bag.session()
    assert asyncio.run(session.call("say", {"word": "x"})).text == "x"
    bag.register_contract(plain(state_effects=(ToolStateEffect("said", list, merge="append"),)))
    asyncio.run(session.call("say", {"word": "x"}))
    assert session.state == {"said": ["x"]}


def test_two_contracts_that_say_the_same_are_told_apart():
    bag = Satchel()
    bag.register_tool(say)
    changes = []
    bag.subscribe(lambda change: changes.append((change.event, change.kind, change.name)))
    bag.register_contract(refusing())
    allowing = ToolInvariant("never", "Never.", lambda call, state, config: True)
    bag.remove_contract("say")
    changes.clear()
    bag.register_contract(ToolContract("say", WORD, "Say.", (allowing,)))
    assert call(bag, "say", word="x").text == "x"
    assert [str(event) for event, kind, _ in changes if kind == "tool"] == ["changed"]


def test_the_catalog_knows_all_contracts_of_served_tools():
    bag = Satchel()
    bag.create_group("maps", "Maps.")
    bag.register_tool(say, group="maps")
    contract = plain()
    bag.register_contract(contract)
    assert dict(bag.catalog.contracts) == {"say": contract}


def test_several_contracts_are_registered_at_once_or_none():
    bag = Satchel()
    before = bag.catalog.generation
    bag.register_tool(say)
    bag.register_tool(say, name="tell")
    bag.register_contract(plain(text="Say it."), plain("tell", "Tell it."))
    assert {name: it.description for name, it in bag.catalog.contracts.items()} == {
        "say": "Say it.",
        "tell": "Tell it.",
    }
    assert bag.catalog.generation == before + 3
    with pytest.raises(ConflictError):
        bag.register_contract(plain("later"), plain("tell"))
    assert "later" not in str(bag.catalog.diagnostics)


def test_another_contract_that_says_the_same_is_another_one():
    bag = Satchel()
    bag.register_tool(say)
    said = []
    for number in range(3):
        rule = ToolInvariant("is", "Is.", lambda *args, number=number: said.append(number) or True)
        bag.register_contract(ToolContract("say", WORD, "Say.", rule))
        call(bag, "say", word="a")
        bag.remove_contract("say")
    assert said == [0, 1, 2]
