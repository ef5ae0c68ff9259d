"""Plugins that change while we watch: code is replaced whole, or not at all."""

import asyncio
import gc
import shutil
import sys
import threading

import pytest

TOOLS = """
    from satchel import tool

    @tool
    def greet(name: str) -> str:
        "Greet somebody."
        return "{word} " + name
"""


def say(app, **arguments) -> str:
    return asyncio.run(app.session().call("greet", arguments or {"name": "Ada"})).text


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


def alive(plugin: str) -> set[str]:
    """The versions of a plugin whose modules the interpreter still knows."""
    gc.collect()
    names = {name.partition(".")[0] for name in sys.modules}
    return {name for name in names if name.startswith(f"_satchel_plugin_{plugin}_")}


def tools(word: str) -> str:
    return TOOLS.replace("{word}", word)


def test_a_plugin_dropped_in_is_in_the_tools_and_the_notes(watched, plugins, write_plugin):
    with watched(plugins=[plugins]) as seen:
        write_plugin(plugins, "demo", "active: true\nnotes: Be polite.\n", tools=tools("Hello"))
        seen.until_event("added", "greet")
        session = seen.app.session()
        assert session.schemas()[0]["function"]["name"] == "greet"
        assert "About Tool Group 'demo'" in session.activated_notes()
        assert say(seen.app) == "Hello Ada"
        seen.until_as_cold()


def test_an_edited_tool_is_the_new_one_at_the_next_call(watched, plugins, write_plugin):
    """Also in the same second with the same length, where a cached .pyc would be believed."""
    write_plugin(plugins, "demo", tools=tools("aaaa"))
    with watched(plugins=[plugins]) as seen:
        for letter in "bcdefghijk":
            write_plugin(plugins, "demo", tools=tools(letter * 4))
            seen.until(lambda letter=letter: say(seen.app) == f"{letter * 4} Ada")
        assert ("changed", "tool", "greet") in seen.events()
        assert not list(plugins.rglob("__pycache__"))


def test_an_edited_helper_is_reloaded_with_those_who_import_it(watched, plugins, write_plugin):
    source = """
        from satchel import tool
        from .words import WORD

        @tool
        def greet(name: str) -> str:
            return WORD + name
    """
    write_plugin(plugins, "demo", tools=source, words="WORD = 'Old '\n")
    with watched(plugins=[plugins]) as seen:
        assert say(seen.app) == "Old Ada"
        (plugins / "demo" / "words.py").write_text("WORD = 'New '\n")
        seen.until(lambda: say(seen.app) == "New Ada")


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ("def greet(:\n", "plugin-syntax"),
        ("raise RuntimeError('boom')\n", "plugin-import-failed"),
        ("import no_such_module_anywhere\n", "plugin-import-failed"),
        ("raise SystemExit(3)\n", "plugin-import-failed"),
        (
            "from satchel import tool\n@tool(name='no spaces')\ndef greet(): ...\n",
            "plugin-tool-invalid",
        ),
    ],
)
def test_broken_code_keeps_the_last_good_tool_and_a_fix_recovers(
    watched, plugins, write_plugin, broken, code
):
    write_plugin(plugins, "demo", tools=tools("Good"))
    with watched(plugins=[plugins]) as seen:
        (plugins / "demo" / "tools.py").write_text(broken)
        seen.until_event("stale", "demo")
        assert say(seen.app) == "Good Ada"
        assert seen.app.catalog.tools["greet"].state == "stale"
        assert code in {item.code for item in seen.app.catalog.plugins["demo"].diagnostics}
        write_plugin(plugins, "demo", tools=tools("Mended"))
        seen.until_event("recovered", "demo")
        assert say(seen.app) == "Mended Ada"
        seen.until_as_cold()


def test_a_broken_manifest_keeps_the_last_good_plugin_and_its_skills(
    watched, plugins, write_plugin, write_skill
):
    folder = write_plugin(plugins, "demo", tools=tools("Good"))
    write_skill(folder / "skills", "how-to-greet")
    with watched(plugins=[plugins]) as seen:
        (folder / "toolkit.yaml").write_text("name: [demo\n")
        seen.until_event("stale", "demo")
        assert say(seen.app) == "Good Ada"
        assert "how-to-greet" in seen.app.catalog.skills
        write_skill(folder / "skills", "how-to-greet", description="Edited meanwhile.")
        seen.until_event("changed", "how-to-greet")


def test_a_broken_skill_of_a_plugin_does_not_touch_its_tools(
    watched, plugins, write_plugin, write_skill
):
    folder = write_plugin(plugins, "demo", tools=tools("Good"))
    write_skill(folder / "skills", "how-to-greet")
    with watched(plugins=[plugins]) as seen:
        (folder / "skills" / "how-to-greet" / "SKILL.md").write_text("broken")
        seen.until_event("stale", "how-to-greet")
        assert seen.app.catalog.plugins["demo"].state == "ok"
        assert {kind for _, kind, _ in seen.events()} == {"skill"}


def test_a_broken_plugin_is_not_tried_again_until_it_changes(
    watched, plugins, tmp_path, write_plugin
):
    count = tmp_path / "count"
    source = f"with open({str(count)!r}, 'a') as file:\n    file.write('x')\nraise RuntimeError\n"
    write_plugin(plugins, "demo", tools=source)
    with watched(plugins=[plugins]) as seen:
        write_plugin(plugins, "other", tools=tools("Hello"))
        seen.until_event("added", "other")
        assert count.read_text() == "x"
        seen.app.refresh()  # It wants it tried, and does not wait for a slow import.
        seen.until(lambda: count.read_text() == "xx")


def test_deleting_a_plugin_removes_what_it_brought(watched, plugins, write_plugin, write_skill):
    folder = write_plugin(plugins, "fleeting", tools=tools("Good"))
    write_skill(folder / "skills", "how-to-greet")
    with watched(plugins=[plugins]) as seen:
        shutil.rmtree(folder)
        for name in ("fleeting", "greet", "how-to-greet"):
            seen.until_event("removed", name)
        seen.until(lambda: not alive("fleeting"))
        seen.until_as_cold()


def test_a_call_that_runs_ends_on_the_version_it_began_with(watched, plugins, write_plugin):
    source = """
        import builtins
        from satchel import tool

        @tool
        def greet(name: str) -> str:
            began, go_on = builtins.satchel_gates
            began.set()
            go_on.wait(120)
            from .words import WORD
            return WORD
    """
    began, go_on = threading.Event(), threading.Event()
    write_plugin(plugins, "slow", tools=source, words="WORD = 'first'\n")
    with watched(plugins=[plugins]) as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.satchel_gates", (began, go_on), raising=False)
        answers: list[str] = []
        caller = threading.Thread(target=lambda: answers.append(say(seen.app)))
        caller.start()
        assert began.wait(120)
        (plugins / "slow" / "words.py").write_text("WORD = 'second'\n")
        seen.until_event("changed", "slow")
        go_on.set()
        caller.join()
        assert answers == ["first"]
        assert say(seen.app) == "second"
        # The old version goes with its last call.
        seen.until(lambda: len(alive("slow")) == 1)


def install(site, name, version, module, source) -> None:
    """Write what an installer writes, RECORD last."""
    (site / f"{module}.py").write_text(source)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[satchel.plugins]\n{name} = {module}\n")
    (info / "RECORD").write_text(f"{module}.py,,\n{info.name}/RECORD,,\n")


PACKAGE = """
from satchel import hookimpl

def greet(name: str) -> str:
    return "{word} " + name

@hookimpl
def satchel_tools():
    return [greet]
"""


@pytest.fixture
def site(site, monkeypatch):
    monkeypatch.syspath_prepend(site)
    return site


def activate_and_say(app) -> str:
    session = app.session()
    session.activate("greeter")
    return asyncio.run(session.call("greet", {"name": "Ada"})).text


def test_an_enabled_package_joins_when_it_is_installed_and_leaves_when_it_is_removed(watched, site):
    with watched(entry_points=["greeter"]) as seen:
        assert "plugin-not-installed" in {item.code for item in seen.app.catalog.diagnostics}
        install(site, "greeter", "1.0", "greeter_module", PACKAGE.replace("{word}", "One"))
        seen.until_event("added", "greet")
        assert activate_and_say(seen.app) == "One Ada"
        assert seen.app.catalog.plugins["greeter"].version == "1.0"

        # An upgrade in place: the old dist-info goes, the new one comes.
        shutil.rmtree(site / "greeter-1.0.dist-info")
        install(site, "greeter", "1.1", "greeter_module", PACKAGE.replace("{word}", "Two") + "#\n")
        seen.until(lambda: seen.app.catalog.plugins["greeter"].version == "1.1")
        seen.until(lambda: activate_and_say(seen.app) == "Two Ada")

        shutil.rmtree(site / "greeter-1.1.dist-info")
        (site / "greeter_module.py").unlink()
        seen.until_event("removed", "greet")
        # What a finished event loop leaves behind may hold it until the collector comes.
        seen.until(lambda: gc.collect() >= 0 and "greeter_module" not in sys.modules)
        seen.until_as_cold()


def test_a_broken_upgrade_of_a_package_keeps_the_version_that_worked(watched, site):
    install(site, "greeter", "1.0", "greeter_module", PACKAGE.replace("{word}", "One"))
    with watched(entry_points=["greeter"]) as seen:
        shutil.rmtree(site / "greeter-1.0.dist-info")
        install(site, "greeter", "1.1", "greeter_module", "raise RuntimeError('boom') # longer\n")
        seen.until(lambda: seen.app.catalog.plugins["greeter"].state == "stale")
        assert activate_and_say(seen.app) == "One Ada"

        shutil.rmtree(site / "greeter-1.1.dist-info")
        install(site, "greeter", "1.2", "greeter_module", PACKAGE.replace("{word}", "Mended"))
        seen.until(lambda: seen.app.catalog.plugins["greeter"].state == "ok")
        assert activate_and_say(seen.app) == "Mended Ada"


def test_a_plugin_that_takes_long_to_import_holds_up_no_other(
    watched, plugins, root, write_plugin, write_skill
):
    gate = threading.Event()
    with watched(plugins=[plugins], skills=[root]) as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.satchel_gate", gate, raising=False)
        slow = "import builtins\nbuiltins.satchel_gate.wait(9)\n"
        write_plugin(plugins, "slow", tools=slow)
        write_skill(root, "pdf")
        write_plugin(plugins, "quick", tools=tools("Hello"))
        seen.until_event("added", "pdf")
        seen.until_event("added", "quick")
        assert "slow" not in seen.app.catalog.plugins
        write_plugin(plugins, "slow", tools="# edited while it was still being imported\n" + slow)
        write_skill(root, "docx")
        seen.until_event("added", "docx")
        gate.set()
        seen.until_event("added", "slow")
        seen.until_as_cold()


def test_a_package_that_is_not_enabled_is_listed_and_never_imported(watched, site, tmp_path):
    mark = tmp_path / "it-ran"
    with watched() as seen:
        source = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
        install(site, "greeter", "1.0", "greeter_module", source)
        seen.until_event("added", "greeter")
        (entry,) = [e for e in seen.app.catalog.all_plugins if e.name == "greeter"]
        assert entry.state == "disabled"
        assert [item.code for item in entry.diagnostics] == ["plugin-not-enabled"]
    assert not mark.exists()


def test_a_half_written_installation_is_waited_for(watched, site):
    with watched(entry_points=["greeter"]) as seen:
        install(site, "greeter", "1.0", "greeter_module", PACKAGE.replace("{word}", "One"))
        info = site / "other-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[satchel.plugins]\nother = other_module\n")
        seen.until_event("added", "greet")
        assert "other" not in [entry.name for entry in seen.app.catalog.all_plugins]
        (info / "RECORD").write_text("")
        seen.until_event("added", "other")


def test_two_packages_that_offer_one_name_are_both_left_out_and_named(site):
    from satchel import Satchel

    for owner in ("greeter", "rival"):
        install(site, owner, "1.0", f"{owner}_module", PACKAGE)
    (site / "rival-1.0.dist-info" / "entry_points.txt").write_text(
        "[satchel.plugins]\ngreeter = rival_module\n"
    )
    catalog = Satchel(entry_points="all").catalog
    assert "greet" not in catalog.tools
    (problem,) = {item.message for item in catalog.diagnostics if item.code == "plugin-contested"}
    assert "greeter and rival" in problem


def test_a_package_that_is_not_enabled_cannot_switch_an_enabled_one_off(site):
    from satchel import Satchel

    install(site, "greeter", "1.0", "greeter_module", PACKAGE)
    install(site, "rival", "1.0", "rival_module", PACKAGE)
    (site / "rival-1.0.dist-info" / "entry_points.txt").write_text(
        "[satchel.plugins]\ngreeter = rival_module\n"
    )
    install(site, "chosen", "1.0", "chosen_module", PACKAGE)
    (site / "chosen-1.0.dist-info" / "entry_points.txt").write_text(
        "[satchel.plugins]\ngreeter = chosen_module\n"
    )
    catalog = Satchel(entry_points=["chosen"]).catalog
    assert catalog.plugins["greeter"].source == "chosen"
    fixes = {item.fix for item in catalog.diagnostics if item.code == "plugin-not-enabled"}
    assert {"satchel enable greeter", "satchel enable rival"} & fixes


def test_two_satchels_may_share_a_package(site):
    from satchel import Satchel

    source = PACKAGE.replace("{word}", "One") + "COUNT = []\n"
    install(site, "greeter", "1.0", "greeter_module", source)
    first, second = Satchel(entry_points="all"), Satchel(entry_points="all")
    module = sys.modules["greeter_module"]
    del first
    gc.collect()
    assert sys.modules["greeter_module"] is module
    assert activate_and_say(second) == "One Ada"


def test_an_installation_is_tried_only_by_plugins_that_lack_a_module(
    watched, plugins, site, tmp_path, write_plugin
):
    """A plugin that hangs or fails by itself would do so again at every installation."""
    count = tmp_path / "count"
    for name, rest in (
        ("lacking", "import helper_that_comes\n"),
        ("failing", "raise ValueError\n"),
    ):
        source = f"with open({str(count)!r}, 'a') as file:\n    file.write('{name} ')\n{rest}"
        write_plugin(plugins, name, tools=source)
    with watched(plugins=[plugins]) as seen:
        install(site, "helper", "1.0", "helper_that_comes", "")
        seen.until(lambda: "lacking" in seen.app.catalog.plugins)
        assert sorted(count.read_text().split()) == ["failing", "lacking", "lacking"]


def test_a_package_upgraded_while_a_plugin_is_being_imported_is_wholly_new(
    watched, plugins, site, write_plugin
):
    """Putting back what the slow plugin changed must not roll the package back."""
    gate = threading.Event()
    install(site, "greeter", "1.0", "greeter_module", PACKAGE.replace("{word}", "One"))
    with (
        watched(plugins=[plugins], entry_points=["greeter"]) as seen,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("builtins.satchel_gate", gate, raising=False)
        write_plugin(plugins, "slow", tools="import builtins\nbuiltins.satchel_gate.wait(9)\n")
        seen.until(lambda: seen.app._reconciler.cache.imported.pending)
        shutil.rmtree(site / "greeter-1.0.dist-info")
        install(site, "greeter", "1.1", "greeter_module", PACKAGE.replace("{word}", "Two") + "#\n")
        seen.until(lambda: activate_and_say(seen.app) == "Two Ada")
        new = sys.modules["greeter_module"]
        gate.set()
        seen.until_event("added", "slow")
        assert sys.modules["greeter_module"] is new
        assert "plugin-meddled" not in {item.code for item in seen.app.catalog.diagnostics}


def test_fixing_a_plugin_that_hangs_does_not_wait_for_its_time_to_run_out(
    watched, plugins, write_plugin
):
    gate = threading.Event()
    with watched(plugins=[plugins]) as seen, pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.satchel_gate", gate, raising=False)
        write_plugin(plugins, "demo", tools="import builtins\nbuiltins.satchel_gate.wait(30)\n")
        seen.until(lambda: seen.app._reconciler.cache.imported.pending)
        write_plugin(plugins, "demo", tools=tools("Mended"))
        seen.until_event("added", "greet")
        assert say(seen.app) == "Mended Ada"
        gate.set()


def test_a_missing_name_is_reported_in_the_authors_words(tmp_path, write_plugin):
    from satchel import Satchel

    write_plugin(tmp_path, "demo", tools="from . import helper\n")
    (problem,) = Satchel(plugins=[tmp_path]).catalog.plugin("demo").diagnostics
    assert "_satchel" not in problem.message


def test_a_second_package_of_one_name_takes_the_first_along_while_we_watch(watched, site):
    """The last good version does not go on: it is not broken, it is contested."""
    install(site, "greeter", "1.0", "greeter_module", PACKAGE)
    with watched(entry_points=["greeter"]) as seen:
        assert "greet" in seen.app.catalog.tools
        install(site, "rival", "1.0", "rival_module", PACKAGE)
        points = site / "rival-1.0.dist-info" / "entry_points.txt"
        points.write_text("[satchel.plugins]\ngreeter = rival_module\n")
        seen.until(lambda: "greet" not in seen.app.catalog.tools)
        seen.until_as_cold()
        shutil.rmtree(site / "rival-1.0.dist-info")
        seen.until(lambda: "greet" in seen.app.catalog.tools)
        seen.until_as_cold()


def test_a_package_in_the_shadow_of_a_folder_is_not_imported(site, plugins, write_plugin):
    from satchel import Satchel

    install(site, "greeter", "1.0", "shadowed_module", "raise SystemExit\n")
    write_plugin(plugins, "greeter", "active: true\n", tools=tools("Hello"))
    app = Satchel(plugins=plugins, entry_points="greeter")
    assert say(app) == "Hello Ada"
    assert "plugin-import-failed" not in [item.code for item in app.catalog.diagnostics]


LIVING = """
from satchel import hookimpl
open_one = {}

@hookimpl
def satchel_startup(config):
    open_one["state"] = "open"

@hookimpl
def satchel_shutdown():
    open_one["state"] = "closed"

def look() -> str:
    "Tell whether it is open."
    return open_one["state"]

@hookimpl
def satchel_tools():
    return [look]
"""


def look_at(app) -> str:
    session = app.session()
    session.activate("living")
    return asyncio.run(session.call("look", {})).text


def test_each_life_of_a_package_has_modules_of_its_own(site, monkeypatch):
    from satchel import Satchel

    install(site, "living", "1.0", "living_module", LIVING)
    with Satchel(entry_points="living") as first, Satchel(entry_points="living") as second:
        monkeypatch.setenv("SATCHEL_LIVING_KEY", "new")
        first.refresh()
        assert look_at(first) == "open"
        first.close()
        assert look_at(second) == "open"


WAITING = """
import waiting_state
from satchel import ConfigField, hookimpl

@hookimpl
def satchel_config_fields():
    return [ConfigField(name="size", type="integer", default=1, max=5)]

@hookimpl
def satchel_startup(config):
    waiting_state.seen.append(config["size"])

def look() -> str:
    "Look into the state, as it is imported now."
    from waiting_state import seen
    return str(seen)

@hookimpl
def satchel_tools():
    return [look]
"""


def test_a_value_that_is_not_allowed_leaves_the_code_that_serves_alone(site, monkeypatch):
    from satchel import Satchel

    (site / "waiting_state.py").write_text("seen = []\n")
    install(site, "living", "1.0", "waiting_module", WAITING)
    record = site / "living-1.0.dist-info" / "RECORD"
    record.write_text("waiting_module.py,,\nwaiting_state.py,,\n")
    with Satchel(entry_points="living") as app:
        monkeypatch.setenv("SATCHEL_LIVING_SIZE", "9")
        app.refresh()
        assert app.catalog.plugin("living").state == "stale"
        assert look_at(app) == "[1]"
