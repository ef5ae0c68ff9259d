"""Packages with a manifest: what they bring, and what of them is imported."""

import asyncio
import shutil
import sys
from textwrap import dedent

import pytest

from satchel.catalog.catalog_entries import Status
from satchel.importing.distributions import scan_distributions
from satchel.plugins.package_loading import load_package
from satchel.plugins.plugin_reading import read_package
from satchel.settings import Limits
from satchel.sources.package_scan import scan_packages

HOOKS = """
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
def acme(loaded, tmp_path, monkeypatch):
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
        installed = scan_distributions([str(site)]).findings
        (item,) = scan_packages(installed, Limits(), lambda _: True, {}).values()
        if not run:
            return read_package(item, (0,))
        loaded.append(load_package(item, (0,), Limits(hook=60)))
        return loaded[-1]

    yield acme
    for module in set(sys.modules) - before:
        if module.split(".")[0] == "acme":
            del sys.modules[module]
    sys.path[:] = [entry for entry in sys.path if not entry.startswith(str(tmp_path))]


def parts(manifest="", tools=TOOLS, plugin="", **others):
    results = {"toolkit.yaml": manifest, "tools.py": tools, "plugin.py": plugin, **others}
    return {name: text for name, text in results.items() if text is not None}


def names(things):
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
    assert (names(supply.groups), names(supply.tools)) == (["maps"], ["hello"])
    assert (names(supply.config), supply.skills[0][-12:]) == (["key"], "/acme/skills")
    assert (imported(), supply.state) == ([], Status.OK)


def test_a_manifest_may_have_its_own_version_and_description(acme):
    supply = acme(run=False, **parts("version: 2.5\ndescription: Its own.\n"))
    assert (supply.version, supply.description) == ("2.5", "Its own.")


def test_the_tools_of_the_manifest_are_imported_and_a_module_without_hooks_is_not(acme):
    supply = acme(**parts("active: true\n", plugin="raise SystemExit"))
    assert (names(supply.tools), say(supply)) == (["hello", "shout"], "Hello Ada")
    assert imported() == ["acme", "acme.helper", "acme.tools"]
    assert (supply.diagnostics, supply.groups[0].active) == ((), True)


def test_a_package_with_skills_and_notes_alone_is_never_imported(acme):
    supply = acme(**parts("notes: Mind it.\n", tools=None, plugin="raise SystemExit"))
    assert (imported(), supply.code, supply.state) == ([], None, Status.OK)
    assert (supply.groups[0].notes, supply.tools) == ("Mind it.", ())


def test_a_list_of_tools_may_name_several_modules(acme):
    manifest = "tools: [{name: greet, function: 'tools:hello'}, {function: 'other:plain'}]\n"
    supply = acme(**parts(manifest, **{"other.py": "def plain(): 'Plain.'\n"}))
    assert names(supply.tools) == ["greet", "plain"]


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
    supply = acme(**parts("active: true\n", plugin=HOOKS.format(tools=offered)))
    assert (names(supply.tools), supply.diagnostics) == (expected, ())


def test_another_tool_of_the_same_name_is_reported(acme):
    plugin = HOOKS.format(tools="other") + "def other(): 'x'\nother.__name__ = 'hello'\n"
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
    plugin = HOOKS.format(tools="") + GROUPS
    supply = acme(**parts("notes: Old.\ngroups: {maps: {}}\n", plugin=plugin))
    assert [(group.name, group.notes) for group in supply.groups] == [
        ("acme", "Old."),
        ("maps", ""),
        ("more", ""),
    ]


def test_a_manifest_that_says_nothing_adds_no_group_to_those_of_the_hooks(acme):
    plugin = "import satchel\n@satchel.hookimpl\n"
    plugin += "def satchel_groups():\n    return [satchel.Group(name='maps')]\n"
    assert names(acme(**parts("license: MIT\n", plugin=plugin)).groups) == ["maps"]


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
    assert (supply.sections, names(supply.tools)) == (("From a hook.",), ["hello", "shout"])
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
