"""Installed packages: known before they are used, and kept current while edited."""

import asyncio
import sys

import pytest

from satchel import Satchel
from satchel.catalog.catalog_entries import Status

MANIFEST = "notes: Mind it.\nactive: true\ngroups: {maps: {}}\nconfig: {key: {default: a}}\n"
TOOLS = """
from satchel import tool
from acme.words import WORD

@tool(state=["key"])
def hello(key: str) -> str:
    "Say hello."
    return WORD + " " + key
"""
SKILL = "---\nname: {name}\ndescription: Does a thing. Use when it is to be done.\n---\nDo it.\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    path = list(sys.path)
    yield folder
    sys.path[:] = path
    for name in [name for name in sys.modules if name.split(".")[0] == "acme"]:
        del sys.modules[name]


def install(site, name="acme-tools", points="acme = acme", files=()):
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\nSummary: Sums up.\n")
    text = f"[satchel.plugins]\n{points}\n" if points else "[console_scripts]\n"
    (info / "entry_points.txt").write_text(text)
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


@pytest.fixture
def acme(site):
    """A package installed like a wheel, whose import ends the process."""
    package = write(site, tools="raise SystemExit\n" + TOOLS)
    install(site, files=[f"acme/{path.name}" for path in package.iterdir()])


@pytest.fixture
def edited(site, tmp_path):
    """The folder of an editable install."""
    package = write(tmp_path / "work")
    (site / "_acme.pth").write_text(str(tmp_path / "work"))
    install(site, files=["_acme.pth"])
    return package


def write(root, tools=TOOLS):
    package = root / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text("WORD = 'Hello'\n")
    (package / "tools.py").write_text(tools)
    (package / "toolkit.yaml").write_text(MANIFEST)
    return package


def ship(package, name="plan-a-trip"):
    folder = package / ".agents" / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=name))


def say(app):
    return asyncio.run(app.session().call("hello", {})).text


def plugin(app, name="acme"):
    (entry,) = [item for item in app.catalog.all_plugins if item.name == name]
    return entry


def test_a_package_that_is_not_enabled_is_known_and_not_imported(acme):
    entry = plugin(Satchel())
    assert entry.state is Status.DISABLED
    assert [item.code for item in entry.diagnostics] == ["plugin-not-enabled"]
    supply = entry.contribution
    assert [group.name for group in supply.groups] == ["acme", "maps"]
    assert [tool.name for tool in supply.tools] == ["hello"]
    assert [field.name for field in supply.config] == ["key"]
    assert "acme" not in sys.modules


def test_a_package_is_enabled_by_its_plugin_unless_another_package_has_one_of_that_name(site, acme):
    install(site, "other-tools", points="other = acme")
    (problem,) = plugin(Satchel()).diagnostics
    assert problem.message == "plugin 'acme' of acme-tools 1.0 is available, not enabled"
    assert problem.fix == "satchel enable acme"
    install(site, "rival-tools")
    problems = [
        item.diagnostics[0] for item in Satchel().catalog.all_plugins if item.name == "acme"
    ]
    assert {item.fix for item in problems} == {
        "satchel enable acme-tools",
        "satchel enable rival-tools",
    }


def test_problems_of_a_package_that_is_not_enabled_are_not_reported(site, acme):
    (site / "acme" / "toolkit.yaml").write_text("groups: 7\n")
    assert [item.code for item in plugin(Satchel()).diagnostics] == ["plugin-not-enabled"]
    broken = plugin(Satchel(entry_points=["acme"]))
    assert (broken.state, [item.code for item in broken.diagnostics]) == (
        Status.FAILED,
        ["plugin-field-type"],
    )


def test_an_enabled_package_is_listed_with_all_it_declares_and_not_imported(acme):
    app = Satchel(entry_points=["acme"], run_code=False)
    assert [*app.catalog.groups] == ["acme", "basic", "maps"]
    assert [*app.catalog.tools] == ["hello"]
    assert "acme" not in sys.modules


@pytest.mark.parametrize("enabled", ["acme-skills", "Acme_Skills", "all"])
def test_skills_of_a_package_without_a_plugin_must_be_enabled(site, enabled):
    ship(site / "acme_pack")
    install(
        site,
        "Acme_Skills",
        points="",
        files=["acme_pack/.agents/skills/plan-a-trip/SKILL.md"],
    )
    app = Satchel()
    assert (plugin(app, "acme-skills").state, [*app.catalog.skills]) == (Status.DISABLED, [])
    app = Satchel(entry_points=[enabled])
    assert [(s.name, s.source) for s in app.catalog.skills.values()] == [
        ("plan-a-trip", "acme-skills")
    ]
    assert "plan-a-trip" in app.session().prompt()


def test_two_distributions_that_offer_one_name_are_both_named_and_not_used(site, acme):
    install(site, "other", points="acme = other", files=["other.py"])
    entry = Satchel(entry_points=["all"]).catalog.all_plugins
    contested = [item for item in entry if item.name == "acme"]
    assert [item.state for item in contested] == [Status.REVOKED] * 2
    assert {str(item.diagnostics[0].code) for item in contested} == {"plugin-contested"}
    assert all("acme-tools and other" in item.diagnostics[0].message for item in contested)


def test_configured_values_reach_the_tools_of_a_package(edited):
    assert say(Satchel(entry_points=["acme"])) == "Hello a"
    assert say(Satchel(entry_points=["acme"], config={"acme": {"key": "b"}})) == "Hello b"


def test_a_refresh_loads_an_edit(edited):
    app = Satchel(entry_points=["acme"])
    (edited / "words.py").write_text("WORD = 'Howdy'\n")
    (edited / "toolkit.yaml").write_text(MANIFEST.replace("Mind it", "Heed it"))
    ship(edited)
    app.refresh()
    assert (say(app), [*app.catalog.skills]) == ("Howdy a", ["plan-a-trip"])
    assert "Heed it." in app.session().prompt()


def test_the_folder_of_an_edited_package_is_watched_only_while_it_is_enabled(edited):
    assert str(edited) in Satchel(entry_points=["acme"])._reconciler.cache.watch_targets().roots
    assert str(edited) not in Satchel()._reconciler.cache.watch_targets().roots


OPENED = """
from satchel import hookimpl, tool

@tool
def hello() -> str:
    "Say hello."
    return f"{OPENED} is open"

@hookimpl
def satchel_startup(config):
    global OPENED
    if config.get("key") == "bad":
        raise ValueError("bad key")
    OPENED = config.get("key")

@hookimpl
def satchel_shutdown():
    global OPENED
    OPENED = "nothing"
"""


@pytest.fixture
def opening(site):
    """A package that opens a resource in its startup and closes it in its shutdown."""
    package = write(site, tools=OPENED)
    (package / "toolkit.yaml").write_text(MANIFEST)
    install(site, points="acme = acme.tools", files=[f"acme/{it.name}" for it in package.iterdir()])


def satchel_with(key):
    return Satchel(entry_points=["acme"], config={"acme": {"key": key}})


def test_closing_one_satchel_does_not_affect_another(opening):
    one, two = satchel_with("one"), satchel_with("two")
    assert (say(one), say(two)) == ("one is open", "two is open")
    one.close()
    assert say(two) == "two is open"
    two.close()


def test_a_failed_startup_keeps_the_resources_of_the_previous_version(opening, config_folder):
    values = config_folder / "plugins" / "acme.env"
    values.parent.mkdir(parents=True)
    values.write_text("KEY=one\n")
    with Satchel(entry_points=["acme"]) as app:
        tools = sys.modules["acme.tools"]
        values.write_text("KEY=bad\n")
        app.refresh()
        assert plugin(app).state is Status.STALE
        assert (say(app), sys.modules["acme.tools"]) == ("one is open", tools)
        values.write_text("KEY=two\n")
        app.refresh()
        assert say(app) == "two is open"


def test_an_editable_install_may_move(edited, site, tmp_path):
    app = Satchel(entry_points=["acme"])
    assert say(app) == "Hello a"
    moved = write(tmp_path / "moved")
    (moved / "words.py").write_text("WORD = 'Moved'\n")
    (site / "_acme.pth").write_text(str(tmp_path / "moved"))
    (site / "acme_tools-1.0.dist-info" / "RECORD").write_text("_acme.pth,,1\n")
    app.refresh()
    assert say(app) == "Moved a"
