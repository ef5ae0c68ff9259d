"""The contracts of a plugin's tools as its files declare them; none of its code is run."""

from textwrap import dedent

import pytest

from satchel.diagnostics import RULES as RULES_OF_CODES
from satchel.errors import DefinitionError
from satchel.settings import Limits
from satchel.sources import scan_plugins
from satchel.sources.distributions import scan_distributions
from satchel.sources.package_scan import scan_packages

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
HOOK = TOOLS + "\n    @hookimpl\n    def satchel_contracts():\n        return [C]\n"
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


def told(found):
    return [(contract.tool, contract.description) for contract in found.contracts]


def problems(found):
    """What is wrong, but for contracts that nobody brings."""
    return [
        (item.code, item.where.path.rpartition("/")[2], item.where.line)
        for item in found.diagnostics
        if item.code != "contract-unused"
    ]


def unused(found):
    """The contracts that nobody brings, each by its module and name."""
    items = [item for item in found.diagnostics if item.code == "contract-unused"]
    assert all(item.where.line for item in items)
    return [item.fix.rpartition(" ")[2] for item in items]


def test_the_contracts_that_the_manifest_names_count(read, tmp_path):
    found = read("contract: [rules:LOOK, rules:RING]\n", tools=TOOLS, rules=RULES)
    assert told(found) == [("look", "Look far."), ("ring", "Ring loud.")]
    assert found.diagnostics == ()
    assert found.contracts[0].path == str(tmp_path / "demo/rules.py")
    assert (found.modules, found.contract_modules) == (("tools",), ("rules",))


def test_a_contract_that_nobody_names_does_not_count(read):
    found = read("contract: rules:LOOK\n", tools=TOOLS + RULES, rules=RULES)
    assert told(found) == [("look", "Look far.")]
    assert problems(found) == []
    assert unused(found) == ["rules:RING", "tools:LOOK", "tools:RING"]
    item = found.diagnostics[0]
    assert (item.where.path.rpartition("/")[2], item.where.line) == ("rules.py", 5)
    assert item.fix == "name it under 'contract:' in toolkit.yaml, as rules:RING"
    assert (item.severity, RULES_OF_CODES["contract-unused"].strict) == ("warning", "error")
    assert found.is_sound


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("MINE = A", ["rules:B", "rules:C"]),
        ("MINE = ALSO = A", ["rules:B", "rules:C"]),
        ("ALSO = B\nMINE = ALSO", ["rules:A", "rules:C"]),
        ("MINE = [A, B]", ["rules:C"]),
        ("MINE = [A]\nMINE.append(B)", ["rules:C"]),
        ("MINE = [A]\nMINE += (B,)", ["rules:C"]),
        ("if B:\n    MINE = [A]", ["rules:B", "rules:C"]),
        ("MINE = [it for it in (A, B)]", ["rules:C"]),
        ("MINE = [*table().values()]\ndef table(): return {'a': A, 'c': C}", ["rules:B"]),
        ("MINE = replace(C, name='look')\nOTHER = [A, MINE]", ["rules:A", "rules:B"]),
        (
            "MINE = ToolContract(name='ring', schema={}, description='R.')",
            ["rules:A", "rules:B", "rules:C"],
        ),
        (
            "MINE = make()\nOTHERS = [ToolContract(name='x', schema={}, description='X.')]",
            ["*", "rules:OTHERS"],
        ),
    ],
)
def test_a_contract_is_used_through_whatever_the_manifest_names(read, rules, left):
    source = "from satchel import ToolContract\n" + "".join(
        f"{name} = ToolContract('look', {{}}, 'L.')\n" for name in "ABC"
    )
    found = read("contract: rules:MINE\n", tools=TOOLS, rules=source + rules)
    every = ["rules:A", "rules:B", "rules:C"]
    assert unused(found) == [it for name in left for it in (every if name == "*" else [name])]


@pytest.mark.parametrize(
    ("tools", "left"),
    [
        ("from .rules import LOOK as MINE", ["rules:RING"]),
        ("from .rules import LOOK as MINE, RING", ["rules:RING"]),
        ("from acme.rules import LOOK as MINE", ["rules:RING"]),
        ("from . import rules\nMINE = rules.LOOK", []),
        ("import acme.rules as rules\nMINE = rules.LOOK", []),
        (
            "def made():\n    from .rules import RING\n    return RING\nMINE = made()",
            ["rules:LOOK"],
        ),
    ],
)
def test_a_contract_is_used_where_it_is_imported(read, tools, left):
    manifest = "contract: [tools:MINE, rules:OTHER]\n"
    rules = dedent(RULES) + "OTHER = make()\n"
    found = read(manifest, tools=f"from satchel import tool\n{tools}\n", rules=rules)
    assert unused(found) == left


@pytest.mark.parametrize(
    "line",
    [
        "from .rules import LOOK, RING",
        "from .rules import *",
        "from . import rules",
        "def f():\n        from .rules import LOOK, RING",
    ],
)
def test_a_contract_that_a_module_with_a_hook_holds_or_imports_is_not_unused(read, line):
    manifest = "contract: rules:OTHER\n"
    rules = dedent(RULES) + "OTHER = make()\n"
    assert unused(read(manifest, tools=f"    {line}\n{HOOK}", rules=rules)) == []
    assert unused(read(manifest, tools=HOOK, rules=rules)) == ["rules:LOOK", "rules:RING"]
    hooks = f"    {line}\n    def satchel_contracts(): ..."
    beside = f"    from .hooks import *\n{TOOLS}"
    assert unused(read(manifest, tools=beside, rules=rules, hooks=hooks)) == []


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{'x': 'itn - a'}", "contract 'look', field 'x': 'itn' is no type of the short form"),
        ("{'x': \"int = 'five'\"}", "contract 'look', field 'x': the default 'five' is no int"),
        ("{'x': {'type': 'string'}}", "contract 'look': its field 'x' is dict, not text"),
        ("{'$ref': '#/$defs/Gone'}", "contract 'look': its parameters are no JSON Schema that"),
        (
            "{'properties': {'x': {'type': 'strin'}}}",
            "contract 'look': its parameters are no JSON Schema that can be used",
        ),
        (
            "{'$ref': '#/$defs/A', '$defs': {'A': {'type': 'array'}}}",
            "contract 'look': its schema is not of type object",
        ),
        ("{'properties': {'x': {'enum': [b'y']}}}", "contract 'look': its schema cannot be"),
    ],
)
def test_a_schema_of_which_no_contract_can_be_made_is_told_with_its_line(read, schema, message):
    rules = f"from satchel import ToolContract\nLOOK = ToolContract('look', {schema}, 'Far.')\n"
    found = read("contract: rules:LOOK\n", tools=TOOLS, rules=rules)
    assert problems(found) == [("contract-invalid", "rules.py", 2)]
    assert found.diagnostics[0].message.startswith(message)
    assert not found.is_sound
    with pytest.raises(DefinitionError) as caught:
        exec(rules)
    assert found.diagnostics[0].fix == caught.value.fix


@pytest.mark.parametrize("schema", ["{'x': KIND}", "make()", "Model", "{'x': 'int'}"])
def test_a_schema_that_is_sound_or_that_only_the_code_can_tell_is_no_problem(read, schema):
    rules = f"from satchel import ToolContract\nLOOK = ToolContract('look', {schema}, 'Far.')\n"
    assert read("contract: rules:LOOK\n", tools=TOOLS, rules=rules).diagnostics == ()


@pytest.mark.parametrize("depth", [50, 100, 250, 300, 1_000])
def test_a_schema_that_is_nested_very_deeply_is_read_without_harm(read, depth):
    names = "".join(f"N{at} = {{'items': N{at + 1}}}\n" for at in range(depth))
    rules = f"""from satchel import ToolContract
LOOK = ToolContract('look', {{'type': 'object', 'properties': {{'x': N0}}}}, 'Far.')
{names}N{depth} = {{}}
"""
    found = read("contract: rules:LOOK\n", tools=TOOLS, rules=rules)
    assert {code for code, _, _ in problems(found)} <= {"contract-invalid"}


def test_a_tool_of_a_list_names_its_own_contract(read):
    manifest = "tools:\n- {name: look, contract: rules:LOOK}\n- ring\n"
    found = read(manifest, tools=TOOLS, rules=RULES)
    assert told(found) == [("look", "Look far.")]
    assert [tool.name for tool in found.declared] == ["look", "ring"]


def test_the_tool_of_a_contract_may_be_told_by_the_manifest_alone(read):
    rules = RULES.replace('"look"', "NAME").replace('"ring"', "NAME")
    manifest = "contract: rules:RING\ntools: [{name: look, contract: rules:LOOK}, ring]\n"
    found = read(manifest, tools=TOOLS, rules=rules)
    assert [(it.tool, it.unread) for it in found.contracts] == [("look", ("name",))]
    assert found.diagnostics == ()


def test_with_a_hook_the_contracts_of_the_modules_of_tools_count(read):
    hooked = read("", tools=HOOK + RULES, rules=RULES)
    assert told(hooked) == [("look", "Look far."), ("ring", "Ring loud.")]
    assert told(read("", tools=TOOLS + RULES)) == []


def test_what_the_manifest_names_and_a_hook_returns_counts_once(read):
    found = read("contract: tools:RING\n", tools=HOOK + RULES)
    assert told(found) == [("ring", "Ring loud."), ("look", "Look far.")]
    assert found.diagnostics == ()


@pytest.mark.parametrize(
    "line",
    [
        "from .rules import LOOK, RING",
        "from .rules import LOOK as A, RING as B",
        "from .rules import *",
        "from . import rules",
        "from . import rules as all_of_them",
    ],
)
def test_with_a_hook_what_they_import_from_beside_them_counts_too(read, line):
    found = read("", tools=f"    {line}\n{HOOK}", rules=RULES)
    assert told(found) == [("look", "Look far."), ("ring", "Ring loud.")]
    assert found.diagnostics == ()


def test_a_list_that_they_import_counts_and_what_they_do_not_import_does_not(read):
    rules = RULES.replace("LOOK = ", "LISTED = [").replace('far.")', 'far.")]')
    found = read("", tools=f"    from .rules import LISTED\n{HOOK}", rules=rules)
    assert told(found) == [("look", "Look far.")]


def test_in_a_package_of_modules_an_import_is_relative_to_it(read, tmp_path):
    inner = tmp_path / "demo/inner"
    inner.mkdir(parents=True)
    (inner / "rules.py").write_text(dedent(RULES))
    (inner / "__init__.py").write_text(dedent(f"    from .rules import LOOK\n{HOOK}"))
    (inner / "api.py").write_text(dedent(f"    from .rules import RING\n{HOOK}"))
    assert told(read("tools: inner\n")) == [("look", "Look far.")]
    assert told(read("tools: inner.api\n")) == [("ring", "Ring loud.")]


def test_the_manifest_may_name_a_contract_where_it_is_imported(read):
    manifest = "contract: tools:MINE\n"
    found = read(manifest, tools=f"    from .rules import LOOK as MINE\n{TOOLS}", rules=RULES)
    assert told(found) == [("look", "Look far.")]


def test_of_two_contracts_for_one_tool_the_first_counts(read):
    rules = RULES + '    AGAIN = ToolContract(name="look", schema={}, description="Look again.")\n'
    found = read("contract: [rules:AGAIN, rules:LOOK]\n", tools=TOOLS, rules=rules)
    assert told(found) == [("look", "Look again.")]
    assert problems(found) == [("contract-shadowed", "rules.py", 4)]
    assert found.is_sound


def test_a_contract_of_no_tool_of_the_plugin_is_told_with_what_was_meant(read):
    rules = RULES.replace('"look"', '"lok"').replace('"ring"', '"xyz"')
    found = read("contract: [rules:LOOK, rules:RING]\n", tools=TOOLS, rules=rules)
    assert (found.contracts, found.is_sound) == ((), True)
    assert problems(found) == [
        ("contract-tool-unknown", "rules.py", 4),
        ("contract-tool-unknown", "rules.py", 5),
    ]
    assert [it.fix for it in found.diagnostics] == ["did you mean look?", "correct the name"]


@pytest.mark.parametrize(
    "source",
    [
        TOOLS + "\n    ring2 = make()\n",
        TOOLS + "\n    from elsewhere import *\n",
        TOOLS + "\n    @hookimpl\n    def satchel_tools(): ...\n",
    ],
)
def test_a_tool_that_the_code_may_make_when_it_runs_is_not_called_unknown(read, source):
    rules = RULES.replace('"ring"', '"ring2"')
    assert problems(read("contract: rules:RING\n", tools=source, rules=rules)) == []


def test_a_tool_that_is_not_among_the_chosen_is_unknown_whatever_the_code_makes(read):
    found = read("tools: [look]\ncontract: rules:RING\n", tools=TOOLS, rules=RULES)
    assert problems(found) == [("contract-tool-unknown", "rules.py", 5)]


def test_a_module_of_contracts_must_be_there(read):
    found = read(
        "active: true\ncontract:\n- rules:LOOK\n- gone.far:RING\n", tools=TOOLS, rules=RULES
    )
    assert problems(found) == [("plugin-field-type", "toolkit.yaml", 5)]
    assert "there is no gone/far.py" in found.diagnostics[0].message
    assert not found.is_sound


def test_a_name_that_its_module_does_not_hold_is_an_error(read):
    found = read("contract: rules:LOKO\n", tools=TOOLS, rules=RULES)
    assert problems(found) == [("contract-invalid", "toolkit.yaml", 2)]
    assert not found.is_sound


@pytest.mark.parametrize("line", ["MADE = make()", "from elsewhere import MADE", "def MADE(): ..."])
def test_a_contract_that_only_running_the_code_can_tell_is_no_error(read, line):
    found = read("contract: rules:MADE\n", tools=TOOLS, rules=line)
    assert (found.contracts, found.diagnostics) == ((), ())


def test_a_tool_that_names_the_contract_of_another_is_told(read):
    manifest = "tools:\n- {name: look, contract: rules:RING}\n- ring\n"
    found = read(manifest, tools=TOOLS, rules=RULES)
    assert problems(found) == [("contract-invalid", "toolkit.yaml", 3)]
    assert found.diagnostics[0].message == "'contract' of 'look' names that of 'ring'"


def test_what_is_wrong_in_a_contract_is_told_wherever_the_plugin_brings_it(read):
    bad = "from satchel import ToolContract\nC = ToolContract(name='a b', schema={}, description='F.')\n"
    assert problems(read("", tools=bad)) == [("contract-invalid", "tools.py", 2)]
    named = read("contract: rules:C\n", tools=TOOLS, rules=bad)
    assert problems(named)[0] == ("contract-invalid", "rules.py", 2)
    assert read("", tools=TOOLS, rules=bad).diagnostics == ()


def test_code_that_does_not_compile_is_told_once(read):
    found = read("contract: tools:LOOK\n", tools="def f(:")
    assert problems(found) == [("plugin-syntax", "tools.py", 1)]


def test_an_edit_of_a_rule_is_seen(read, plugin_place, tmp_path, limits):
    first = read("contract: rules:LOOK\n", tools=TOOLS, rules=RULES)
    scan = scan_plugins(plugin_place(tmp_path), limits)
    (tmp_path / "demo/rules.py").write_text("from satchel import ToolContract\nLOOK = make()\n")
    second = scan_plugins(plugin_place(tmp_path), limits, scan).findings["demo"]
    assert told(first) == [("look", "Look far.")]
    assert told(second) == []
    assert first.digest != second.digest


def test_an_open_plugin_names_its_contracts_beside_its_tools(tmp_path, plugin_place, limits):
    folder = tmp_path / "demo"
    ours = folder / "dev.satchel"
    ours.mkdir(parents=True)
    schema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    (folder / "plugin.json").write_text(f'{{"$schema": "{schema}", "name": "demo"}}')
    (ours / "toolkit.yaml").write_text("contract: rules:LOOK\n")
    (ours / "tools.py").write_text("from satchel import tool\n@tool\ndef look(): 'Look.'\n")
    (ours / "rules.py").write_text(
        "import satchel\nLOOK = satchel.ToolContract(name='look', schema={}, description='L.')\n"
    )
    found = scan_plugins(plugin_place(tmp_path), limits).findings["demo"]
    assert found.diagnostics == ()
    assert told(found) == [("look", "L.")]


def test_an_installed_package_names_its_contracts_too(install, site):
    package = site / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")
    (package / "toolkit.yaml").write_text("contract: rules:LOOK\n")
    (package / "tools.py").write_text("from satchel import tool\n@tool\ndef hear(): 'Hear.'\n")
    (package / "rules.py").write_text(
        "import satchel\nLOOK = satchel.ToolContract(name='hear', schema={}, description='H.')\n"
    )
    files = [f"acme/{path.name}" for path in package.iterdir()]
    install(site, points="[satchel.plugins]\nacme = acme\n", files=files)
    installed = scan_distributions([str(site)]).findings
    (found,) = scan_packages(installed, Limits(), lambda _: True, {}).values()
    assert told(found.part) == [("hear", "H.")]
    assert (found.modules, found.contract_modules) == (
        {"tools": "acme.tools"},
        {"rules": "acme.rules"},
    )


def test_an_entry_point_may_bring_the_tool_of_a_contract(install, site):
    package = site / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "toolkit.yaml").write_text("contract: rules:LOOK\n")
    (package / "rules.py").write_text(
        "import satchel\nLOOK = satchel.ToolContract(name='hear', schema={}, description='H.')\n"
    )
    files = [f"acme/{path.name}" for path in package.iterdir()]
    install(site, points="[satchel.plugins]\nacme = acme\n", files=files)
    installed = scan_distributions([str(site)]).findings
    (found,) = scan_packages(installed, Limits(), lambda _: True, {}).values()
    assert (found.part.contracts, found.part.diagnostics) == ((), ())
