"""What `list contracts`, `show` and `validate` tell of contracts, once code was loaded."""

import json

import pytest

TOOLS = """
    from pathlib import Path
    from satchel import tool

    Path(__file__).with_name("was-run").touch()

    @tool
    def search(query: str = "", ids: list[str] | None = None, **given) -> str:
        "Search."

    @tool
    def plain() -> None:
        "Has no contract."
"""
CONTRACTS = """
    from pathlib import Path
    from satchel import ToolConfigParam, ToolContract, ToolInvariant
    from satchel import ToolStateEffect, ToolStateRead

    Path(__file__).with_name("was-run").touch()

    def fix(call, state, config):
        return call, False

    SEARCH = ToolContract(
        name="search",
        schema={"query": "str - what to look for", "ids": "Optional[list[str]] - or these"},
        description="Find documents.\\x1b[2J",
        invariants=[
            ToolInvariant(id="exclusive", rule="Give 'query' or 'ids'.", check=lambda *_: True),
            ToolInvariant(id="bundled", rule="Bundled steps need a search.",
                check=lambda *_: True, correct=fix),
        ],
        config_params=[ToolConfigParam("most", 5, int), ToolConfigParam("region")],
        state_reads=[ToolStateRead("user"), ToolStateRead("seen", [])],
        state_effects=[
            ToolStateEffect(key="found"),
            ToolStateEffect(key="notes", type_hint=list, merge="append",
                preserve_across_turns=True, prompt_template_var="NOTES"),
            ToolStateEffect(key="facts", merge="merge_dict"),
        ],
    )
"""

NOTES = "kept across turns; in the prompt as {{NOTES}}"


@pytest.fixture
def plugin(here, write_plugin):
    def write(contracts=CONTRACTS, manifest="contract: contracts:SEARCH\n"):
        return write_plugin(
            here / "plugins", "documents", manifest, tools=TOOLS, contracts=contracts
        )

    return write


@pytest.fixture
def show(run):
    def show(name="search"):
        result = run("show", name, "--run", "--kind", "tool", "--plugins", "plugins")
        assert result.exit_code == 0
        return [" ".join(line.split()) for line in result.stdout.splitlines()]

    return show


def test_each_tool_with_a_contract_is_a_line(run, plugin):
    plugin()
    result = run("list", "contracts", "--run", "--plugins", "plugins")
    _, line = result.stdout.splitlines()
    assert line.split(maxsplit=3) == [
        "search",
        "ok",
        "documents",
        "2 rules, 2 config keys, 2 reads, 3 effects",
    ]
    assert (result.exit_code, result.stderr) == (0, "1 contract\n")


@pytest.mark.parametrize("command", [["list", "contracts"], ["show", "search"], ["doctor"]])
def test_no_code_is_run_for_a_contract(run, plugin, command):
    folder = plugin()
    run(*command, "--plugins", "plugins")
    run("validate", "plugins")
    assert not (folder / "was-run").exists()


def test_that_there_is_none_is_said(run, plugin):
    plugin(manifest="active: true\n")
    result = run("list", "contracts", "--run", "--plugins", "plugins")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 contracts" in result.stderr
    assert (
        json.loads(run("list", "contracts", "--run", "--json", "--plugins", "plugins").stdout) == []
    )


def test_what_is_disabled_says_so(run, plugin):
    plugin()
    run("disable", "search", "--plugins", "plugins")
    _, line = run("list", "contracts", "--run", "--plugins", "plugins").stdout.splitlines()
    assert line.split()[:3] == ["search", "disabled", "documents"]


def test_a_contract_is_described_in_text(show, plugin):
    plugin()
    lines = show()
    assert lines[lines.index("contract 2 rules, 2 config keys, 2 reads, 3 effects") :] == [
        "contract 2 rules, 2 config keys, 2 reads, 3 effects",
        "description Find documents.[2J",
        "arguments query: string, ids: array",
        "rule exclusive: Give 'query' or 'ids'. (refuses the call)",
        "rule bundled: Bundled steps need a search. (corrects or drops the call)",
        "config most: 5 by default, normalized",
        "config region: no default",
        "reads user: required",
        "reads seen: default []",
        "writes found: dict that replaces the old value; cleared by a new turn",
        f"writes notes: list that is appended to the old value; {NOTES}",
        "writes facts: dict that is merged into the old value; cleared by a new turn",
        "",
    ]
    assert not any(line.startswith("contract") for line in show("plain"))


def test_without_run_it_is_said_that_a_contract_is_known_later(run, plugin):
    plugin()
    note = "unknown until the plugin's code is loaded (use --run)"
    listed = run("list", "contracts", "--plugins", "plugins")
    assert (listed.stdout, note in listed.stderr) == ("", True)
    assert note in run("show", "search", "--plugins", "plugins").stdout
    assert note in run("validate", "plugins").stderr
    plugin(manifest="active: true\n")
    assert note not in run("validate", "plugins").stderr


def test_a_long_list_reports_each_contract_in_words(run, plugin):
    plugin()
    result = run("list", "contracts", "--long", "--run", "--plugins", "plugins")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "search"
    assert "rule exclusive: Give 'query' or 'ids'. (refuses the call)" in lines


def test_with_run_a_plugin_is_held_to_what_its_contracts_say(run, plugin):
    folder = plugin(CONTRACTS.replace('"user"', '"query"'))
    assert run("validate", folder).exit_code == 0
    result = run("validate", folder, "--run")
    assert result.exit_code == 1
    assert "error[plugin-import-failed]" in result.stdout
    assert "'query' is also an argument" in result.stdout
    good = run("validate", plugin(), "--run")
    assert (good.exit_code, good.stdout) == (0, "")
    assert "tool search has a contract" in good.stderr


def test_a_contract_of_no_tool_is_an_error_of_its_author(run, plugin):
    folder = plugin(CONTRACTS.replace('"search",', '"serach",'))
    result = run("validate", folder / "toolkit.yaml", "--run")
    assert result.exit_code == 1
    assert "error[contract-tool-unknown]" in result.stdout
    assert "did you mean search?" in result.stdout
    assert "warning" in run("doctor", "--run", "--plugins", "plugins").stdout
