"""The modules of contracts that a manifest names; none of their code is run."""

import pytest

from satchel.importing.distributions import scan_distributions
from satchel.settings import Limits
from satchel.sources.package_scan import scan_packages
from satchel.sources.plugin_scan import scan_plugins

TOOLS = """
    raise SystemExit(3)
    from satchel import ToolContract, hookimpl, tool

    @tool
    def look(city: str) -> str:
        "Look."

    @tool
    def ring(times: int) -> str:
        "Ring."
"""
RULES = """
    raise SystemExit(3)
    from satchel import ToolContract
    LOOK = ToolContract(name="look", schema={}, description="Look far.")
    RING = ToolContract(name="ring", schema={}, description="Ring loud.")
"""


@pytest.fixture
def read(tmp_path, plugin_place, limits, write_plugin):
    """Write the plugin `demo` and read it; its problems are told with their lines."""

    def read(manifest, before=None, **modules):
        write_plugin(tmp_path, "demo", manifest, **modules)
        return scan_plugins(plugin_place(tmp_path), limits, before).findings["demo"]

    return read


def problems(result):
    """What is wrong, but for contracts that nobody brings."""
    return [
        (item.code, item.where.path.rpartition("/")[2], item.where.line)
        for item in result.diagnostics
        if item.code != "contract-unused"
    ]


def test_a_module_of_contracts_must_be_there(read):
    result = read(
        "active: true\ncontract:\n- rules:LOOK\n- gone.far:RING\n", tools=TOOLS, rules=RULES
    )
    assert problems(result) == [("plugin-field-type", "toolkit.yaml", 5)]
    assert "there is no gone/far.py" in result.diagnostics[0].message
    assert not result.is_valid


def test_the_contracts_of_a_module_are_not_read(read):
    result = read("contract: rules:LOKO\n", tools=TOOLS + RULES, rules=RULES)
    assert result.diagnostics == ()
    assert (result.modules, result.contract_modules) == (("tools",), ("rules",))


def test_an_installed_package_names_its_contracts_too(install, site):
    package = site / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")
    (package / "toolkit.yaml").write_text("contract: rules:LOOK\n")
    (package / "tools.py").write_text("from satchel import tool\n@tool\ndef hear(): 'Hear.'\n")
    (package / "rules.py").write_text("raise SystemExit")
    files = [f"acme/{path.name}" for path in package.iterdir()]
    install(site, points="[satchel.plugins]\nacme = acme\n", files=files)
    installed = scan_distributions([str(site)]).findings
    (item,) = scan_packages(installed, Limits(), lambda _: True, {}).values()
    assert item.part.diagnostics == ()
    assert (item.modules, item.contract_modules) == (
        {"tools": "acme.tools"},
        {"rules": "acme.rules"},
    )
