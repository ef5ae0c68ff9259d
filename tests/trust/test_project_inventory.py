"""What a project asks for: each part once, without running anything."""

import json

import pytest

from satchel import Project
from satchel.trust.project_inventory import read_inventory


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


def test_scripts_of_a_skill_in_a_plugin_are_code_of_the_plugin_only(inventory, tmp_path):
    own = f"skills/of-{tmp_path.name}"
    assert inventory.units.keys() == {"plugins/demo", own, "satchel.toml", ".mcp.json"}
    assert "skills/of-demo/scripts/run.sh" in inventory.units["plugins/demo"].files
    assert len(inventory.skills) == 2


def test_settings_and_servers_are_named_with_their_variables(inventory):
    assert (inventory.enabled, inventory.configured) == (("demo",), {"demo": {"unit": "C"}})
    (server,) = inventory.servers
    assert (server.owner, server.variables) == (".mcp.json", ("KEY",))
    assert server.text.startswith("uvx acme, ")
    assert inventory.variables == {"KEY": (server,)}
    assert not inventory.is_empty


def test_an_empty_project_asks_for_nothing(tmp_path):
    assert read_inventory(Project(tmp_path)).is_empty
