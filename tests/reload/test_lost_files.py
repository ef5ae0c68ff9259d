"""A plugin whose files become empty or vanish, while its folder stays, keeps its tools."""

import asyncio
import os
import shutil

import pytest

from satchel import Satchel

TOOLS = """
    from satchel import tool

    @tool
    def greet(name: str) -> str:
        "Greet somebody."
        return "WORD " + name
"""


def say(app) -> str:
    return asyncio.run(app.session().call("greet", {"name": "Ada"})).text


def problems(app, code="plugin-file-lost"):
    plugin = app.catalog.plugin("demo")
    return [item for item in plugin.diagnostics if item.code == code]


@pytest.fixture
def plugins(tmp_path):
    return tmp_path / "plugins"


@pytest.fixture
def demo(plugins, write_plugin):
    return write_plugin(plugins, "demo", tools=TOOLS.replace("WORD", "Good"))


def emptied(path):
    path.write_text("")


def blanked(path):
    path.write_text(" \n\n")


def deleted(path):
    path.unlink()


def made_a_fifo(path):
    path.unlink()
    os.mkfifo(path)


def made_a_folder(path):
    path.unlink()
    path.mkdir()


LOSSES = {
    emptied: "is empty",
    blanked: "is empty",
    deleted: "does not exist",
    made_a_fifo: "is no regular file",
    made_a_folder: "is no regular file",
}


@pytest.mark.parametrize("lose", LOSSES)
def test_tools_of_a_file_that_is_lost_continue_and_one_diagnostic_says_why(plugins, demo, lose):
    with Satchel(plugins=[plugins]) as app:
        lose(demo / "tools.py")
        for _ in range(3):
            app.refresh()
            assert say(app) == "Good Ada"
            assert app.catalog.plugin("demo").state == "stale"
            (problem,) = problems(app)
            assert problem.message.startswith(LOSSES[lose])
            assert "delete the plugin's folder" in problem.fix


@pytest.mark.parametrize("lose", LOSSES)
def test_the_same_holds_under_watch_and_a_fix_recovers(watched, plugins, demo, write_plugin, lose):
    tools = demo / "tools.py"
    with watched(plugins=[plugins]) as seen:
        lose(tools)
        seen.until_event("stale", "demo")
        assert say(seen.app) == "Good Ada"
        if tools.is_dir():
            tools.rmdir()
        elif lose is made_a_fifo:
            tools.unlink()
        write_plugin(plugins, "demo", tools=TOOLS.replace("WORD", "Mended"))
        seen.until(lambda: say(seen.app) == "Mended Ada")
        seen.until_as_cold()
        assert ("removed", "tool", "greet") not in seen.events()


def test_an_emptied_file_never_becomes_the_last_good_version(watched, plugins, demo):
    with watched(plugins=[plugins]) as seen:
        for broken in ("", "def greet(", "", "import sys\nsys.exit(3)\n"):
            (demo / "tools.py").write_text(broken)
            code = {"": "plugin-file-lost", "def greet(": "plugin-syntax"}
            expected = code.get(broken, "plugin-import-failed")
            seen.until(lambda expected=expected: problems(seen.app, expected))
            assert say(seen.app) == "Good Ada"
        assert ("removed", "tool", "greet") not in seen.events()


@pytest.mark.parametrize("lose", [emptied, deleted])
def test_deleting_the_folder_removes_the_tools(watched, plugins, demo, lose):
    with watched(plugins=[plugins]) as seen:
        lose(demo / "tools.py")
        seen.until_event("stale", "demo")
        shutil.rmtree(demo)
        seen.until_event("removed", "demo")
        assert not seen.app.catalog.tools
        seen.until_as_cold()


def test_a_file_with_only_a_comment_is_meant_to_have_no_tools(plugins, demo):
    with Satchel(plugins=[plugins]) as app:
        (demo / "tools.py").write_text("# No tools any more.\n")
        app.refresh()
        assert not app.catalog.tools
        assert app.catalog.plugin("demo").state == "ok"


def test_a_manifest_that_names_another_module_is_meant_so(plugins, demo):
    with Satchel(plugins=[plugins]) as app:
        (demo / "tools.py").rename(demo / "greetings.py")
        (demo / "toolkit.yaml").write_text("name: demo\nactive: true\ntools: greetings\n")
        app.refresh()
        assert (app.catalog.plugin("demo").state, say(app)) == ("ok", "Good Ada")


def test_without_a_version_that_had_tools_an_empty_file_is_no_problem(plugins, write_plugin):
    demo = write_plugin(plugins, "demo", tools="")
    with Satchel(plugins=[plugins]) as app:
        assert not problems(app)
        (demo / "tools.py").unlink()
        app.refresh()
        assert (app.catalog.plugin("demo").state, problems(app)) == ("ok", [])


# ---- the manifest ---------------------------------------------------------------------------


def test_a_plugin_without_its_manifest_continues_until_its_folder_is_deleted(plugins, demo):
    text = (demo / "toolkit.yaml").read_text()
    with Satchel(plugins=[plugins]) as app:
        (demo / "toolkit.yaml").unlink()
        for _ in range(3):
            app.refresh()
            assert (app.catalog.plugin("demo").state, say(app)) == ("stale", "Good Ada")
            (problem,) = problems(app)
            assert "delete its folder" in problem.fix
        (demo / "toolkit.yaml").write_text(text)
        app.refresh()
        assert (app.catalog.plugin("demo").state, problems(app)) == ("ok", [])
        (demo / "toolkit.yaml").unlink()
        app.refresh()
        shutil.rmtree(demo)
        app.refresh()
        assert not app.catalog.tools
        assert "demo" not in app.catalog.plugins


def test_a_search_root_that_is_a_plugin_continues_without_its_manifest(demo):
    with Satchel(plugins=[demo]) as app:
        (demo / "toolkit.yaml").unlink()
        app.refresh()
        assert (app.catalog.plugin("demo").state, say(app)) == ("stale", "Good Ada")


def test_a_manifest_that_is_away_for_a_moment_takes_no_tool_away(watched, plugins, demo):
    manifest = demo / "toolkit.yaml"
    with watched(plugins=[plugins]) as seen:
        manifest.rename(demo.parent / "away")
        seen.until_event("stale", "demo")
        assert say(seen.app) == "Good Ada"
        (demo.parent / "away").rename(manifest)
        seen.until_event("recovered", "demo")
        seen.until_as_cold()
        assert ("removed", "tool", "greet") not in seen.events()


@pytest.mark.parametrize("tools", ["def greet(", "# None.\n"])
def test_a_plugin_that_was_never_good_or_has_nothing_left_ends_with_its_manifest(
    watched, plugins, write_plugin, tools
):
    demo = write_plugin(plugins, "demo", tools=tools)
    with watched(plugins=[plugins]) as seen:
        if tools.startswith("#"):
            (demo / "tools.py").unlink()
        (demo / "toolkit.yaml").unlink()
        seen.until_event("removed", "demo")
        seen.until_as_cold()
