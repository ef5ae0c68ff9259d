"""Contracts that change while we watch: the next call is held to the new ones."""

import asyncio
import shutil
from textwrap import dedent

import pytest

from satchel import Status, ToolContract

TOOLS = """
    from satchel import tool

    @tool
    def greet(name: str, word: str = "Hello") -> str:
        "Greet somebody."
        return word + " " + name
"""

CONTRACTS = """
    from satchel import ToolConfigParam, ToolContract, ToolInvariant, ToolStateEffect

    GREET = ToolContract(
        name="greet",
        schema={{"name": "str - whom"}},
        description="{text}",
        invariants=[ToolInvariant(id="{id}", rule="{rule}", check=lambda call, state,
            config: {check})],
        config_params=[ToolConfigParam("{param}", "{value}")],
        state_effects=[ToolStateEffect(key="{key}", type_hint=list, merge="append",
            prompt_template_var="{var}")],
    )
"""

GOOD = {
    "text": "Greet, by contract.",
    "id": "short",
    "rule": "A short name.",
    "check": "len(call.arguments['name']) < 9",
    "param": "word",
    "value": "Hi",
    "key": "greeted",
    "var": "GREETED",
}
MANIFEST = "active: true\nnotes: 'Greeted: {{GREETED}}'\ncontract: contracts:GREET\n"


def contracts(**parts) -> str:
    return CONTRACTS.format(**{**GOOD, **parts})


def greet(app, name="Ada"):
    return asyncio.run(app.session().call("greet", {"name": name}))


def codes(app) -> set[str]:
    problem_codes = {it.code for it in app.catalog.diagnostics}
    return problem_codes - {"plugin-not-enabled", "tool-undescribed"}


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


@pytest.fixture
def write(plugins, write_plugin):
    """Write the plugin `demo`; by default with a contract that fits."""

    def write(manifest=MANIFEST, *, tools=TOOLS, source=None, **parts):
        write_plugin(plugins, "demo", manifest, tools=tools, contracts=source or contracts(**parts))

    return write


@pytest.mark.parametrize(
    ("parts", "seen_as"),
    [
        ({"check": "False"}, lambda app: greet(app).error_code == "rejected"),
        ({"check": "1/0"}, lambda app: greet(app).error_code == "rejected"),
        ({"value": "Hey"}, lambda app: greet(app).text == "Hey Ada"),
        ({"rule": "Anew."}, lambda app: "Anew." in app.session().tool_guide()),
        ({"text": "Anew."}, lambda app: "Anew." in str(app.session().schemas())),
        ({"var": "OTHER"}, lambda app: codes(app) == {"prompt-variable-unknown"}),
        ({"key": "other"}, lambda app: app.catalog.contracts.cleared == {"other"}),
    ],
)
def test_the_next_call_is_held_to_a_contract_that_was_edited(
    watched, plugins, write, parts, seen_as
):
    write()
    with watched(plugins=[plugins]) as seen:
        assert greet(seen.app).text == "Hi Ada"
        assert not seen_as(seen.app)
        (plugins / "demo/contracts.py").write_text(dedent(contracts(**parts)))
        seen.until(lambda: seen_as(seen.app))
        seen.until_as_cold()


def test_what_a_contract_says_is_a_change_of_its_tool(watched, plugins, write):
    write()
    with watched(plugins=[plugins]) as seen:
        write(rule="Anew.")
        seen.until_event("changed", "greet")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (contracts(param="nobody"), "contract-unfit"),
        (contracts(param="name"), None),
        ("GREET = 7\n", "contract-invalid"),
        (contracts() + "    1 / 0\n", "plugin-import-failed"),
        ("def (:\n", "plugin-syntax"),
        (contracts(text=""), None),
    ],
)
def test_the_last_good_version_continues_while_a_contract_is_broken_and_recovers(
    watched, plugins, write, source, code
):
    write()
    with watched(plugins=[plugins]) as seen:
        (plugins / "demo/contracts.py").write_text(dedent(source))
        seen.until_event("stale", "demo")
        assert seen.app.catalog.plugins["demo"].state is Status.STALE
        assert code is None or code in codes(seen.app)
        assert greet(seen.app).text == "Hi Ada"
        assert greet(seen.app, "x" * 9).error_code == "rejected"
        write(value="Hey")
        seen.until(lambda: greet(seen.app).text == "Hey Ada")
        assert codes(seen.app) == set()
        seen.until_as_cold()


def test_a_contract_that_comes_and_goes_with_the_manifest(watched, plugins, write):
    bare = "active: true\n"
    write(bare)
    with watched(plugins=[plugins]) as seen:
        assert greet(seen.app).text == "Hello Ada"
        write()
        seen.until(lambda: greet(seen.app).text == "Hi Ada")
        seen.until_as_cold()
        write(bare)
        seen.until(lambda: greet(seen.app).text == "Hello Ada")
        assert len(seen.app.catalog.contracts) == 0
        seen.until_as_cold()


def test_a_tool_that_is_edited_out_of_its_contract_continues_as_it_was(watched, plugins, write):
    write()
    with watched(plugins=[plugins]) as seen:
        write(tools=TOOLS.replace("name: str", "whom: str").replace("+ name", "+ whom"))
        seen.until_event("stale", "demo")
        assert "contract-unfit" in codes(seen.app)
        assert greet(seen.app).text == "Hi Ada"
        write()
        seen.until(lambda: codes(seen.app) == set())
        seen.until_as_cold()


def test_a_cold_load_of_a_contract_that_does_not_fit_leaves_the_tool_out(watched, plugins, write):
    write(param="nobody")
    with watched(plugins=[plugins]) as seen:
        assert "contract-unfit" in codes(seen.app)
        assert greet(seen.app).error_code == "tool_not_found"
        write()
        seen.until(lambda: greet(seen.app).text == "Hi Ada")
        seen.until_as_cold()


def test_a_contract_of_the_host_holds_over_reloads_and_gives_back_what_is_there_then(
    watched, plugins, write
):
    write()
    with watched(plugins=[plugins]) as seen:
        seen.app.register_contract(
            ToolContract(name="greet", schema={"name": "str - n"}, description="The host's.")
        )
        assert greet(seen.app).text == "Hello Ada"
        write(value="Hey")
        seen.until(lambda: is_current(seen))
        assert greet(seen.app).text == "Hello Ada"
        seen.app.remove_contract("greet")
        seen.until(lambda: greet(seen.app).text == "Hey Ada")
        seen.until_as_cold()


def is_current(seen) -> bool:
    plugin = seen.app.catalog.plugins["demo"]
    return plugin.digest == seen.cold().catalog.plugins["demo"].digest


def test_a_plugin_that_goes_takes_its_contracts_along(watched, plugins, write):
    write()
    with watched(plugins=[plugins]) as seen:
        shutil.rmtree(plugins / "demo")
        seen.until_event("removed", "greet")
        assert len(seen.app.catalog.contracts) == 0
        seen.until_as_cold()


def test_a_session_is_held_to_the_new_rules_and_keeps_its_state(watched, plugins, write):
    write()
    with watched(plugins=[plugins]) as seen:
        session = seen.app.session()
        step = session.step()

        def call(place):
            return asyncio.run(place.call("greet", {"name": "Ada"}))

        call(session)
        write(check="False", key="greeted")
        seen.until(lambda: call(session).error_code == "rejected")
        assert set(session.state["greeted"]) == {"Hi Ada"}
        assert call(step).text == "Hi Ada", "a step ends as it began"
        assert '["Hi Ada"' in session.prompt()
        assert "Greeted: \n" in step.prompt() + "\n"
