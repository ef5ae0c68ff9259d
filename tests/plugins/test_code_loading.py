import asyncio
import json
import shutil
import subprocess
import sys
import time
from textwrap import dedent

import pytest

from satchel.catalog.catalog_entries import Status
from satchel.plugins import code_loading
from satchel.plugins.code_contribution import tools_of_modules
from satchel.settings import Limits
from satchel.sources.search_roots import Precedence

HOOKS = '''
import satchel

@satchel.tool
def hello(name: str) -> str:
    """Say hello."""
    return "Hello " + name

@satchel.hookimpl
def satchel_tools():
    return [hello]
'''


def names(supply):
    return [tool.name for tool in supply.tools]


# ---- reading a folder ---------------------------------------------------------------------


def test_a_folder_that_is_only_read_is_described_and_not_run(load, tmp_path, tool_source):
    supply = load(
        "version: 1.2.0\ndescription: A demo.\n",
        run=False,
        tools=tool_source + "\nraise SystemExit(3)",
    )
    assert (supply.name, supply.version, supply.description) == ("demo", "1.2.0", "A demo.")
    assert (supply.state, supply.code, supply.rank) == (Status.OK, None, (0,))
    assert supply.path == supply.unit == str(tmp_path / "demo")
    assert supply.skills == (str(tmp_path / "demo/skills"),)
    (tool,) = supply.tools
    assert (tool.name, tool.description, tool.tool) == ("hello", "Say hello.", None)
    assert tool.path == str(tmp_path / "demo/tools.py")


def test_a_folder_without_a_usable_manifest_is_listed_by_its_folder_name(load, codes):
    supply = load("groups: 7\n")
    assert (supply.name, supply.state, supply.groups) == ("demo", Status.FAILED, ())
    assert codes(supply) == ["plugin-field-type"]


# ---- importing a folder -------------------------------------------------------------------


def test_an_imported_tool_can_be_called(load, tool_source):
    supply = load(tools=tool_source)
    (offered,) = supply.tools
    assert asyncio.run(offered.tool.execute(name="you")) == "Hello you"
    assert supply.diagnostics == ()


def test_a_busy_machine_costs_no_plugin_its_tools(load, tool_source, monkeypatch):
    def slowly(*arguments):
        time.sleep(0.8)  # as if others had the processor
        return tools_of_modules(*arguments)

    monkeypatch.setattr(code_loading, "tools_of_modules", slowly)
    supply = load(limits=Limits(hook=0.5, plugin_import=60), tools=tool_source)
    assert (supply.state, names(supply)) == (Status.OK, ["hello"])


def test_a_folder_without_tools_brings_its_skills_alone(load, tmp_path):
    supply = load()
    assert (supply.tools, supply.state, supply.code) == ((), Status.OK, None)
    assert supply.skills == (str(tmp_path / "demo/skills"),)


@pytest.mark.parametrize("file", ["main.py", "main/__init__.py"])
def test_the_manifest_names_the_module_of_the_tools(load, tmp_path, tool_source, file):
    path = tmp_path / "demo" / file
    path.parent.mkdir(parents=True)
    path.write_text(tool_source)
    (tool,) = load("tools: main\n").tools
    assert (tool.name, tool.path) == ("hello", str(path))


def test_an_import_that_fails_is_reported_with_its_place(load, codes, tmp_path):
    supply = load(tools="\n1/0\n")
    (problem,) = supply.diagnostics
    assert (supply.state, supply.tools, supply.code) == (Status.FAILED, (), None)
    assert problem.code == "plugin-import-failed"
    assert str(problem.where) == f"{tmp_path / 'demo/tools.py'}:2"
    assert "ZeroDivisionError" in problem.message


def test_an_import_that_hangs_is_reported_with_its_limit(load):
    supply = load(
        limits=Limits(plugin_import=0.1), tools="import threading\nthreading.Event().wait(2)\n"
    )
    (problem,) = supply.diagnostics
    assert (problem.code, problem.fix) == (
        "plugin-import-timeout",
        "do the slow work inside a tool",
    )


def test_a_long_and_hidden_message_is_made_fit_to_print(load):
    (problem,) = load(tools="raise ValueError('x\\x1b[2J\\n' * 500)\n").diagnostics
    assert len(problem.message) == 500
    assert problem.message.isprintable()


def test_code_that_does_not_compile_is_reported_and_not_imported(load, codes):
    assert codes(load(tools="def f(:\n")) == ["plugin-syntax"]


CLASS = """
from satchel import Tool

class T(Tool):
    name, description, parameters = "x", "X.", {}
    %s

    async def execute(self):
        pass

bad = T()
"""
FLAWS = {
    "name": "from satchel import tool\n@tool(name='no good name')\ndef bad(): pass\n",
    "type": "from satchel import tool\nimport io\n@tool\ndef bad(x: io.BytesIO): pass\n",
    "no-name": CLASS % "name = None",
    "no-description": CLASS % "description = property()",
    "description": CLASS % "description = None",
    "group": CLASS % "group = 7",
    "keys": CLASS % "parameters = {1: 2, 'a': 3}",
    "schema": CLASS % "to_schema = None",
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_tool_that_cannot_be_described_costs_its_plugin_that_one_tool(
    load, codes, tool_source, flaw
):
    supply = load(tools=tool_source + FLAWS[flaw])
    assert names(supply) == ["hello"]
    assert (codes(supply), supply.state) == (["plugin-tool-invalid"], Status.DEGRADED)


def test_a_schema_that_leaves_the_process_fails_its_plugin(load, codes, tool_source):
    source = tool_source + CLASS % "def to_schema(self): raise SystemExit(3)"
    supply = load(tools=source)
    assert (codes(supply), supply.state, supply.code) == (
        ["plugin-tool-invalid"],
        Status.FAILED,
        None,
    )


def test_a_hook_has_its_time_although_pydantic_takes_long_to_import(tmp_path, write_plugin):
    tools = (
        "import sys, satchel\n@satchel.hookimpl\ndef satchel_tools():\n"
        "    assert 'pydantic' in sys.modules\n    return []\n"
    )
    write_plugin(tmp_path, "demo", "", tools=tools)
    script = (
        "from satchel import Satchel; from satchel.diagnostics import has_error\n"
        f"assert not has_error(Satchel(plugins=[{str(tmp_path)!r}]).catalog.diagnostics)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=60)


def test_a_schema_that_takes_forever_is_given_up(load):
    source = (
        "from satchel import Tool\nimport threading\nclass T(Tool):\n"
        "  name = description = 'x'\n  parameters = {}\n"
        "  async def execute(self): pass\n"
        "  def to_schema(self): threading.Event().wait(2)\nt = T()\n"
    )
    (problem,) = load(limits=Limits(hook=0.1), tools=source).diagnostics
    assert problem.code == "plugin-tool-invalid"
    # It waits, so not the limit for the processor ends it, but twelve times that on the clock.
    assert problem.message == "making the schemas of its tools took longer than 1.2 s (limit hook)"
    assert problem.fix.startswith("split a plugin of very many tools")


@pytest.mark.parametrize("run", [True, False])
def test_of_two_tools_of_one_name_in_one_plugin_the_first_counts(load, codes, run):
    source = (
        "from satchel import tool\n"
        "@tool(name='same')\ndef one():\n    'One.'\n"
        "@tool(name='same')\ndef two():\n    'Two.'\n"
    )
    supply = load(run=run, tools=source)
    assert [(tool.name, tool.description) for tool in supply.tools] == [("same", "One.")]
    assert codes(supply) == ["tool-shadowed"]


def test_what_importing_changed_in_the_process_is_reported(load, codes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    supply = load(tools="import os\nos.chdir('/')\n")
    assert codes(supply) == ["plugin-meddled"]
    assert supply.state is not Status.FAILED


def test_what_a_hook_of_a_package_changed_in_the_process_is_reported(
    package, codes, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    hook = "@satchel.hookimpl\ndef satchel_tools():\n    os.chdir('/')\n    return []\n"
    supply = package(f"import os, satchel\n{hook}")
    assert codes(supply) == ["plugin-meddled"]
    assert supply.state is not Status.FAILED


def test_a_patch_of_another_module_is_reported_as_it_is(load, monkeypatch):
    monkeypatch.setattr("json.dumps", json.dumps)
    supply = load(
        tools="import json\nold = json.dumps\njson.dumps = lambda *a, **k: old(*a, **k)\n"
    )
    (problem,) = supply.diagnostics
    assert problem.message == "loading it changed json.dumps, which stays so"


def test_a_tool_is_another_version_when_its_code_or_schema_changes(load, tool_source):
    first = load(tools=tool_source).tools[0].version
    moved = load(tools="\n\n# a comment\n" + tool_source).tools[0].version
    body = load(tools=tool_source.replace("Hello ", "Ahoy ")).tools[0].version
    schema = load(tools=tool_source.replace("name: str", "name: int")).tools[0].version
    assert first == moved
    assert len({first, body, schema}) == 3


# ---- the groups of a folder ---------------------------------------------------------------


def groups_of(supply):
    return [(group.name, group.active, group.tools) for group in supply.groups]


def test_a_plugin_is_a_group_of_its_own_name(load, tool_source):
    (group,) = load("description: A demo.\nnotes: Be kind.\n", tools=tool_source).groups
    assert (group.name, group.description, group.notes) == ("demo", "A demo.", "Be kind.")


def test_a_plugin_that_declares_groups_and_says_nothing_for_itself_has_only_those(load):
    supply = load("active: false\ngroups:\n  maps:\n    active: true\n    tools: [hello]\n")
    assert groups_of(supply) == [("maps", True, ("hello",))]


@pytest.mark.parametrize("word", ["active: true\n", "active: false\nnotes: Be kind.\n"])
def test_a_plugin_that_speaks_for_itself_has_its_own_group_first(load, word):
    supply = load(word + "groups:\n  maps:\n")
    assert [group.name for group in supply.groups] == ["demo", "maps"]


def test_a_plugin_that_describes_the_group_of_its_name_has_it_once(load):
    supply = load("active: true\ngroups:\n  maps:\n  demo:\n    description: Mine.\n")
    assert [group.name for group in supply.groups] == ["maps", "demo"]


def test_a_group_of_a_folder_lists_skills_and_requires_keys(load):
    manifest = "groups:\n  maps:\n    skills: [pdf, docx]\n    requires: [TOKEN]\n"
    (group,) = load(manifest).groups
    assert (group.skills, group.requires) == (("pdf", "docx"), ("TOKEN",))


@pytest.mark.parametrize("run", [True, False])
def test_a_tool_brings_along_the_groups_that_it_names(load, tool_source, run):
    source = tool_source.replace("@tool", "@tool(group=['maps', 'geo'])")
    (hello,) = load("groups:\n  maps:\n  geo:\n", run=run, tools=source).tools
    assert hello.groups == ("maps", "geo")


def test_a_group_that_lists_a_tool_which_is_not_there_says_so(load, codes, tool_source):
    supply = load("groups:\n  maps:\n    tools: [hello, absent]\n", tools=tool_source)
    assert codes(supply) == ["plugin-group-unknown"]
    assert "'absent'" in supply.diagnostics[0].message


# ---- packages -----------------------------------------------------------------------------


def test_a_package_that_is_only_read_is_listed_and_not_imported(package):
    supply = package("raise SystemExit(3)", run=False)
    assert (supply.name, supply.source, supply.version) == ("acme", "acme-tools", "1.0")
    assert (supply.scope, supply.description) == (Precedence.PLUGIN, "Sums up.")
    assert supply.unit == "acme-tools:acme"
    assert (supply.tools, supply.code) == ((), None)
    assert "acme_plugin" not in sys.modules


def test_a_package_brings_what_its_hooks_return(package, tmp_path):
    source = HOOKS + (
        "from satchel import Group\n"
        "@satchel.hookimpl\ndef satchel_groups():\n"
        "    return [Group(name='maps', tools=('hello', 'absent'))]\n"
        f"@satchel.hookimpl\ndef satchel_skill_folders():\n    return [{str(tmp_path)!r}]\n"
    )
    supply = package(source)
    assert (names(supply), groups_of(supply)) == (["hello"], [("maps", False, ("hello", "absent"))])
    assert supply.skills == (str(tmp_path),)
    assert [item.code for item in supply.diagnostics] == ["plugin-group-unknown"]


def test_a_package_without_groups_is_a_group_of_its_own_name(package):
    (group,) = package(HOOKS).groups
    assert (group.name, group.description) == ("acme", "Sums up.")


def test_a_package_whose_import_fails_is_reported(package, codes, tmp_path):
    supply = package("raise SystemExit(3)")
    assert (codes(supply), supply.state) == (["plugin-import-failed"], Status.FAILED)
    where = supply.diagnostics[0].where
    assert (where.path, where.line) == (str(tmp_path / "site" / "acme_plugin.py"), 1)


def test_hooks_of_a_package_that_raise_are_reported_with_their_line(package, tmp_path):
    supply = package("import satchel\n@satchel.hookimpl\ndef satchel_tools():\n    json.x()\n")
    where = supply.diagnostics[0].where
    assert (where.path, where.line) == (str(tmp_path / "site" / "acme_plugin.py"), 4)


@pytest.mark.parametrize(
    "hook",
    [
        "def satchel_tools():\n    raise SystemExit(3)",
        "def satchel_tools():\n    return 7",
        "def satchel_tool():\n    return []",
        "def satchel_skill_folders():\n    return ['skills']",
        "def satchel_groups():\n    return [satchel.Group(name=None)]",
    ],
    ids=["exits", "no-list", "unknown", "relative", "group"],
)
def test_a_package_whose_hooks_fail_is_reported_and_forgotten(package, codes, hook):
    supply = package(f"import satchel\n@satchel.hookimpl\n{hook}\n")
    assert (codes(supply), supply.state) == (["plugin-hook-failed"], Status.FAILED)
    assert "acme_plugin" not in sys.modules


@pytest.mark.parametrize("item", ["'text'", "7", "None", "int", "lambda x: x"])
def test_what_cannot_be_a_tool_costs_its_package_nothing_else(package, codes, item):
    supply = package(HOOKS.replace("[hello]", f"[{item}, hello]"))
    assert names(supply) == ["hello"]
    assert (codes(supply), supply.state) == (["plugin-tool-invalid"], Status.DEGRADED)


def test_a_package_may_bring_functions_and_tools(package):
    items = "[hello, satchel.FunctionTool(hello, name='made'), print_]"
    supply = package(HOOKS.replace("[hello]", items) + "def print_(text: str): pass\n")
    assert names(supply) == ["hello", "made", "print_"]


def test_a_hook_that_hangs_is_given_up(package, codes):
    source = (
        "import satchel, threading\n@satchel.hookimpl\n"
        "def satchel_tools():\n    threading.Event().wait(2)\n"
    )
    supply = package(source, limits=Limits(hook=0.1))
    assert codes(supply) == ["plugin-hook-failed"]
    assert "longer than 0.1 s" in supply.diagnostics[0].message


def test_an_entry_point_whose_name_cannot_be_used_is_not_imported(package, codes):
    supply = package("raise SystemExit(3)", name="no good name")
    assert (codes(supply), supply.state) == (["plugin-name-shape"], Status.FAILED)


def test_a_package_can_be_imported_again(package):
    first = package(HOOKS)
    second = package(HOOKS.replace("Hello ", "Ahoy, "))
    assert asyncio.run(first.tools[0].tool.execute(name="you")) == "Hello you"
    assert asyncio.run(second.tools[0].tool.execute(name="you")) == "Ahoy, you"


# ---- tools that the manifest chooses --------------------------------------------------------

TWO = """
from satchel import Tool, tool

@tool(name="first", group="own")
def one() -> str:
    "The first."
    return "one"

@tool
def broken(x: complex) -> str:
    "Nobody can describe it."
    return "broken"

class Made(Tool):
    name = "made"
    async def execute(self) -> str:
        return "made"

thing = Made()
"""
MORE = """
def plain(x: int) -> str:
    "A plain function."
    return f"plain {x}"
"""
CHOSEN = "tools:\n- first\n- made\n- {name: renamed, function: 'tools:thing'}\n"
CHOSEN += "- {name: simple, function: 'code.more:plain'}\n"


def test_a_manifest_chooses_tools_of_several_modules_and_names_them(load, codes, tmp_path):
    (tmp_path / "demo/code").mkdir(parents=True)
    (tmp_path / "demo/code/more.py").write_text(MORE)
    supply = load(CHOSEN, tools=TWO)
    assert codes(supply) == []
    assert names(supply) == ["first", "made", "renamed", "simple"]
    first, created, renamed, simple = supply.tools
    assert first.groups == ("own",)
    assert (created.tool.name, renamed.tool.name) == ("made", "renamed")
    assert renamed.tool is not created.tool
    assert simple.description == "A plain function."
    assert simple.path == str(tmp_path / "demo/code/more.py")
    assert list(simple.tool.parameters["properties"]) == ["x"]


def test_a_chosen_tool_that_is_not_there_costs_only_itself(load, codes):
    supply = load("tools: [first, gone, {function: 'tools:absent'}]\n", tools=TWO)
    assert names(supply) == ["first"]
    assert codes(supply) == ["plugin-group-unknown", "plugin-group-unknown"]
    assert "'gone'" in supply.diagnostics[0].message


def test_what_is_chosen_and_no_tool_is_reported(load, codes):
    supply = load("tools: [{name: x, function: 'tools:Made'}, first]\n", tools=TWO)
    assert names(supply) == ["first"]
    assert codes(supply) == ["plugin-tool-invalid"]


def test_a_declared_configuration_is_carried_along(load):
    for run in (True, False):
        supply = load("config: {api_key: {type: secret}}\n", run=run)
        assert [field.name for field in supply.config] == ["api_key"]


def test_what_asks_for_a_process_of_its_own_is_not_run_in_this_one(load, codes, tool_source):
    manifest = "active: true\nnotes: Mind.\nisolation: process\n"
    supply = load(manifest, tools=tool_source + "\nraise SystemExit\n")
    assert codes(supply) == ["plugin-not-isolated"]
    assert (supply.tools, supply.state, supply.code) == ((), Status.OK, None)
    assert supply.groups[0].notes == "Mind."


def test_what_asks_for_a_process_of_its_own_is_read_like_any_other(load, codes, tool_source):
    supply = load("isolation: process\n", run=False, tools=tool_source)
    assert (names(supply), codes(supply)) == (["hello"], [])


PACKAGE_HOOKS = """
import satchel
from acme.tools import hello, Loud

@satchel.hookimpl
def satchel_tools():
    return [{tools}]
"""

TOOLS = '''
import satchel
from satchel import tool
from acme.helper import WORD

@tool
def hello(name: str) -> str:
    """Say hello."""
    return WORD + " " + name

class Shout(satchel.Tool):
    name = "shout"
    description = "Shout."
    parameters = {"type": "object", "properties": {}}
    async def execute(self):
        return "HO"

Loud = Shout()
'''


@pytest.fixture
def acme(load_installed, tmp_path, monkeypatch):
    """Install the package `acme` of these files, and import what it needs."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    before = set(sys.modules)
    version = iter(range(1, 100))

    def acme(*, run=True, value="acme.plugin", editable=False, **files):
        root = tmp_path / "work" if editable else site
        folder = root / "acme"
        folder.mkdir(parents=True, exist_ok=True)
        sources = {"__init__.py": "", "helper.py": "WORD = 'Hello'", **files}
        for name, text in sources.items():
            (folder / name).write_text(dedent(text))
        info = site / "acme_tools-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Name: acme-tools\nVersion: 1.0\nSummary: Sums up.\n")
        (info / "entry_points.txt").write_text(f"[satchel.plugins]\nacme = {value}\n")
        record = [f"acme/{name},," for name in sources]
        if editable:
            (site / "_acme.pth").write_text(str(root))
            record = ["_acme.pth,,"]
        else:
            record.append(f"acme_tools-1.0.dist-info/x,,{next(version)}")
        (info / "RECORD").write_text("\n".join(record))
        return load_installed(site, run=run)

    yield acme
    for module in set(sys.modules) - before:
        if module.split(".")[0] == "acme":
            del sys.modules[module]
    sys.path[:] = [entry for entry in sys.path if not entry.startswith(str(tmp_path))]


def parts(manifest="", tools=TOOLS, plugin="", **others):
    results = {"toolkit.yaml": manifest, "tools.py": tools, "plugin.py": plugin, **others}
    return {name: text for name, text in results.items() if text is not None}


def item_names(things):
    return [item.name for item in things]


def say(supply, tool="hello"):
    (result,) = [item for item in supply.tools if item.name == tool]
    return asyncio.run(result.tool.execute(name="Ada"))


def imported():
    return sorted(name for name in sys.modules if name.split(".")[0] == "acme")


def test_reading_a_package_reports_all_that_its_manifest_does(acme):
    manifest = "groups: {maps: {tools: [hello], notes: Say it.}}\nconfig: {key: {type: secret}}\n"
    supply = acme(run=False, **parts(manifest))
    assert (supply.name, supply.version, supply.description) == ("acme", "1.0", "Sums up.")
    assert (item_names(supply.groups), item_names(supply.tools)) == (["maps"], ["hello"])
    assert (item_names(supply.config), supply.skills[0][-12:]) == (["key"], "/acme/skills")
    assert (imported(), supply.state) == ([], Status.OK)


def test_a_manifest_may_have_its_own_version_and_description(acme):
    supply = acme(run=False, **parts("version: 2.5\ndescription: Its own.\n"))
    assert (supply.version, supply.description) == ("2.5", "Its own.")


def test_the_tools_of_the_manifest_are_imported_and_a_module_without_hooks_is_not(acme):
    supply = acme(**parts("active: true\n", plugin="raise SystemExit"))
    assert (item_names(supply.tools), say(supply)) == (["hello", "shout"], "Hello Ada")
    assert imported() == ["acme", "acme.helper", "acme.tools"]
    assert (supply.diagnostics, supply.groups[0].active) == ((), True)


def test_a_package_with_skills_and_notes_alone_is_never_imported(acme):
    supply = acme(**parts("notes: Mind it.\n", tools=None, plugin="raise SystemExit"))
    assert (imported(), supply.code, supply.state) == ([], None, Status.OK)
    assert (supply.groups[0].notes, supply.tools) == ("Mind it.", ())


def test_a_list_of_tools_may_name_several_modules(acme):
    manifest = "tools: [{name: greet, function: 'tools:hello'}, {function: 'other:plain'}]\n"
    supply = acme(**parts(manifest, **{"other.py": "def plain(): 'Plain.'\n"}))
    assert item_names(supply.tools) == ["greet", "plain"]


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ("hello", ["hello", "shout"]),
        ("Loud, hello", ["hello", "shout"]),
        ("satchel.FunctionTool(hello)", ["hello", "shout"]),
        ("satchel.FunctionTool(hello, name='made')", ["hello", "shout", "made"]),
    ],
)
def test_a_tool_that_hooks_and_manifest_offer_counts_once(acme, offered, expected):
    supply = acme(**parts("active: true\n", plugin=PACKAGE_HOOKS.format(tools=offered)))
    assert (item_names(supply.tools), supply.diagnostics) == (expected, ())


def test_another_tool_of_the_same_name_is_reported(acme):
    plugin = PACKAGE_HOOKS.format(tools="other") + "def other(): 'x'\nother.__name__ = 'hello'\n"
    supply = acme(**parts("active: true\n", plugin=plugin))
    assert [item.code for item in supply.diagnostics] == ["tool-shadowed"]
    assert say(supply) == "Hello Ada", "the manifest's counts"


GROUPS = """
@satchel.hookimpl
def satchel_groups():
    return [satchel.Group(name="acme", description="By a hook.", notes="New."),
        satchel.Group(name="more", description="More.")]
"""


def test_of_two_groups_of_one_name_that_of_the_manifest_counts(acme):
    plugin = PACKAGE_HOOKS.format(tools="") + GROUPS
    supply = acme(**parts("notes: Old.\ngroups: {maps: {}}\n", plugin=plugin))
    assert [(group.name, group.notes) for group in supply.groups] == [
        ("acme", "Old."),
        ("maps", ""),
        ("more", ""),
    ]


def test_a_manifest_that_says_nothing_adds_no_group_to_those_of_the_hooks(acme):
    plugin = "import satchel\n@satchel.hookimpl\n"
    plugin += "def satchel_groups():\n    return [satchel.Group(name='maps')]\n"
    assert item_names(acme(**parts("license: MIT\n", plugin=plugin)).groups) == ["maps"]


def test_folders_of_skills_of_both_are_searched_each_once(acme, tmp_path):
    own, other = tmp_path / "site" / "acme" / "skills", tmp_path / "other"
    plugin = "import satchel\n@satchel.hookimpl\n"
    plugin += f"def satchel_skill_folders():\n    return [{str(own)!r}, {str(other)!r}]\n"
    assert acme(**parts("active: true\n", plugin=plugin)).skills == (str(own), str(other))


def test_a_broken_manifest_fails_the_plugin_without_importing_it(acme):
    supply = acme(**parts("groups: 7\n", plugin="raise SystemExit"))
    assert (supply.state, imported()) == (Status.FAILED, [])
    assert supply.diagnostics[0].where.path.endswith("acme/toolkit.yaml")


def test_a_tools_module_that_fails_fails_the_plugin(acme):
    supply = acme(**parts("active: true\n", tools="raise SystemExit(3)"))
    assert [item.code for item in supply.diagnostics] == ["plugin-import-failed"]
    assert (supply.state, imported()) == (Status.FAILED, [])


def test_an_edit_of_a_helper_is_imported_again_beside_the_old_version(acme):
    old = acme(editable=True, **parts("active: true\n"))
    new = acme(editable=True, **parts("active: true\n", **{"helper.py": "WORD = 'Howdy'"}))
    assert (say(old), say(new)) == ("Hello Ada", "Howdy Ada")


def test_an_edit_of_the_manifest_alone_shares_the_modules(acme):
    old = acme(editable=True, **parts("active: true\n"))
    new = acme(editable=True, **parts("notes: Mind it.\n"))
    assert old.digest != new.digest
    assert old.tools[0].tool.fn is new.tools[0].tool.fn


def test_a_failed_edit_leaves_the_version_that_worked(acme):
    old = acme(editable=True, **parts("active: true\n"))
    modules = {name: sys.modules[name] for name in imported()}
    assert (
        acme(editable=True, **parts("active: true\n", **{"helper.py": "("})).state is Status.FAILED
    )
    assert {name: sys.modules[name] for name in imported()} == modules
    assert say(old) == "Hello Ada"


def test_a_package_that_depends_on_another_continues_when_that_one_is_edited(acme, tmp_path):
    acme(editable=True, **parts("active: true\n"))
    dependent = tmp_path / "site" / "acme_user.py"
    dependent.write_text("import acme.helper\ndef word(): return acme.helper.WORD\n")
    import acme_user

    acme(editable=True, **parts("active: true\n", **{"helper.py": "WORD = 'Howdy'"}))
    assert sys.modules["acme_user"] is acme_user
    assert acme_user.word() == "Hello", "it holds what it imported"
    del sys.modules["acme_user"]


def test_what_becomes_editable_no_longer_runs_what_was_installed(acme, tmp_path):
    old = acme(**parts("active: true\n"))
    shutil.rmtree(tmp_path / "site" / "acme")
    new = acme(editable=True, **parts("active: true\n", **{"helper.py": "WORD = 'Howdy'"}))
    assert (say(old), say(new)) == ("Hello Ada", "Howdy Ada")


STARTED = """
import satchel
@satchel.hookimpl
def satchel_prompt_sections():
    return ["From a hook."]
"""


def test_the_tools_module_of_a_manifest_is_asked_for_hooks(acme):
    supply = acme(**parts("active: true\n", tools=TOOLS + STARTED, plugin="raise SystemExit"))
    assert (supply.sections, item_names(supply.tools)) == (("From a hook.",), ["hello", "shout"])
    assert "acme.plugin" not in imported()


def test_an_entry_point_that_is_the_tools_module_is_asked_once(acme):
    supply = acme(value="acme.tools", **parts("active: true\n", tools=TOOLS + STARTED))
    assert (supply.sections, supply.diagnostics) == (("From a hook.",), ())


def test_hooks_that_an_entry_point_takes_from_a_module_beside_it_are_called(acme):
    plugin = "from .hooks import *\n"
    supply = acme(**parts("active: true\n", plugin=plugin, **{"hooks.py": STARTED}))
    assert supply.sections == ("From a hook.",)


def test_a_version_whose_hook_fails_leaves_the_one_before_its_modules(acme):
    source = "import satchel\nfrom acme import helper\n@satchel.hookimpl\n"
    tool = (
        "def satchel_tools():\n    def late():\n        'Late.'\n        from acme import helper\n"
    )
    tool += "        return helper.WORD\n    return [late]\n"
    files = {"toolkit.yaml": "active: true\n", "plugin.py": source + tool}
    old = acme(**files)
    bad = acme(
        **files | {"plugin.py": source + "def satchel_tools(): 1/0\n", "helper.py": "WORD = 2"}
    )
    assert ([item.code for item in bad.diagnostics], bad.state) == (
        ["plugin-hook-failed"],
        Status.FAILED,
    )
    assert asyncio.run(old.tools[0].tool.execute()) == "Hello"
