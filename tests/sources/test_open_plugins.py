"""Open plugins and Claude bundles as a Satchel loads them.

A name that begins with a section tests what Agent Plugins 1.0.0 demands there of a client.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satchel import Satchel, Settings
from satchel.cli.main import cli
from satchel.settings import Limits
from satchel.sources.plugin_formats import NAMESPACE
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root

PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MCP_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
ALONE = Settings(mcp_servers=False)
"""Servers are known, but not started."""
STDIO = {"type": "stdio", "command": "server"}
TOOL = """
from satchel import tool

@tool
def greet(name: str) -> str:
    "Greet somebody."
    return "Hello " + name
"""


@pytest.fixture
def plugins(tmp_path) -> Path:
    (tmp_path / "plugins").mkdir()
    return tmp_path / "plugins"


@pytest.fixture
def write(plugins, write_skill):
    """Write an open plugin with a skill, and with servers if any are given."""

    def write(name="demo", manifest=None, servers=None, **fields) -> Path:
        folder = plugins / name
        write_skill(folder / "skills", f"use-{name}")
        whole = {"$schema": PLUGIN_SCHEMA, "name": name} | fields
        (folder / "plugin.json").write_text(manifest or json.dumps(whole))
        if servers is not None:
            write_servers(folder, servers)
        return folder

    return write


def write_servers(folder: Path, servers) -> None:
    (folder / "mcp.json").write_text(json.dumps({"$schema": MCP_SCHEMA, "mcpServers": servers}))


@pytest.fixture
def catalog(plugins):
    """Load all plugins."""
    return lambda **named: Satchel(settings=ALONE, plugins=[plugins], **named).catalog


def codes(entry) -> list[str]:
    return [item.code for item in entry.diagnostics]


def server_names(entry) -> list[str]:
    return [server.name for server in entry.servers]


# ---- 4.1 General requirements: containment ------------------------------------------------


def test_4_1_2_the_manifest_is_at_the_root_and_nowhere_else(plugins, catalog, write):
    write().joinpath("plugin.json").rename(plugins / "demo" / "skills" / "plugin.json")
    assert "demo" not in catalog().plugins


def test_4_1_3_links_may_lead_anywhere_inside_the_plugin(catalog, write, write_skill):
    folder = write(servers={"a": {**STDIO, "command": "./bin/server", "cwd": "./bin"}})
    write_skill(folder / "elsewhere", "linked")
    (folder / "skills" / "linked").symlink_to("../elsewhere/linked")
    (folder / "real").mkdir()
    (folder / "bin").symlink_to("real")
    (folder / "mcp.json").rename(folder / "real" / "servers")
    (folder / "mcp.json").symlink_to("real/servers")
    (folder / "plugin.json").rename(folder / "real" / "manifest")
    (folder / "plugin.json").symlink_to("real/manifest")
    loaded = catalog()
    assert sorted(loaded.skills) == ["linked", "use-demo"]
    assert server_names(loaded.plugins["demo"]) == ["a"]
    assert codes(loaded.plugins["demo"]) == ["mcp-not-started"]


def test_4_1_3_the_plugin_itself_may_be_reached_through_a_link(plugins, catalog, write):
    write().rename(plugins / ".real")
    (plugins / "demo").symlink_to(".real")
    assert list(catalog().skills) == ["use-demo"]


@pytest.mark.parametrize("target", ["../outside.json", "/proc/self/environ", "../nowhere", "."])
def test_4_1_a_manifest_that_leads_out_rejects_the_plugin(plugins, catalog, write, target):
    folder = write()
    (folder / "plugin.json").rename(plugins / "outside.json")
    (folder / "plugin.json").symlink_to(target)
    loaded = catalog()
    (entry,) = [item for item in loaded.all_plugins if item.name == "demo"]
    assert (entry.state, "plugin-unreadable" in codes(entry)) == ("failed", True)
    assert loaded.skills == {}


def test_4_1_skills_that_lead_out_are_invalid_and_servers_are_served(
    tmp_path, catalog, write, write_skill
):
    folder = write(servers={"a": STDIO})
    write_skill(tmp_path / "outside", "stranger")
    (folder / "skills").rename(folder / "was")
    (folder / "skills").symlink_to(tmp_path / "outside")
    loaded = catalog()
    assert (loaded.skills, server_names(loaded.plugins["demo"])) == ({}, ["a"])
    assert [item.code for item in loaded.source_diagnostics] == ["source-link-outside"]


def test_4_1_servers_that_lead_out_are_invalid_and_skills_are_served(tmp_path, catalog, write):
    folder = write(servers={"a": STDIO})
    (folder / "mcp.json").rename(tmp_path / "mcp.json")
    (folder / "mcp.json").symlink_to(tmp_path / "mcp.json")
    loaded = catalog()
    assert (list(loaded.skills), server_names(loaded.plugins["demo"])) == (["use-demo"], [])
    assert "mcp-invalid" in codes(loaded.plugins["demo"])


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_4_1_a_skill_that_leads_out_is_skipped_and_the_others_are_served(
    tmp_path, catalog, write, write_skill, kind
):
    folder = write()
    stranger = write_skill(tmp_path / "outside", "stranger")
    if kind == "folder":
        (folder / "skills" / "stranger").symlink_to(stranger)
    else:
        (folder / "skills" / "stranger").mkdir()
        (folder / "skills" / "stranger" / "SKILL.md").symlink_to(stranger / "SKILL.md")
    loaded = catalog()
    assert list(loaded.skills) == ["use-demo"]
    code = "source-link-outside" if kind == "folder" else "skill-unreadable"
    (problem,) = [item for item in loaded.diagnostics if item.code == code]
    assert "outside" in problem.message


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": "./../server"},
        {"command": "./out/server"},
        {"cwd": "./.."},
        {"cwd": "./out"},
        {"cwd": "${PLUGIN_ROOT}/../x"},
        {"cwd": "${PLUGIN_DATA}/../x"},
        {"cwd": "${PLUGIN_DATA}/../../plugin-data-2"},
        {"command": "./a\0"},
        {"cwd": "./a\0"},
    ],
)
def test_4_1_a_server_that_leads_out_is_skipped_and_the_others_are_served(
    tmp_path, catalog, write, wrong
):
    folder = write(servers={"bad": STDIO | wrong, "good": STDIO})
    (folder / "out").symlink_to(tmp_path)
    entry = catalog().plugins["demo"]
    assert server_names(entry) == ["good"]
    assert codes(entry) == ["mcp-server-invalid", "mcp-not-started"]


def test_4_1_5_arguments_and_variables_are_not_taken_for_paths(catalog, write):
    opaque = {"args": ["../../x", "/etc/passwd"], "env": {"A": "../x"}}
    write(servers={"a": STDIO | opaque})
    assert server_names(catalog().plugins["demo"]) == ["a"]


def test_4_1_another_path_that_leads_out_is_denied(tmp_path, catalog, write, write_skill):
    folder = write()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "skills" / "use-demo" / "notes.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "tools.py").write_text(TOOL)
    (folder / NAMESPACE).symlink_to(tmp_path / "code")
    loaded = catalog()
    assert [file.name for file in loaded.skills["use-demo"].files] == ["SKILL.md"]
    assert (loaded.plugins["demo"].state, loaded.tools) == ("ok", {})
    assert "source-link-outside" in codes(loaded.plugins["demo"])


# ---- 5 Manifest ---------------------------------------------------------------------------


def test_5_1_a_folder_with_a_plugin_json_is_a_plugin(catalog, write):
    write(version="1.2", description="Shows how.")
    entry = catalog().plugins["demo"]
    assert (entry.version, entry.description, entry.state) == ("1.2", "Shows how.", "ok")
    assert entry.diagnostics == ()


def test_5_1_no_other_file_changes_what_plugin_json_declares(plugins, catalog, write):
    folder = write(version="1")
    (folder / "toolkit.yaml").write_text("name: other\nversion: 2\nnotes: Hi.\n")
    (folder / "tools.py").write_text(TOOL)
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "third"}')
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "toolkit.yaml").write_text("name: fourth\nversion: 4\nskills: x\n")
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert [item.name for item in loaded.all_plugins if item.scope == entry.scope] == ["demo"]
    assert (entry.version, list(loaded.skills), loaded.tools) == ("1", ["use-demo"], {})
    assert codes(entry) == ["plugin-field-unknown"] * 3 + ["plugin-toolkit-ignored"]


@pytest.mark.parametrize(
    "manifest",
    [
        "{",
        "[]",
        json.dumps({"name": "demo"}),
        json.dumps({"$schema": PLUGIN_SCHEMA}),
        json.dumps({"$schema": PLUGIN_SCHEMA, "name": "No"}),
        json.dumps({"$schema": PLUGIN_SCHEMA, "name": "demo", "version": 1}),
        json.dumps({"$schema": PLUGIN_SCHEMA.replace("1.0.0", "3.0.0"), "name": "demo"}),
        json.dumps({"$schema": PLUGIN_SCHEMA, "name": "demo", "extensions": {"a": 1}}),
    ],
)
def test_5_2_a_fatal_manifest_rejects_the_whole_plugin(plugins, catalog, write, manifest):
    folder = write(manifest=manifest, servers={"a": STDIO})
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "tools.py").write_text("open(__file__ + '.ran', 'w')\n" + TOOL)
    write("other")
    loaded = catalog()
    assert (list(loaded.plugins), list(loaded.skills), loaded.tools) == (
        ["other"],
        ["use-other"],
        {},
    )
    (broken,) = [entry for entry in loaded.all_plugins if entry.name == "demo"]
    assert (broken.state, broken.servers) == ("failed", ())
    assert not (folder / NAMESPACE / "tools.py.ran").exists()


def test_5_2_unknown_fields_are_reported_and_everything_is_served(catalog, write):
    write(servers={"a": STDIO}, hooks={}, extensions=1)
    loaded = catalog()
    assert list(loaded.skills) == ["use-demo"]
    assert codes(loaded.plugins["demo"]) == ["plugin-field-unknown"] * 2 + ["mcp-not-started"]


def test_5_2_and_7_2_1_nothing_is_fetched(catalog, write, monkeypatch):
    def refuse(*_args, **_named):
        raise AssertionError("somebody went to the network")

    monkeypatch.setattr(socket, "socket", refuse)
    write(servers={"a": {"type": "sse", "url": "https://example.com/"}})
    assert server_names(catalog().plugins["demo"]) == ["a"]


def test_5_5_a_name_that_satchel_reserves_is_valid_for_a_plugin(catalog, write):
    folder = write("basic")
    assert list(catalog().skills) == ["use-basic"]
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "tools.py").write_text(TOOL)
    loaded = catalog()
    assert (list(loaded.skills), loaded.tools) == (["use-basic"], {})
    assert codes(loaded.plugins["basic"]) == ["plugin-name-shape"]


# ---- 6 Component discovery ----------------------------------------------------------------


def test_6_1_components_are_where_the_format_says_whatever_the_manifest_says(
    catalog, write, write_skill
):
    folder = write(skills="./more", mcpServers={"b": STDIO})
    write_skill(folder / "more", "unseen")
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"c": STDIO}}))
    loaded = catalog()
    assert (list(loaded.skills), loaded.plugins["demo"].servers) == (["use-demo"], ())


def test_6_2_a_missing_location_is_not_an_error(plugins, catalog):
    (plugins / "demo").mkdir()
    manifest = {"$schema": PLUGIN_SCHEMA, "name": "demo"}
    (plugins / "demo" / "plugin.json").write_text(json.dumps(manifest))
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert (entry.state, loaded.source_diagnostics) == ("ok", ())
    assert codes(entry) == ["plugin-unused"]


@pytest.mark.parametrize("kind", ["file", "dangling", "fifo"])
def test_6_2_skills_that_are_not_a_folder_are_invalid_and_servers_are_served(
    plugins, catalog, write, kind
):
    folder = write(servers={"a": STDIO})
    path = folder / "skills"
    path.rename(folder / "was")
    {
        "file": path.touch,
        "dangling": lambda: path.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    loaded = catalog()
    assert (loaded.skills, server_names(loaded.plugins["demo"])) == ({}, ["a"])
    assert [item.code for item in loaded.source_diagnostics] == ["source-missing"]


@pytest.mark.parametrize("kind", ["folder", "dangling", "fifo"])
def test_6_2_servers_that_are_not_a_file_are_invalid_and_skills_are_served(catalog, write, kind):
    path = write() / "mcp.json"
    {
        "folder": path.mkdir,
        "dangling": lambda: path.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    loaded = catalog()
    assert list(loaded.skills) == ["use-demo"]
    assert "mcp-invalid" in codes(loaded.plugins["demo"])


# ---- 7.1 Skills ---------------------------------------------------------------------------


def test_7_1_only_folders_directly_in_skills_are_searched(plugins, catalog, write, write_skill):
    folder = write()
    write_skill(folder / "skills" / "group", "deeper")
    write_skill(folder / "skills" / "use-demo" / "references", "inner")
    (folder / "skills" / "SKILL.md").write_text("---\nname: skills\ndescription: d\n---\nx\n")
    loaded = catalog()
    assert list(loaded.skills) == ["use-demo"]
    assert loaded.source_diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "no frontmatter",
        "---\nname: bad\n---\nb\n",
        "---\nname: Bad\ndescription: d\n---\nb\n",
        "---\nname: other\ndescription: d\n---\nb\n",
        "---\ndescription: d\n---\nb\n",
        "---\nname: bad\ndescription: Use when: it is\n---\nb\n",
        f"---\nname: bad\ndescription: {'d' * 1025}\n---\nb\n",
        f"---\nname: bad\ndescription: d\ncompatibility: {'c' * 501}\n---\nb\n",
        "---\nname: bad\ndescription: d\nlicense: [MIT]\n---\nb\n",
    ],
)
def test_7_1_a_skill_that_breaks_its_format_is_skipped_and_reported(
    catalog, write, write_skill, text
):
    folder = write(servers={"a": STDIO})
    write_skill(folder / "skills", "bad", text=text)
    loaded = catalog()
    (bad,) = [entry for entry in loaded.all_skills if entry.name != "use-demo"]
    assert (list(loaded.skills), bad.state) == (["use-demo"], "failed")
    assert "error" in {item.severity for item in bad.diagnostics}
    assert server_names(loaded.plugins["demo"]) == ["a"]


def test_7_1_what_the_format_does_not_forbid_is_served(catalog, write, write_skill):
    folder = write()
    write_skill(
        folder / "skills", "more", text="---\nname: more\ndescription: d\nversion: 1\n---\nb\n"
    )
    assert sorted(catalog().skills) == ["more", "use-demo"]


def test_7_1_a_skill_md_that_is_not_a_file_is_not_a_skill(catalog, write):
    (write() / "skills" / "odd" / "SKILL.md").mkdir(parents=True)
    assert list(catalog().skills) == ["use-demo"]


# ---- 7.2 MCP servers ----------------------------------------------------------------------


def test_7_2_1_servers_are_read_and_one_diagnostic_says_that_nothing_starts_them(
    tmp_path, catalog, write
):
    started = tmp_path / "started"
    folder = write(servers={"a": {"type": "stdio", "command": "./run"}, "b": STDIO})
    (folder / "run").write_text(f"#!/bin/sh\ntouch {started}\n")
    (folder / "run").chmod(0o755)
    entry = catalog().plugins["demo"]
    assert (server_names(entry), codes(entry)) == (["a", "b"], ["mcp-not-started"])
    assert not started.exists()


@pytest.mark.parametrize("text", ["{", '{"mcpServers": {}}', "[]", "\0", '{"$schema": "x"}'])
def test_7_2_2_a_broken_file_disables_the_servers_and_nothing_else(catalog, write, text):
    folder = write()
    (folder / "mcp.json").write_text(text)
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert (entry.state, entry.servers, list(loaded.skills)) == ("ok", (), ["use-demo"])
    assert set(codes(entry)) == {"mcp-invalid"}


def test_7_2_2_an_invalid_server_is_skipped_and_reported(catalog, write):
    write(servers={"bad": {"type": "ws"}, "good": STDIO})
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert (entry.state, server_names(entry), list(loaded.skills)) == ("ok", ["good"], ["use-demo"])
    assert codes(entry) == ["mcp-server-invalid", "mcp-not-started"]


# ---- 8 Client extensions ------------------------------------------------------------------


def test_8_2_the_extension_is_in_the_folder_of_its_namespace(plugins, write):
    folder = write(description="Greets.")
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "toolkit.yaml").write_text("active: true\nnotes: Be kind.\n")
    (folder / NAMESPACE / "tools.py").write_text("from .words import WORD\n" + TOOL)
    (folder / NAMESPACE / "words.py").write_text("WORD = 'Hello '\n")
    app = Satchel(settings=ALONE, plugins=[plugins])
    assert app.catalog.plugins["demo"].diagnostics == ()
    group = app.catalog.groups["demo"]
    assert (group.description, group.notes, group.tools) == ("Greets.", "Be kind.", ("greet",))
    assert asyncio.run(app.session().call("greet", {"name": "Ada"})).text == "Hello Ada"
    assert app.catalog.tools["greet"].path == str(folder / NAMESPACE / "tools.py")


def test_8_2_the_extension_needs_no_manifest_and_sees_no_code_beside_it(plugins, catalog, write):
    folder = write()
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "tools.py").write_text(TOOL)
    (folder / "tools.py").write_text("raise RuntimeError")
    loaded = catalog()
    assert (list(loaded.tools), loaded.plugins["demo"].diagnostics) == (["greet"], ())


def test_8_1_only_our_own_extension_data_in_the_manifest_is_reported(catalog, write):
    write(extensions={NAMESPACE: {"notes": "n"}, "com.example.client": {"notes": 3}})
    entry = catalog().plugins["demo"]
    assert (codes(entry), entry.state) == (["plugin-field-unknown"], "ok")
    assert NAMESPACE in entry.diagnostics[0].message


def test_8_2_folders_of_other_namespaces_are_not_read(catalog, write):
    folder = write()
    (folder / "com.example.client" / "skills" / "x").mkdir(parents=True)
    (folder / "com.example.client" / "tools.py").write_text("raise RuntimeError")
    (folder / "com.example.client" / "out").symlink_to("/")
    loaded = catalog()
    assert (loaded.plugins["demo"].diagnostics, loaded.tools) == ((), {})
    assert "demo" not in loaded.groups


def test_an_extension_that_brings_nothing_is_reported(plugins, catalog, write):
    shutil.rmtree(write() / "skills")
    (plugins / "demo" / NAMESPACE).mkdir()
    assert codes(catalog().plugins["demo"]) == ["plugin-unused"]


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("toolkit.yaml", "groups: x\n", "plugin-field-type"),
        ("toolkit.yaml", "groups: [", "yaml-invalid"),
        ("tools.py", "def f(:\n", "plugin-syntax"),
        ("tools.py", "raise RuntimeError('boom')\n", "plugin-import-failed"),
        ("tools.py", "raise SystemExit(3)\n", "plugin-import-failed"),
    ],
)
def test_11_3_a_broken_extension_disables_nothing_else(catalog, write, file, text, code):
    folder = write(servers={"a": STDIO})
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "tools.py").write_text(TOOL)
    (folder / NAMESPACE / file).write_text(text)
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert (entry.state, list(loaded.skills), server_names(entry)) == (
        "degraded",
        ["use-demo"],
        ["a"],
    )
    assert (loaded.tools, code in codes(entry)) == ({}, True)


# ---- 11 Client conformance ----------------------------------------------------------------


def test_11_1_a_plugin_can_be_loaded_from_the_path_of_its_folder(write):
    folder = write()
    assert list(Satchel(settings=ALONE, plugins=[folder]).catalog.skills) == ["use-demo"]


def test_11_3_parts_that_the_format_does_not_know_are_ignored(catalog, write):
    folder = write()
    for name in ("commands", "agents", "hooks", "rules"):
        (folder / name).mkdir()
        (folder / name / "x.md").touch()
    assert catalog().plugins["demo"].diagnostics == ()


# ---- hostile ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with a good plugin, beside which the tests write broken ones."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "good").mkdir()
    manifest = {"$schema": PLUGIN_SCHEMA, "name": "good"}
    (folder / "good" / "plugin.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize("file", ["plugin.json", ".claude-plugin/plugin.json", "mcp.json"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary() | st.text().map(lambda text: json.dumps({"name": text}).encode()))
def test_no_bytes_raise_or_affect_another_plugin(world, file, data):
    path = world / "bad" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if file == "mcp.json":
        manifest = {"$schema": PLUGIN_SCHEMA, "name": "bad"}
        (world / "bad" / "plugin.json").write_text(json.dumps(manifest))
    path.write_bytes(data)
    loaded = Satchel(settings=ALONE, plugins=[world]).catalog.plugins
    assert "good" in loaded
    assert file != "mcp.json" or loaded["bad"].diagnostics
    shutil.rmtree(world / "bad")


@pytest.mark.parametrize("file", ["plugin.json", "mcp.json", ".claude-plugin/plugin.json"])
@pytest.mark.parametrize("data", ['{"a":' * 200_000, "[" * 2_000_000, " " * 20_000_000])
def test_deep_and_huge_files_end_in_a_diagnostic(plugins, write, catalog, file, data):
    write("good")
    if file == "mcp.json":
        write("bad")
    path = plugins / "bad" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data)
    loaded = catalog()
    (bad,) = [entry for entry in loaded.all_plugins if entry.name == "bad"]
    assert {"plugin-json-invalid", "mcp-invalid"} & set(codes(bad))
    assert "good" in loaded.plugins


def test_a_large_tree_beside_the_manifest_is_not_read(catalog, write):
    folder = write()
    for number in range(2500):
        (folder / "server" / str(number)).mkdir(parents=True)
    assert catalog().plugins["demo"].diagnostics == ()


def test_a_large_tree_in_the_extension_disables_at_most_the_extension(catalog, write):
    folder = write(servers={"a": STDIO})
    for name in ("a.md", "b.txt"):
        (folder / NAMESPACE / name).mkdir(parents=True)
    for number in range(2100):
        (folder / NAMESPACE / f"{number}.md").touch()
        (folder / NAMESPACE / f"x{number}.py").touch()
    (folder / NAMESPACE / "zoo.py").write_text(TOOL)
    (folder / NAMESPACE / "toolkit.yaml").write_text("tools: zoo\n")
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert (list(loaded.skills), server_names(entry), list(loaded.tools)) == (
        ["use-demo"],
        ["a"],
        ["greet"],
    )
    assert codes(entry) == ["source-too-many", "mcp-not-started"]


def test_large_data_beside_the_code_is_not_code(catalog, write):
    folder = write()
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "tools.py").write_text(TOOL)
    with (folder / NAMESPACE / "log.txt").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    assert (list(catalog().tools), codes(catalog().plugins["demo"])) == (["greet"], [])


def test_an_extension_without_code_is_not_a_group(catalog, write):
    folder = write()
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "README.md").write_text("For authors.")
    assert "demo" not in catalog().groups


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("toolkit.yaml", "notes: guide.md\nactive: maybe\ngroups: {more: {}}\n"),
        ("tools.py", TOOL + "def f(:\n"),
    ],
)
def test_a_broken_extension_lists_nothing_that_is_not_served(plugins, write, file, text):
    folder = write()
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "toolkit.yaml").write_text("notes: guide.md\ngroups: {more: {}}\n")
    (folder / NAMESPACE / "guide.md").write_text("Be kind.")
    (folder / NAMESPACE / "tools.py").write_text(TOOL)
    (folder / NAMESPACE / file).write_text(text)
    (loaded,) = scan_plugins(search_root(plugins, RootKind.PLUGINS), Limits()).findings.values()
    assert (loaded.is_degraded, loaded.declared) == (True, ())
    assert (loaded.manifest.groups, loaded.manifest.notes) == ((), "")


def test_all_errors_of_the_extension_are_reported_at_once(catalog, write):
    folder = write()
    (folder / NAMESPACE).mkdir()
    (folder / NAMESPACE / "toolkit.yaml").write_text("active: maybe\nnotes: gone.md\n")
    (folder / NAMESPACE / "tools.py").write_text("def f(:\n")
    loaded = [(item.code, item.where.line) for item in catalog().plugins["demo"].diagnostics]
    assert loaded == [("plugin-field-type", 1), ("plugin-field-type", 2), ("plugin-syntax", 1)]


def test_a_server_that_leads_out_is_reported_on_its_line(catalog, write):
    folder = write()
    server = '{"type": "stdio",\n"command": "x",\n"cwd": "./.."}'
    (folder / "mcp.json").write_text(
        f'{{"$schema": "{MCP_SCHEMA}",\n"mcpServers": {{\n"a": {server}}}}}'
    )
    (problem,) = catalog().plugins["demo"].diagnostics
    assert (problem.code, problem.where.line) == ("mcp-server-invalid", 5)


def test_misplaced_files_are_reported(catalog, write):
    folder = write()
    (folder / ".mcp.json").write_text("{}")
    (folder / "tools.py").write_text("X = 1")
    assert codes(catalog().plugins["demo"]) == ["mcp-invalid"]
    (folder / "tools.py").write_text(TOOL)
    assert codes(catalog().plugins["demo"]) == ["plugin-toolkit-ignored", "mcp-invalid"]
    write_servers(folder, {})
    (folder / NAMESPACE).mkdir()
    assert codes(catalog().plugins["demo"]) == []


def test_servers_of_a_claude_bundle_in_the_same_folder_are_its_own(catalog, write):
    folder = write()
    (folder / ".mcp.json").write_text("{}")
    (folder / ".claude-plugin").mkdir()
    assert codes(catalog().plugins["demo"]) == []


# ---- Claude bundles -----------------------------------------------------------------------


@pytest.fixture
def bundle(plugins, write_skill):
    """Write a Claude bundle with a skill."""

    def bundle(servers=None, **fields) -> Path:
        folder = plugins / "demo"
        write_skill(folder / "skills", "use-demo")
        (folder / ".claude-plugin").mkdir()
        manifest = {"name": "demo"} | fields
        (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps(manifest))
        if servers is not None:
            (folder / ".mcp.json").write_text(json.dumps(servers))
        return folder

    return bundle


def test_a_bundle_provides_its_skills_and_metadata(catalog, bundle):
    bundle(version="2.0", description="d", author={"name": "A"}, keywords=["k"], category="c")
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert (entry.version, entry.description, entry.diagnostics) == ("2.0", "d", ())
    assert (list(loaded.skills), "demo" in loaded.groups) == (["use-demo"], False)


def test_other_parts_of_a_bundle_are_ignored_and_reported_once(catalog, bundle):
    folder = bundle(hooks="./h.json", channels=[])
    for name in ("output-styles", "agents", "hooks"):
        (folder / name).mkdir()
    (folder / "tools.py").write_text("raise RuntimeError")
    (item,) = catalog().plugins["demo"].diagnostics
    assert (item.code, item.severity) == ("plugin-parts-ignored", "info")
    assert item.message.endswith("not its agents, channels, hooks, outputStyles")


@pytest.mark.parametrize("around", [lambda servers: servers, lambda s: {"mcpServers": s}])
def test_the_servers_of_a_bundle_are_known(catalog, bundle, around):
    servers = {
        "local": {"command": "${CLAUDE_PLUGIN_ROOT}/x", "args": ["-y"], "env": {"A": "${B}"}},
        "remote": {"type": "http", "url": "https://x/${T}", "headers": {"Auth": "${T:-}"}},
        "plain": {"url": "https://y"},
        "old": {"type": "sse", "url": "https://z"},
        "odd": {"type": "ws", "url": "wss://x"},
        "none": 3,
    }
    bundle(around(servers))
    entry = catalog().plugins["demo"]
    assert [(server.name, server.table.get("transport")) for server in entry.servers] == [
        ("local", None),
        ("remote", "streamable-http"),
        ("plain", None),
        ("old", "sse"),
    ]
    assert entry.servers[0].table["command"] == "${CLAUDE_PLUGIN_ROOT}/x"
    assert codes(entry) == ["mcp-server-invalid"] * 2 + ["mcp-not-started"]


def test_a_bundle_may_say_as_which_client_to_log_in(catalog, bundle):
    oauth = {"clientId": "us", "callbackPort": 8765, "scopes": "read write", "xaa": True}
    odd = {"clientId": 3, "callbackPort": "no", "scopes": [None, "a"], "redirectUri": "https://x"}
    bundle({name: {"url": "https://x/", "oauth": it} for name, it in (("a", oauth), ("b", odd))})
    one, other = catalog().plugins["demo"].servers
    assert one.table["oauth"] == {
        "client-id": "us",
        "redirect": "http://localhost:8765/callback",
        "scopes": ("read", "write"),
    }
    assert other.table["oauth"] == {"scopes": ("a",)}


def test_a_bundle_may_name_its_servers_in_the_manifest(catalog, bundle):
    folder = bundle(
        {"a": {"command": "first"}, "b": {"command": "b"}},
        mcpServers=["./conf/more.json", {"a": {"command": "second"}}],
    )
    (folder / "conf").mkdir()
    (folder / "conf" / "more.json").write_text('{"c": {"command": "c"}}')
    entry = catalog().plugins["demo"]
    commands = {server.name: server.table["command"] for server in entry.servers}
    assert commands == {"a": "second", "b": "b", "c": "c"}


def test_numbers_and_booleans_of_servers_become_text(catalog, bundle):
    bundle(
        {
            "a": {
                "command": "x",
                "args": ["--port", 3000, True, 0.5],
                "env": {"PORT": 3000, "ON": False, "NONE": None},
            },
            "b": {"type": "http", "url": "https://x", "headers": {"N": 1}},
        }
    )
    local, remote = catalog().plugins["demo"].servers
    assert local.table["args"] == ("--port", "3000", "true", "0.5")
    assert local.table["env"] == {"PORT": "3000", "ON": "false"}
    assert remote.table["headers"] == {"N": "1"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"args": [[]]},
        {"args": {}},
        {"args": "-y"},
        {"env": 3},
        {"env": {"A": {}}},
        {"disabled": "no"},
    ],
)
def test_a_value_that_cannot_become_text_disables_its_server(catalog, bundle, wrong):
    bundle({"bad": {"command": "x"} | wrong, "good": {"command": "x"}})
    entry = catalog().plugins["demo"]
    assert server_names(entry) == ["good"]
    assert codes(entry) == ["mcp-server-invalid", "mcp-not-started"]


def test_a_server_that_its_file_disables_is_named_and_not_used(catalog, bundle):
    bundle({"off": {"command": "x", "disabled": True}, "on": {"command": "x", "disabled": False}})
    entry = catalog().plugins["demo"]
    assert server_names(entry) == ["on"]
    assert codes(entry) == ["mcp-disabled", "mcp-not-started"]
    assert entry.diagnostics[0].message == "server 'off' is disabled in this file"
    assert entry.diagnostics[0].where.line


def test_fields_of_a_bundle_without_target_are_reported(catalog, bundle):
    bundle(mcpServers=5, skills=[7, "./nowhere"])
    loaded = catalog()
    entry = loaded.plugins["demo"]
    assert list(loaded.skills) == ["use-demo"]
    assert sorted(codes(entry)) == ["plugin-field-unknown"] * 2 + ["source-missing"]
    assert all(item.where.line for item in entry.diagnostics)


def test_packed_servers_of_a_bundle_are_ignored(catalog, bundle):
    folder = bundle(mcpServers=["./x.mcpb", "https://example.com/y.mcpb"])
    (folder / "x.mcpb").write_bytes(b"PK\xff")
    (item,) = catalog().plugins["demo"].diagnostics
    assert item.code == "plugin-parts-ignored"
    assert "x.mcpb" in item.message


def test_a_bundle_may_keep_skills_elsewhere_and_a_skill_is_found_once(catalog, bundle, write_skill):
    folder = bundle(skills=["./skills/use-demo", "more", "./more/deep/"])
    write_skill(folder / "more" / "deep", "also")
    loaded = catalog()
    assert [skill.name for skill in loaded.all_skills] == ["also", "use-demo"]


def test_skills_of_a_bundle_are_read_leniently(catalog, bundle, write_skill):
    write_skill(bundle() / "skills", "loose", text="---\ndescription: Use when: so\n---\nb\n")
    assert sorted(catalog().skills) == ["loose", "use-demo"]


@pytest.mark.parametrize("path", ["../outside", "/tmp", "./a/../../outside", "linked"])
def test_paths_of_a_bundle_never_leave_it(plugins, catalog, bundle, write_skill, path):
    folder = bundle(skills=[path], mcpServers=f"{path}/mcp.json")
    write_skill(plugins / "outside", "stranger")
    (plugins / "outside" / "mcp.json").write_text('{"evil": {"command": "x"}}')
    (folder / "linked").symlink_to(plugins / "outside")
    loaded = catalog()
    assert (list(loaded.skills), loaded.plugins["demo"].servers) == (["use-demo"], ())
    assert "source-link-outside" in [item.code for item in loaded.diagnostics]


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ("{", "plugin-json-invalid"),
        ("[]", "plugin-json-invalid"),
        ("{}", "plugin-field-missing"),
        ('{"name": 1}', "plugin-field-type"),
        ('{"name": "a b"}', "plugin-name-shape"),
        ('{"name": "x", "version": 1}', "plugin-field-type"),
    ],
)
def test_a_bundle_whose_manifest_cannot_be_used_is_rejected(catalog, bundle, manifest, code):
    (bundle() / ".claude-plugin" / "plugin.json").write_text(manifest)
    loaded = catalog()
    (entry,) = [entry for entry in loaded.all_plugins if entry.name == "demo"]
    assert (entry.state, codes(entry), loaded.skills) == ("failed", [code], {})


def test_a_satchel_manifest_wins_over_that_of_a_bundle(catalog, bundle):
    folder = bundle(version="claude")
    (folder / "toolkit.yaml").write_text("name: demo\nversion: ours\n")
    assert catalog().plugins["demo"].version == "ours"


def test_real_bundles_and_open_plugins_load(shared):
    corpus = shared / "corpus"
    places = [
        corpus / "anthropics-claude-plugins-official" / "plugins",
        corpus / "anthropics-claude-plugins-official" / "external_plugins",
        corpus / "wshobson-agents" / "plugins",
        corpus / "github-awesome-copilot" / "plugins",
    ]
    loaded = Satchel(settings=ALONE, plugins=places).catalog
    named = {path.parent.name for place in places for path in place.glob("*/plugin.json")}
    named |= {path.parents[1].name for p in places for path in p.glob("*/.claude-plugin/*.json")}
    assert len(named) > 200
    assert named <= set(loaded.plugins)
    assert {state for entry in loaded.all_plugins if (state := entry.state) == "failed"} == set()
    assert len([entry for entry in loaded.all_plugins if entry.servers]) >= 14
    assert len(loaded.skills) > 180
    root = Satchel(settings=ALONE, plugins=[corpus / "obra-superpowers"]).catalog
    assert "superpowers" in root.plugins
    assert len(root.skills) >= 10


def test_show_lists_the_servers(write, plugins):
    write(servers={"a": {**STDIO, "env": {"A": "1"}}, "b": {"type": "sse", "url": "https://x"}})
    arguments = ["show", "demo", "--kind", "plugin", "--plugins", str(plugins)]
    (shape,) = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout)
    assert shape["servers"] == [
        {
            "name": "a",
            "type": "stdio",
            "command": "server",
            "args": [],
            "env": {"A": "***"},
            "cwd": "",
        },
        {"name": "b", "type": "sse", "url": "https://x", "headers": {}},
    ]
    assert "a, b" in CliRunner().invoke(cli, arguments).stdout


def test_reading_starts_nothing(write, plugins, monkeypatch):
    def refuse(*_args, **_named):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    write(servers={"a": STDIO})
    assert server_names(Satchel(settings=ALONE, plugins=[plugins]).catalog.plugins["demo"]) == ["a"]


@pytest.mark.parametrize("manifest", ["plugin.json", "toolkit.yaml"])
def test_a_plugin_that_is_only_a_skill_says_how_to_load_it(plugins, catalog, write_files, manifest):
    fields = {"$schema": PLUGIN_SCHEMA, "name": "demo"}
    if manifest == "toolkit.yaml":
        del fields["$schema"]
    skill = "---\nname: demo\ndescription: Use it.\n---\nText.\n"
    write_files(plugins / "demo", {manifest: json.dumps(fields), "SKILL.md": skill})
    (problem,) = catalog().plugins["demo"].diagnostics
    assert (problem.code, "with --skills" in problem.fix) == ("plugin-unused", True)
