"""Open plugins and Claude bundles that change while we watch."""

import asyncio
import json
import shutil

import pytest

PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MCP_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
TOOL = """
from satchel import tool

@tool
def greet(name: str) -> str:
    "Greet somebody."
    return "WORD " + name
"""


@pytest.fixture
def plugins(tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


@pytest.fixture(params=["plugin.json", ".claude-plugin/plugin.json"])
def manifest(request, plugins):
    """Write a manifest of either format."""

    def write(**fields):
        path = plugins / "demo" / request.param
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = {"$schema": PLUGIN_SCHEMA} if request.param == "plugin.json" else {}
        path.write_text(json.dumps(schema | {"name": "demo"} | fields))
        return path

    return write


@pytest.fixture
def servers(plugins):
    """Write the servers for both formats."""

    def write(*names):
        results = {name: {"type": "stdio", "command": "x"} for name in names}
        data = json.dumps({"$schema": MCP_SCHEMA, "mcpServers": results})
        for name in ("mcp.json", ".mcp.json"):
            (plugins / "demo" / name).write_text(data)

    return write


def serving(seen):
    """Return the names of the servers of the plugin."""
    return [server.name for server in seen.app.catalog.plugins["demo"].servers]


def version(seen):
    return seen.app.catalog.plugins["demo"].version


def test_a_plugin_that_is_dropped_in_is_there_and_goes_when_it_is_deleted(
    watched, plugins, manifest, servers, write_skill
):
    with watched(plugins=[plugins]) as seen:
        write_skill(plugins / "demo" / "skills", "pdf")
        manifest(version="1")
        servers("a")
        seen.until(lambda: "demo" in seen.app.catalog.plugins and serving(seen) == ["a"])
        seen.until_names("pdf")
        seen.until_as_cold()
        shutil.rmtree(plugins / "demo")
        seen.until_names()
        seen.until_event("removed", "demo")
        seen.until_as_cold()


def test_an_edit_is_the_new_version(watched, plugins, manifest, write_skill):
    manifest(version="1")
    with watched(plugins=[plugins]) as seen:
        for number in range(2, 6):
            manifest(version=str(number))
            seen.until(lambda number=number: version(seen) == str(number))
        seen.until_as_cold()


def test_a_broken_manifest_keeps_the_last_good_plugin_and_a_fix_recovers(
    watched, plugins, manifest, servers, write_skill
):
    path = manifest(version="1")
    write_skill(plugins / "demo" / "skills", "pdf")
    servers("a")
    with watched(plugins=[plugins]) as seen:
        path.write_text("{")
        seen.until_event("stale", "demo")
        assert (version(seen), serving(seen)) == ("1", ["a"])
        assert list(seen.app.catalog.skills) == ["pdf"]
        manifest(version="2")
        seen.until_event("recovered", "demo")
        assert version(seen) == "2"
        seen.until_as_cold()


def test_servers_come_go_break_and_are_fixed(watched, plugins, manifest, servers):
    manifest()
    with watched(plugins=[plugins]) as seen:
        servers("a")
        seen.until(lambda: serving(seen) == ["a"])
        servers("a", "b")
        seen.until(lambda: serving(seen) == ["a", "b"])
        for name in ("mcp.json", ".mcp.json"):
            (plugins / "demo" / name).write_text("{")
        seen.until(lambda: serving(seen) == [])
        assert seen.app.catalog.plugins["demo"].state == "ok"
        seen.until_as_cold()
        servers("c")
        seen.until(lambda: serving(seen) == ["c"])
        for name in ("mcp.json", ".mcp.json"):
            (plugins / "demo" / name).unlink()
            (plugins / "demo" / name).mkdir()
        seen.until(lambda: serving(seen) == [])
        seen.until_as_cold()
        for name in ("mcp.json", ".mcp.json"):
            (plugins / "demo" / name).rmdir()
        seen.until_as_cold()


def test_a_server_is_judged_again_when_the_folder_that_it_names_becomes_a_link_out(
    watched, plugins, tmp_path
):
    folder = plugins / "demo"
    (folder / "bin").mkdir(parents=True)
    (folder / "plugin.json").write_text(json.dumps({"$schema": PLUGIN_SCHEMA, "name": "demo"}))
    server = {"type": "stdio", "command": "./bin/x"}
    (folder / "mcp.json").write_text(
        json.dumps({"$schema": MCP_SCHEMA, "mcpServers": {"a": server}})
    )
    with watched(plugins=[plugins]) as seen:
        assert serving(seen) == ["a"]
        (folder / "bin").rmdir()
        (folder / "bin").symlink_to(tmp_path)
        seen.until(lambda: serving(seen) == [])
        seen.until_as_cold()


def test_skills_come_go_and_are_edited(watched, plugins, manifest, write_skill):
    manifest()
    skills = plugins / "demo" / "skills"
    with watched(plugins=[plugins]) as seen:
        write_skill(skills, "pdf")
        seen.until_names("pdf")
        write_skill(skills, "docx")
        seen.until_names("docx", "pdf")
        write_skill(skills, "pdf", description="Edited.")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "Edited.")
        shutil.rmtree(skills / "docx")
        seen.until_names("pdf")
        seen.until_as_cold()


def test_a_skill_that_comes_too_deep_in_an_open_plugin_is_not_found(watched, plugins, write_skill):
    folder = plugins / "demo"
    write_skill(folder / "skills", "pdf")
    (folder / "skills" / "group").mkdir()
    (folder / "plugin.json").write_text(json.dumps({"$schema": PLUGIN_SCHEMA, "name": "demo"}))
    with watched(plugins=[plugins]) as seen:
        write_skill(folder / "skills" / "group", "deeper")
        write_skill(folder / "skills" / "group" / "sub", "deepest")
        write_skill(folder / "skills", "docx")
        seen.until_names("docx", "pdf")
        seen.until_as_cold()


def test_skills_that_are_a_link_may_be_switched_to_another_folder(watched, plugins, write_skill):
    folder = plugins / "demo"
    write_skill(folder / "v1", "one")
    write_skill(folder / "v2", "two")
    (folder / "skills").symlink_to("v1")
    (folder / "plugin.json").write_text(json.dumps({"$schema": PLUGIN_SCHEMA, "name": "demo"}))
    with watched(plugins=[plugins]) as seen:
        seen.until_names("one")
        (folder / "next").symlink_to("v2")
        (folder / "next").replace(folder / "skills")
        seen.until_names("two")
        (folder / "next").symlink_to("..")
        (folder / "next").replace(folder / "skills")
        seen.until_names()
        seen.until_as_cold()


def test_a_skill_of_an_open_plugin_that_breaks_keeps_its_last_good_version(
    watched, plugins, write_skill
):
    folder = plugins / "demo"
    skill = write_skill(folder / "skills", "pdf", description="Good.")
    (folder / "plugin.json").write_text(json.dumps({"$schema": PLUGIN_SCHEMA, "name": "demo"}))
    with watched(plugins=[plugins]) as seen:
        (skill / "SKILL.md").write_text("---\nname: Pdf\ndescription: d\n---\nb\n")
        seen.until_event("stale", "pdf")
        assert seen.app.catalog.skills["pdf"].description == "Good."
        write_skill(folder / "skills", "pdf", description="Mended.")
        seen.until_event("recovered", "pdf")
        seen.until_as_cold()


# ---- our own part -------------------------------------------------------------------------


@pytest.fixture
def extended(plugins, write_skill):
    """Write an open plugin with a tool that says a word."""

    def write(word):
        ours = plugins / "demo" / "dev.satchel"
        ours.mkdir(parents=True, exist_ok=True)
        (ours / "tools.py").write_text(TOOL.replace("WORD", word))
        manifest = {"$schema": PLUGIN_SCHEMA, "name": "demo"}
        (plugins / "demo" / "plugin.json").write_text(json.dumps(manifest))
        return ours

    write_skill(plugins / "demo" / "skills", "pdf")
    return write


def say(seen):
    return asyncio.run(seen.app.session().call("greet", {"name": "Ada"})).text


def is_on(seen):
    return "greet" in seen.app.catalog.tools


def test_tools_of_our_part_are_the_new_ones_at_the_next_call(watched, plugins, extended):
    ours = extended("aaaa")
    (ours / "toolkit.yaml").write_text("active: true\n")
    with watched(plugins=[plugins]) as seen:
        for letter in "bcdef":
            extended(letter * 4)
            seen.until(lambda letter=letter: say(seen) == f"{letter * 4} Ada")
        shutil.rmtree(ours)
        seen.until(lambda: not is_on(seen))
        assert "pdf" in seen.app.catalog.skills
        seen.until_as_cold()


@pytest.mark.parametrize("order", [["tools.py", "toolkit.yaml"], ["toolkit.yaml", "tools.py"]])
def test_tools_of_our_part_go_if_its_folder_goes_long_after_its_files(
    watched, plugins, extended, order
):
    ours = extended("aaaa")
    (ours / "toolkit.yaml").write_text("active: true\n")
    with watched(plugins=[plugins]) as seen:
        seen.until(lambda: is_on(seen))
        for name in order:
            (ours / name).unlink()
        seen.until_event("stale", "demo")
        assert is_on(seen)
        ours.rmdir()
        seen.until(lambda: not is_on(seen))
        assert "pdf" in seen.app.catalog.skills
        seen.until_as_cold()


@pytest.mark.parametrize(
    ("file", "broken"),
    [
        ("tools.py", "def greet(:\n"),
        ("tools.py", "raise RuntimeError('boom')\n"),
        ("toolkit.yaml", "groups: x\n"),
    ],
)
def test_the_extension_broken_keeps_the_last_good_tools_and_a_fix_recovers(
    watched, plugins, extended, file, broken
):
    ours = extended("Good")
    (ours / "toolkit.yaml").write_text("active: true\n")
    with watched(plugins=[plugins]) as seen:
        (ours / file).write_text(broken)
        seen.until_event("stale", "demo")
        assert say(seen) == "Good Ada"
        assert "pdf" in seen.app.catalog.skills
        (ours / "toolkit.yaml").write_text("active: true\n")
        extended("Mended")
        seen.until_event("recovered", "demo")
        seen.until(lambda: say(seen) == "Mended Ada")
        seen.until_as_cold()


def test_a_plugin_may_change_its_format(watched, plugins, extended, write_plugin):
    with watched(plugins=[plugins]) as seen:
        write_plugin(plugins, "demo", "version: 1\n", tools=TOOL)
        seen.until(lambda: is_on(seen) and version(seen) == "1")
        extended("Open")
        seen.until(lambda: version(seen) == "")
        seen.until_as_cold()
        (plugins / "demo" / "plugin.json").unlink()
        seen.until(lambda: version(seen) == "1")
        seen.until_as_cold()


def write_open(plugins, **fields):
    whole = {"$schema": PLUGIN_SCHEMA, "name": "demo"} | fields
    (plugins / "demo").mkdir(exist_ok=True)
    (plugins / "demo" / "plugin.json").write_text(json.dumps(whole))


def test_11_3_while_our_part_is_broken_the_rest_is_that_of_now(
    watched, plugins, servers, write_skill
):
    """Only the tools come from the last good version; a server that is removed is gone."""
    write_open(plugins, version="1")
    write_skill(plugins / "demo" / "skills", "pdf")
    servers("a")
    tools = plugins / "demo" / "dev.satchel" / "tools.py"
    tools.parent.mkdir()
    tools.write_text(TOOL)
    with watched(plugins=[plugins]) as seen:
        for broken in ("def", "1/0"):
            tools.write_text(broken)
            seen.until(lambda: seen.app.catalog.plugins["demo"].state == "stale")
            servers("b")
            write_open(plugins, version=f"2 {broken}")
            seen.until(lambda broken=broken: version(seen) == f"2 {broken}")
            assert serving(seen) == ["b"]
            assert list(seen.app.catalog.tools) == ["greet"]
            (plugins / "demo" / "mcp.json").unlink()
            seen.until(lambda: serving(seen) == [])
            tools.write_text(TOOL)
            seen.until(lambda: seen.app.catalog.plugins["demo"].state == "ok")
            seen.until_as_cold()


def test_5_2_of_a_plugin_that_is_rejected_nothing_more_is_discovered(watched, plugins, write_skill):
    write_open(plugins)
    write_skill(plugins / "demo" / "skills", "one")
    with watched(plugins=[plugins]) as seen:
        write_open(plugins, name=1)
        seen.until_event("stale", "demo")
        write_skill(plugins / "demo" / "skills", "two")
        write_skill(plugins, "other")
        (plugins / "tool").mkdir()
        (plugins / "tool" / "toolkit.yaml").write_text("name: tool\n")
        seen.until(lambda: "tool" in seen.app.catalog.plugins)
        assert list(seen.app.catalog.skills) == ["one"]
        write_open(plugins)
        seen.until_names("one", "two")
        seen.until_as_cold()
