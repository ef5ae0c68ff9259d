"""The contracts of tools: read with a plugin, and their modules imported with it."""

import sys
from textwrap import dedent

import pytest

from satchel.catalog.catalog_entries import Status

TOOLS = """
    from satchel import tool

    @tool
    def look() -> str:
        "Look."

    @tool
    def ring() -> str:
        "Ring."
"""
RULES = """
    from satchel import ToolContract, hookimpl, tool

    LOOK = ToolContract(name="look", schema={}, description="Look far.")

    @tool
    def extra() -> str:
        "A tool in a module of contracts."

    @hookimpl
    def satchel_prompt_sections():
        return ["Nobody asks for this."]
"""


def names(supply):
    return [tool.name for tool in supply.tools]


@pytest.fixture
def acme(load_installed, tmp_path, monkeypatch):
    """Install the package `acme` of these modules and read it, or import what it needs."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)

    def acme(manifest, *, run, **modules):
        folder = site / "acme"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "toolkit.yaml").write_text(manifest)
        for name, source in modules.items():
            (folder / f"{name}.py").write_text(dedent(source))
        info = site / "acme-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: acme\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[satchel.plugins]\nacme = acme\n")
        record = [f"acme/{path.name},," for path in folder.iterdir()]
        (info / "RECORD").write_text("\n".join(record))
        return load_installed(site, run=run)

    yield acme
    for module in [name for name in sys.modules if name.split(".")[0] == "acme"]:
        del sys.modules[module]


def test_a_plugin_that_is_only_read_has_no_contracts_yet(load):
    supply = load("contract: rules:LOOK\n", run=False, tools=TOOLS, rules="raise SystemExit")
    assert [(tool.name, tool.contract) for tool in supply.tools] == [("look", None), ("ring", None)]
    assert supply.diagnostics == ()


def test_a_contract_that_cannot_be_made_fails_the_plugin(load, codes):
    bad = RULES.replace('"look"', '"look up"')
    supply = load("contract: rules:LOOK\n", tools=TOOLS, rules=bad)
    assert (supply.state, codes(supply)) == (Status.FAILED, ["plugin-import-failed"])


def test_a_contract_for_a_tool_that_nothing_names_is_reported(load):
    rules = RULES + '\n    RING = ToolContract(name="ring", schema={}, description="Ring loud.")\n'
    supply = load("contract: rules:LOOK\n", tools=TOOLS, rules=rules)
    (item,) = supply.diagnostics
    assert item.code == "contract-unused"
    assert item.fix == "name it under 'contract:' in toolkit.yaml, as rules:RING"
    assert [bool(tool.contract) for tool in supply.tools] == [True, False]


def test_a_module_of_contracts_is_imported_and_brings_nothing_else(load):
    supply = load("contract: rules:LOOK\n", tools=TOOLS, rules=RULES)
    assert names(supply) == ["look", "ring"]
    assert (supply.sections, supply.diagnostics) == ((), ())
    assert vars(supply.code.modules["rules"])["LOOK"].name == "look"


def test_hooks_are_asked_without_the_modules_of_contracts(load):
    hook = "\n    import satchel\n    @satchel.hookimpl\n    def satchel_tools(): return []\n"
    supply = load("contract: rules:LOOK\n", tools=TOOLS + hook, rules=RULES)
    assert (names(supply), supply.sections) == (["look", "ring"], ())


def test_a_module_may_hold_both_tools_and_contracts(load):
    supply = load("contract: tools:LOOK\n", tools=TOOLS + RULES)
    assert names(supply) == ["look", "ring", "extra"]
    assert list(supply.code.modules) == ["tools"]


def test_a_module_of_contracts_that_raises_fails_the_plugin(load, codes):
    supply = load("contract: rules:LOOK\n", tools=TOOLS, rules="LOOK = 1 / 0\n")
    assert (supply.state, supply.tools) == (Status.FAILED, ())
    assert codes(supply) == ["plugin-import-failed"]


def test_the_modules_of_contracts_of_a_package_are_imported_with_it(acme):
    supply = acme("contract: rules:LOOK\n", run=True, tools=TOOLS, rules=RULES)
    assert (names(supply), supply.sections) == (["look", "ring"], ())
    assert vars(supply.code.modules["acme.rules"])["LOOK"].name == "look"


@pytest.mark.parametrize("module", ["rules", "tools"])
def test_a_package_binds_its_tools_to_the_contracts_that_its_manifest_names(acme, module):
    sources = {"tools": TOOLS, "rules": "", module: (TOOLS if module == "tools" else "") + RULES}
    supply = acme(f"contract: {module}:LOOK\n", run=True, **sources)
    look = next(tool for tool in supply.tools if tool.name == "look")
    assert (look.contract.name, look.tool.description) == ("look", "Look far.")
    assert supply.diagnostics == ()


def test_a_package_names_contracts_and_returns_others_by_its_hook(acme):
    hook = """
    from satchel import ToolContract, hookimpl

    @hookimpl
    def satchel_contracts():
        return [ToolContract(name="ring", schema={}, description="Ring far.")]
"""
    supply = acme("contract: rules:LOOK\n", run=True, tools=TOOLS + hook, rules=RULES)
    assert {tool.name: tool.description for tool in supply.tools} == {
        "look": "Look far.",
        "ring": "Ring far.",
    }
    assert supply.diagnostics == ()


def test_a_package_whose_contract_is_none_fails(acme, codes):
    supply = acme("contract: rules:LOOK\n", run=True, tools=TOOLS, rules="LOOK = 7\n")
    assert "contract-invalid" in codes(supply)
    assert supply.state is not Status.OK
