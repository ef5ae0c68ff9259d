"""What a project would run, use and read: a reading that runs nothing."""

import json

import pytest

from satchel.configuration.projects import Project, TrustLevel
from satchel.trust.project_inventory import RequestedServer, read_inventory

SETTINGS = """
enable = ["clock", "skill:pdf"]
disable = ["tool:forecast"]

[config.clock]
zone = "UTC"

[mcp.maps]
command = "uvx"
args = ["maps-server", "--key", "${MAPS_KEY}"]
env = { REGION = "${REGION:-eu}" }
"""


@pytest.fixture
def project(tmp_path, write_skill, write_plugin):
    folder = tmp_path / "clone"
    write_skill(folder / "skills", "pdf")
    code = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    write_plugin(folder / "plugins", "clock", tools=code)
    write_skill(folder / "plugins/clock/skills", "zones")
    (folder / "satchel.toml").write_text(SETTINGS)
    return Project(str(folder))


def test_it_has_everything_that_the_project_declares(project):
    inventory = read_inventory(project)
    assert {skill.name for skill in inventory.skills} == {"pdf", "zones"}
    assert [plugin.folder_name for plugin in inventory.plugins] == ["clock"]
    assert set(inventory.units) == {"plugins/clock", "satchel.toml"}
    assert (inventory.enabled, inventory.disabled) == (("clock",), ("tool:forecast",))
    assert {name: dict(values) for name, values in inventory.configured.items()} == {
        "clock": {"zone": "UTC"}
    }
    assert not inventory.is_empty


def test_nothing_of_it_runs(project, tmp_path):
    read_inventory(project)
    assert not list(tmp_path.rglob("ran"))


def test_each_variable_names_the_servers_that_use_it(project):
    variables = read_inventory(project).variables
    assert list(variables) == ["MAPS_KEY", "REGION"]
    assert [server.name for server in variables["MAPS_KEY"]] == ["maps"]


def test_the_servers_of_a_plugin_and_of_mcp_json_are_named_with_their_owner(project, tmp_path):
    bundle = tmp_path / "clone/plugins/bundle"
    (bundle / ".claude-plugin").mkdir(parents=True)
    (bundle / ".claude-plugin/plugin.json").write_text('{"name": "bundle"}')
    for folder, name in ((bundle, "own"), (tmp_path / "clone", "box")):
        servers = {"mcpServers": {name: {"command": "node"}}}
        (folder / ".mcp.json").write_text(json.dumps(servers))
    owners = {server.name: server.owner for server in read_inventory(project).servers}
    assert owners == {"maps": "satchel.toml", "box": ".mcp.json", "own": "plugin bundle"}


def test_a_folder_without_anything_is_empty(tmp_path):
    (tmp_path / "clone").mkdir()
    assert read_inventory(Project(str(tmp_path / "clone"))).is_empty


def test_a_manifest_that_cannot_be_read_is_a_problem_and_the_rest_is_listed(project, tmp_path):
    (tmp_path / "clone/plugins/clock/toolkit.yaml").write_text("name: [\n")
    inventory = read_inventory(project)
    assert inventory.diagnostics
    assert "pdf" in {skill.name for skill in inventory.skills}


def test_the_record_has_exactly_the_digests_that_were_shown(project):
    inventory = read_inventory(project)
    record = inventory.record(TrustLevel.CODE, ["MAPS_KEY"])
    assert {key: unit.digest for key, unit in record.units.items()} == {
        key: unit.digest for key, unit in inventory.units.items()
    }
    assert tuple(record.variables) == ("MAPS_KEY",)
    assert not inventory.record(TrustLevel.DATA).units


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"command": "uvx", "args": ["a b", "--x"]}, "uvx 'a b' --x"),
        ({"command": "node", "env": {"A": "1"}, "cwd": ""}, "node, env={'A': '1'}"),
        ({"url": "https://h.example/mcp"}, "https://h.example/mcp"),
        (
            {"url": "https://h.example", "headers": {"K": "v"}},
            "https://h.example, headers={'K': 'v'}",
        ),
        ({"command": "x", "args": "not a list"}, "command=x, args=not a list"),
    ],
)
def test_a_server_is_one_line_with_its_command_or_address_first(declared, text):
    assert RequestedServer(name="a", owner="b", declared=declared).text == text


@pytest.fixture
def inventory(tmp_path, write_files, write_plugin, write_skill):
    """Return what a project with a plugin, a skill and settings asks for."""
    write_plugin(tmp_path / "plugins", "demo", "description: d\n", tools="x = 1\n")
    for folder in (tmp_path / "plugins/demo/skills", tmp_path / "skills"):
        write_files(write_skill(folder, f"of-{folder.parent.name}"), {"scripts/run.sh": "ls"})
    server = {"command": "uvx", "args": ["acme"], "env": {"A": "${KEY}"}}
    write_files(
        tmp_path,
        {
            ".mcp.json": json.dumps({"mcpServers": {"own": server}}),
            "satchel.toml": "enable = ['demo', 'skill:a']\n[config.demo]\nunit = 'C'\n",
        },
    )
    return read_inventory(Project(tmp_path))


def test_scripts_of_a_skill_in_a_plugin_are_code_of_their_own(inventory, tmp_path):
    skills = {f"//skills/of-{tmp_path.name}", "//plugins/demo/skills/of-demo"}
    assert inventory.units.keys() == {"plugins/demo", *skills, "satchel.toml", ".mcp.json"}
    assert "scripts/run.sh" in inventory.units["//plugins/demo/skills/of-demo"].files
    assert len(inventory.skills) == 2


def test_a_plugin_that_is_a_skill_as_well_is_two_units(tmp_path, write_plugin, write_files):
    folder = write_plugin(tmp_path / "plugins", "demo", "description: d\n", tools="x = 1\n")
    text = "---\nname: demo\ndescription: D.\n---\n"
    write_files(folder, {"SKILL.md": text, "scripts/build.py": "x"})
    (tmp_path / "satchel.toml").write_text("[sources]\nskills = ['plugins']\n")
    units = read_inventory(Project(tmp_path)).units
    assert {"plugins/demo", "//plugins/demo"} <= units.keys()


def test_settings_and_servers_are_named_with_their_variables(inventory):
    assert (inventory.enabled, inventory.configured) == (("demo",), {"demo": {"unit": "C"}})
    (server,) = inventory.servers
    assert (server.owner, server.variables) == (".mcp.json", ("KEY",))
    assert server.text.startswith("uvx acme, ")
    assert inventory.variables == {"KEY": (server,)}
    assert not inventory.is_empty
