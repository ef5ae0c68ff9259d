"""Configuration and added models while we watch."""

import asyncio
import os

import pytest
from pydantic import BaseModel

from satchel import DefinitionError, Project

SOURCE = """
    from typing import Any
    from satchel import tool

    @tool(state=["api_key"])
    def fetch(city: str, api_key: str) -> str:
        "Fetch something."
        return f"{city} {api_key}"

    @tool
    def other() -> str:
        "Something else."
        return "other"
"""

OPEN = """
    from typing import Any
    from satchel import tool

    @tool
    def pick({own}**more: Any) -> str:
        "Pick something."
        return str(more)

    @tool
    def other() -> str:
        "Something else."
        return "other"
"""


class More(BaseModel):
    unit: str = "C"


class Other(BaseModel):
    size: int = 1


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


@pytest.fixture
def demo_env(tmp_path, monkeypatch):
    """Return the configuration file of the plugin `demo`; its folder is there, it is not."""
    folder = tmp_path / "config" / "plugins"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(folder.parent))
    return folder / "demo.env"


def say(app, name="fetch", **arguments) -> str:
    return asyncio.run(app.session().call(name, arguments or {"city": "Oslo"})).text


def codes(app) -> set[str]:
    return {item.code for item in app.catalog.diagnostics} - {
        "plugin-not-enabled",
        "tool-undescribed",
    }


def test_a_file_that_comes_changes_and_goes_is_taken_over(watched, plugins, demo_env, write_plugin):
    write_plugin(plugins, "demo", "active: true\n", tools=SOURCE)
    with watched(plugins=[plugins]) as seen:
        assert "fetch" not in seen.app.catalog.tools
        demo_env.write_text("API_KEY=one\n")
        seen.until_event("changed", "fetch")
        assert say(seen.app) == "Oslo one"
        demo_env.write_text("API_KEY=two\n")
        seen.until(lambda: say(seen.app) == "Oslo two")
        seen.until_as_cold()
        demo_env.unlink()
        seen.until(lambda: "fetch" not in seen.app.catalog.tools)
        assert codes(seen.app) == {"tool-state-missing"}
        seen.until_as_cold()


def test_a_file_that_is_replaced_by_renaming_is_taken_over(
    watched, plugins, demo_env, write_plugin
):
    write_plugin(plugins, "demo", "active: true\n", tools=SOURCE)
    demo_env.write_text("API_KEY=one\n")
    with watched(plugins=[plugins]) as seen:
        fresh = demo_env.with_suffix(".new")
        fresh.write_text("API_KEY=two\n")
        os.replace(fresh, demo_env)
        seen.until(lambda: say(seen.app) == "Oslo two")


BROKEN = [
    (SOURCE, b"API_KEY=\xff\n", "tool-state-missing"),
    (SOURCE, b"A=1\n" * 100_000, "tool-state-missing"),
    (SOURCE.replace("api_key: str", "api_key: int"), b"API_KEY=x\n", "tool-unfit"),
]


@pytest.mark.parametrize("case", BROKEN, ids=["not-utf-8", "too-large", "wrong-type"])
def test_what_worked_continues_while_the_file_is_broken(
    watched, plugins, demo_env, write_plugin, case
):
    source, broken, code = case
    write_plugin(plugins, "demo", "active: true\n", tools=source)
    demo_env.write_text("API_KEY=1\n")
    with watched(plugins=[plugins]) as seen:
        before = seen.app.catalog.tools["fetch"].tool
        demo_env.write_bytes(broken)
        seen.until(lambda: code in codes(seen.app))
        assert seen.app.catalog.tools["fetch"].tool is before
        assert say(seen.app) == "Oslo 1"
        assert asyncio.run(seen.app.session().call("other")).text == "other"
        (problem,) = [item for item in seen.app.catalog.diagnostics if item.code == code]
        assert "keeps its last valid configuration" in problem.message
        demo_env.write_text("API_KEY=2\n")
        seen.until(lambda: codes(seen.app) == set())
        assert say(seen.app) == "Oslo 2"
        seen.until_as_cold()


def test_an_odd_line_costs_what_it_would_have_set_and_hot_is_as_cold(
    watched, plugins, demo_env, write_plugin
):
    write_plugin(plugins, "demo", "active: true\n", tools=SOURCE)
    demo_env.write_text("API_KEY=one\n")
    with watched(plugins=[plugins]) as seen:
        demo_env.write_text("=== nonsense\n")
        seen.until(lambda: "config-unreadable" in codes(seen.app))
        assert asyncio.run(seen.app.session().call("other")).text == "other"
        seen.until_as_cold()
        demo_env.write_text("API_KEY=two\n")
        seen.until(lambda: codes(seen.app) == set())
        assert say(seen.app) == "Oslo two"
        seen.until_as_cold()


def test_trouble_with_the_file_is_reported_although_the_values_come_from_elsewhere(
    watched, plugins, demo_env, write_plugin, monkeypatch
):
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", "environment")
    write_plugin(plugins, "demo", "active: true\n", tools=SOURCE)
    with watched(plugins=[plugins]) as seen:
        before = seen.app.catalog.tools["fetch"].tool
        demo_env.write_text("=== nonsense\n")
        seen.until(lambda: codes(seen.app) == {"config-unreadable"})
        assert seen.app.catalog.tools["fetch"].tool is before
        demo_env.unlink()
        seen.until(lambda: codes(seen.app) == set())
        seen.until_as_cold()


def test_an_edited_plugin_keeps_its_values(watched, plugins, demo_env, write_plugin):
    write_plugin(plugins, "demo", "active: true\n", tools=SOURCE)
    demo_env.write_text("API_KEY=one\n")
    with watched(plugins=[plugins]) as seen:
        write_plugin(
            plugins, "demo", "active: true\n", tools=SOURCE.replace("{city}", "new {city}")
        )
        seen.until(lambda: say(seen.app) == "new Oslo one")
        seen.until_as_cold()


def test_a_last_good_version_takes_over_a_new_value_too(watched, plugins, demo_env, write_plugin):
    """A key that was revoked must not be used because somebody broke the code."""
    write_plugin(plugins, "demo", "active: true\n", tools=SOURCE)
    demo_env.write_text("API_KEY=one\n")
    with watched(plugins=[plugins]) as seen:
        write_plugin(plugins, "demo", "active: true\n", tools="raise RuntimeError\n")
        seen.until_event("stale", "demo")
        before = seen.app.catalog.tools["fetch"].tool
        seen.app.refresh()
        assert seen.app.catalog.tools["fetch"].tool is before
        demo_env.write_text("API_KEY=two\n")
        seen.until(lambda: say(seen.app) == "Oslo two")
        assert codes(seen.app) == {"plugin-import-failed", "last-good"}
        demo_env.unlink()
        seen.until(lambda: "fetch" not in seen.app.catalog.tools)
        assert codes(seen.app) == {"plugin-import-failed", "last-good", "tool-state-missing"}
        assert asyncio.run(seen.app.session().call("other")).text == "other"
        demo_env.write_text("API_KEY=three\n")
        seen.until(lambda: say(seen.app) == "Oslo three")
        write_plugin(
            plugins, "demo", "active: true\n", tools=SOURCE.replace("Fetch something", "Fetch it")
        )
        seen.until(lambda: codes(seen.app) == set())
        seen.until_as_cold()


def test_a_session_that_continues_gets_the_new_value_and_runs_an_idempotent_tool_again(
    watched, plugins, demo_env, write_plugin
):
    source = SOURCE.replace('state=["api_key"]', 'state=["api_key"], idempotent=True')
    write_plugin(plugins, "demo", "active: true\n", tools=source)
    demo_env.write_text("API_KEY=one\n")
    with watched(plugins=[plugins]) as seen:
        session = seen.app.session()

        def ask() -> str:
            return asyncio.run(session.call("fetch", {"city": "Oslo"})).text

        assert ask() == "Oslo one"
        demo_env.write_text("API_KEY=two\n")
        seen.until(lambda: ask() == "Oslo two")


GROUP = "groups:\n  web:\n    active: true\n    requires: [API_KEY]\n"


def is_available(app) -> bool:
    return app.catalog.groups["web"].is_available


def test_a_group_comes_and_goes_with_what_it_requires(watched, plugins, demo_env, write_plugin):
    source = "from satchel import tool\n@tool\ndef fetch(city: str) -> str:\n    return city\n"
    write_plugin(plugins, "demo", GROUP, tools=source)
    with watched(plugins=[plugins]) as seen:
        app, session = seen.app, seen.app.session(meta_tool=False)
        assert (is_available(app), codes(app)) == (False, {"group-unavailable"})
        demo_env.write_text("API_KEY=s3cr3t-canary\n")
        seen.until(lambda: is_available(app))
        assert codes(app) == set()
        assert say(app) == "Oslo"
        assert [schema["name"] for schema in session.schemas("mcp")] == ["fetch"]
        seen.until_as_cold()
        demo_env.unlink()
        seen.until(lambda: not is_available(app))
        assert codes(app) == {"group-unavailable"}
        assert session.schemas() == []
        seen.until_as_cold()
        assert "s3cr3t-canary" not in repr([seen.changes, app.catalog])


def test_a_group_that_no_longer_requires_a_key_is_available(
    watched, plugins, demo_env, write_plugin
):
    write_plugin(plugins, "demo", GROUP)
    with watched(plugins=[plugins]) as seen:
        assert not is_available(seen.app)
        write_plugin(plugins, "demo", GROUP.replace("API_KEY", ""))
        seen.until(lambda: is_available(seen.app))
        seen.until_as_cold()
        write_plugin(plugins, "demo", GROUP.replace("API_KEY", "API_KEY, URL"))
        seen.until(lambda: seen.app.catalog.groups["web"].missing == ("API_KEY", "URL"))
        seen.until_as_cold()


def test_an_added_model_stays_with_every_good_version(watched, plugins, write_plugin):
    write_plugin(plugins, "demo", "active: true\n", tools=OPEN.replace("{own}", ""))
    with watched(plugins=[plugins]) as seen:
        app = seen.app
        app.set_extended_model("pick", More)
        assert say(app, "pick", unit="F") == "{'unit': 'F'}"
        edited = OPEN.replace("{own}", "size: int = 1, ")
        write_plugin(plugins, "demo", "active: true\n", tools=edited)
        seen.until(lambda: "size" in app.catalog.tools["pick"].tool.parameters["properties"])
        assert say(app, "pick", unit="F", size=2) == "{'unit': 'F'}"

        clashing = OPEN.replace("{own}", "unit: int = 1, ")
        write_plugin(plugins, "demo", "active: true\n", tools=clashing)
        seen.until(lambda: "pick" not in app.catalog.tools)
        assert codes(app) == {"tool-unfit"}
        assert asyncio.run(app.session().call("other")).text == "other"

        closed = OPEN.replace("{own}**more: Any", "x: int = 1").replace("str(more)", "str(x)")
        write_plugin(plugins, "demo", "active: true\n", tools=closed)
        seen.until(
            lambda: any("no further arguments" in item.message for item in app.catalog.diagnostics)
        )
        assert "pick" not in app.catalog.tools

        write_plugin(plugins, "demo", "active: true\n", tools=OPEN.replace("{own}", ""))
        seen.until(lambda: "pick" in app.catalog.tools)
        assert say(app, "pick", unit="F") == "{'unit': 'F'}"
        assert codes(app) == set()


def test_a_model_that_became_a_clash_can_be_replaced_or_taken_away(watched, plugins, write_plugin):
    write_plugin(plugins, "demo", "active: true\n", tools=OPEN.replace("{own}", ""))
    with watched(plugins=[plugins]) as seen:
        app = seen.app
        app.set_extended_model("pick", More)
        clashing = OPEN.replace("{own}", "unit: int = 1, ")
        write_plugin(plugins, "demo", "active: true\n", tools=clashing)
        seen.until(lambda: "pick" not in app.catalog.tools)
        app.set_extended_model("pick", Other)
        assert say(app, "pick", size=5) == "{'size': 5}"
        app.set_extended_model("demo:pick", None)
        assert say(app, "pick", unit=3) == "{}"
        assert codes(app) == set()
        with pytest.raises(DefinitionError):
            app.set_extended_model("pick", More)


DECLARED = """active: true
notes: guide.md
config:
  api_key: {type: secret, min: 3}
  retries: {type: integer, default: 2, max: 9}
"""
COUNTING = """
    from satchel import tool

    @tool(state=["retries"])
    def fetch(city: str, retries: int) -> str:
        "Fetch something."
        return f"{city} {retries}"
"""


@pytest.fixture
def declaring(plugins, write_plugin):
    folder = write_plugin(plugins, "demo", "active: true\n", tools=COUNTING)
    (folder / "guide.md").write_text("Be kind.")
    write_plugin(plugins, "demo", DECLARED)
    return folder


def test_a_value_that_is_not_allowed_leaves_the_last_good_one_until_it_is_fixed(
    watched, plugins, demo_env, declaring
):
    demo_env.write_text("API_KEY=abc\nRETRIES=3\n")
    with watched(plugins=[plugins]) as seen:
        demo_env.write_text("API_KEY=abc\nRETRIES=s3cr3t-canary\n")
        seen.until(lambda: codes(seen.app) == {"config-invalid", "tool-unfit"})
        assert say(seen.app) == "Oslo 3"
        demo_env.write_text("API_KEY=abc\n")
        seen.until(lambda: codes(seen.app) == set())
        assert say(seen.app) == "Oslo 2"
        seen.until_as_cold()
        assert "s3cr3t-canary" not in repr([seen.changes, seen.app.catalog])


def test_a_projects_values_are_followed_and_its_secrets_refused(
    watched, plugins, demo_env, declaring, tmp_path
):
    demo_env.write_text("API_KEY=abc\n")
    project = tmp_path / "project"
    project.mkdir()
    with watched(plugins=[plugins], project=Project(project, trust="code")) as seen:
        assert say(seen.app) == "Oslo 2"
        (project / "satchel.toml").write_text("[config.demo]\nretries = 4\n")
        seen.until(lambda: say(seen.app) == "Oslo 4")
        seen.until_as_cold()
        (project / "satchel.toml").write_text('[config.demo]\napi_key = "s3cr3t-canary"\n')
        seen.until(lambda: codes(seen.app) == {"config-invalid"})
        assert say(seen.app) == "Oslo 2"
        seen.until_as_cold()
        (project / "satchel.toml").unlink()
        seen.until(lambda: codes(seen.app) == set())
        assert "s3cr3t-canary" not in repr([seen.changes, seen.app.catalog])


def test_notes_in_a_file_and_the_fields_of_the_manifest_are_followed(
    watched, plugins, demo_env, declaring, write_plugin
):
    demo_env.write_text("API_KEY=abc\n")
    with watched(plugins=[plugins]) as seen:
        assert seen.app.catalog.groups["demo"].notes == "Be kind."
        (declaring / "guide.md").write_text("Be kinder.")
        seen.until(lambda: seen.app.catalog.groups["demo"].notes == "Be kinder.")
        seen.until_as_cold()
        write_plugin(plugins, "demo", DECLARED.replace("default: 2", "default: 7"))
        seen.until(lambda: say(seen.app) == "Oslo 7")
        (declaring / "guide.md").unlink()
        seen.until(lambda: codes(seen.app) == {"plugin-field-type", "last-good"})
        assert say(seen.app) == "Oslo 7"
