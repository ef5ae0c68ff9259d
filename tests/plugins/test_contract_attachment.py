"""The contracts of plugins: named in the manifest, or returned by their hook."""

import asyncio
from dataclasses import replace

import pytest

from satchel import ToolCall, ToolContext
from satchel.catalog.catalog_entries import Status

TOOLS = '''
from satchel import tool

@tool
def say(word: str, limit: int = 3) -> str:
    """Say it."""
    return f"{word} {limit}"

@tool
def other(word: str) -> str:
    """The other."""
    return word
'''

CONTRACTS = """
from satchel import ToolConfigParam, ToolContract, ToolInvariant

RULE = ToolInvariant(id="brief", rule="Be brief.", check=lambda call, state, config: True)
SAY = ToolContract(name="say", schema={"word": "str - w"}, description="Say, by contract.",
    invariants=(RULE,),
    config_params=(ToolConfigParam("limit", 7),))
OTHER = ToolContract(name="other", schema={"word": "str - w"},
    description="The other, by contract.")
BOTH = [SAY, OTHER]
EMPTY = []
TEXT = "no contract"
MIXED = [SAY, "no contract"]
NOBODY = ToolContract(name="sayy", schema={}, description="Of nobody.")
UNFIT = ToolContract(name="say", schema={"wrd": "str - w"}, description="Unfit.")
"""

HOOK = """
from satchel import hookimpl
from .contracts import {names}

@hookimpl
def satchel_contracts():
    return [{names}]
"""


@pytest.fixture
def contracted(load):
    """Load `demo` with a manifest, and with hooks that return contracts of those names."""

    def contracted(manifest="", hooks="", *, contracts=CONTRACTS, **options):
        tools = TOOLS + (HOOK.format(names=hooks) if hooks else "")
        supply = load(manifest, tools=tools, contracts=contracts, **options)
        # The module holds more than any one test names.
        rest = tuple(item for item in supply.diagnostics if item.code != "contract-unused")
        return replace(supply, diagnostics=rest)

    return contracted


def tools(supply):
    return {tool.name: tool for tool in supply.tools}


def reported(supply):
    return {tool.name: tool.description for tool in supply.tools}


def run(tool, **arguments):
    async def main():
        checked = tool.tool.check(arguments)
        call = ToolCall(name=tool.name, arguments=checked, tool=tool.tool, context=ToolContext())
        return await tool.tool.runner.run(call)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("manifest", "hooks"),
    [
        ("contract: contracts:SAY\n", ""),
        ("contract: [contracts:SAY]\n", ""),
        ("", "SAY"),
        ("contract: contracts:SAY\n", "SAY"),
        ("contract: [contracts:SAY, contracts:SAY]\n", ""),
        ("tools:\n  - name: say\n    function: tools:say\n    contract: contracts:SAY\n", ""),
    ],
)
def test_a_tool_is_bound_to_its_contract_wherever_that_is_named(contracted, manifest, hooks):
    supply = contracted(manifest, hooks)
    assert [str(item) for item in supply.diagnostics] == []
    say = tools(supply)["say"]
    assert (say.description, say.tool.description) == ("Say, by contract.",) * 2
    assert say.contract.name == "say"
    assert [rule.id for rule in say.contract.invariants] == ["brief"]
    assert list(say.tool.parameters["properties"]) == ["word"]
    assert run(say, word="x") == "x 7"


@pytest.mark.parametrize(
    ("manifest", "hooks"),
    [
        ("contract: contracts:BOTH\n", ""),
        ("contract: contracts:SAY\n", "OTHER"),
        ("", "SAY, OTHER"),
    ],
)
def test_several_contracts_may_come_from_both_sides(contracted, manifest, hooks):
    supply = contracted(manifest, hooks)
    assert reported(supply) == {"say": "Say, by contract.", "other": "The other, by contract."}
    assert supply.diagnostics == ()


def test_tools_without_a_contract_are_as_they_were(contracted):
    other = tools(contracted("contract: contracts:SAY\n"))["other"]
    assert (other.contract, other.description) == (None, "The other.")


@pytest.mark.parametrize("name", ["MISSING", "TEXT", "MIXED", "RULE"])
def test_a_name_that_is_no_contract_fails_the_plugin(contracted, codes, name):
    supply = contracted(f"contract: contracts:{name}\n")
    assert "contract-invalid" in codes(supply)
    assert supply.state in {Status.FAILED, Status.DEGRADED}
    assert supply.state is not Status.OK


def test_a_module_of_contracts_that_raises_is_reported_with_its_place(contracted, tmp_path):
    supply = contracted("contract: contracts:SAY\n", contracts=CONTRACTS + "\n1/0\n")
    assert supply.state is Status.FAILED
    problem = supply.diagnostics[-1]
    assert problem.code == "plugin-import-failed"
    assert "contracts.py" in str(problem.where)
    assert "ZeroDivisionError" in problem.message


def test_a_contract_that_cannot_be_made_fails_the_plugin_in_its_words(contracted):
    supply = contracted(
        "contract: contracts:BAD\n",
        contracts="from satchel import ToolContract\n"
        "BAD = ToolContract(name='say', schema={}, description='')\n",
    )
    assert supply.state is not Status.OK
    assert any("description" in item.message for item in supply.diagnostics)


def test_a_contract_without_a_tool_is_reported_once_with_the_near_misses(contracted, codes):
    for manifest, hooks in (("contract: contracts:NOBODY\n", ""), ("", "NOBODY")):
        supply = contracted(manifest, hooks)
        assert codes(supply) == ["contract-tool-unknown"]
        assert "say" in supply.diagnostics[0].fix
        assert reported(supply) == {"say": "Say it.", "other": "The other."}
        assert supply.state.falls_back, (
            "a typo must not switch rules off: the last good version goes on"
        )


def test_of_two_contracts_of_one_tool_the_first_counts_and_that_is_reported_once(contracted, codes):
    contracts = (
        CONTRACTS
        + "SECOND = ToolContract(name='say', schema={'word': 'str - w'}, description='Second.')\n"
    )
    supply = contracted("contract: [contracts:SAY, contracts:SECOND]\n", contracts=contracts)
    assert codes(supply) == ["contract-shadowed"]
    assert reported(supply)["say"] == "Say, by contract."
    supply = contracted("contract: contracts:SECOND\n", "SAY", contracts=contracts)
    assert codes(supply) == ["contract-shadowed"]
    assert reported(supply)["say"] == "Second.", "what the manifest says comes first"


def test_a_contract_that_does_not_fit_costs_its_tool_and_flaws_the_plugin(contracted, codes):
    supply = contracted("contract: contracts:UNFIT\n")
    assert codes(supply) == ["contract-unfit"]
    assert list(tools(supply)) == ["other"]
    assert supply.state is Status.DEGRADED
    assert supply.state is not Status.FAILED
    assert supply.diagnostics[0].fix


def test_a_contract_of_an_item_must_be_of_that_tool(contracted, codes):
    item = "tools:\n  - name: say\n    function: tools:say\n    contract: contracts:OTHER\n"
    supply = contracted(item)
    assert "contract-invalid" in codes(supply)


def test_no_tools_are_picked_up_from_a_module_of_contracts(contracted):
    supply = contracted(
        "contract: contracts:SAY\n",
        contracts="from satchel import tool\n@tool\ndef stray() -> int: return 1\n" + CONTRACTS,
    )
    assert sorted(tools(supply)) == ["other", "say"]


@pytest.mark.parametrize(
    ("answer", "word"),
    [("[1]", "int"), ("SAY", "ToolContract"), ("'SAY'", "str"), ("1/0", "ZeroDivisionError")],
)
def test_a_hook_that_answers_nonsense_fails_the_plugin(contracted, load, codes, answer, word):
    hook = HOOK.format(names="SAY").replace("return [SAY]", f"return {answer}")
    supply = load(tools=TOOLS + hook, contracts=CONTRACTS)
    assert codes(supply) == ["plugin-hook-failed"]
    assert word in supply.diagnostics[0].message


PACKAGE = """
import satchel

@satchel.tool
def say(word: str, limit: int) -> str:
    return f"{word} {limit}"

SAY = satchel.ToolContract(name="say", schema={"word": "str - w"}, description="Say, by contract.",
    config_params=(satchel.ToolConfigParam("limit", 7),))

@satchel.hookimpl
def satchel_tools():
    return [say]

@satchel.hookimpl
def satchel_contracts():
    return [SAY]
"""


def test_a_package_brings_contracts_by_its_hook(package, codes):
    supply = package(PACKAGE)
    assert codes(supply) == []
    assert run(tools(supply)["say"], word="x") == "x 7"


def test_a_package_whose_contract_does_not_fit_is_degraded(package, codes):
    supply = package(PACKAGE.replace('"word": "str - w"', '"wrd": "str - w"'))
    assert codes(supply) == ["contract-unfit"]
    assert supply.tools == ()
    assert supply.state is Status.DEGRADED
