"""Marketplaces: folders that list plugins in `.claude-plugin/marketplace.json`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from satchel import Limits, Project, Satchel, Settings
from satchel.formats.marketplace_manifest import read_marketplace


@pytest.fixture
def market(tmp_path):
    """Write a marketplace with these entries."""
    folder = tmp_path / "market"

    def write(*entries, **fields) -> Path:
        (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
        whole = {"name": "m", "owner": {"name": "o"}, "plugins": entries} | fields
        (folder / ".claude-plugin" / "marketplace.json").write_text(json.dumps(whole))
        return folder

    return write


def load(folder):
    return Satchel(plugins=[folder], settings=Settings(mcp_servers=False)).catalog


def found(catalog, code):
    return [item for item in catalog.diagnostics if item.code == code]


def entries_of(listing):
    reading = read_marketplace(json.dumps(listing).encode(), "marketplace.json", Limits())
    return reading.value


def write_manifest(folder: Path, **fields) -> None:
    (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps(fields))


def test_a_local_plugin_with_its_own_manifest_loads(market, write_skill):
    folder = market({"name": "a", "source": "./deep/down/a", "description": "of the list"})
    write_skill(folder / "deep" / "down" / "a" / "skills", "use-a")
    write_manifest(folder / "deep" / "down" / "a", name="a", version="2")
    catalog = load(folder)
    assert (catalog.plugins["a"].version, list(catalog.skills)) == ("2", ["use-a"])
    assert catalog.plugins["a"].description == "of the list"


def test_a_plugin_without_a_manifest_loads_by_its_entry(market, write_skill):
    folder = market({"name": "a", "source": "./a", "version": "3"})
    write_skill(folder / "a" / "skills", "use-a")
    catalog = load(folder)
    assert (catalog.plugins["a"].version, list(catalog.skills)) == ("3", ["use-a"])


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_plugin_whose_folder_is_a_skill_brings_that_skill(market, write_skill, is_strict):
    folder = market({"name": "a", "source": "./deep/a", "strict": is_strict})
    write_skill(folder / "deep", "a")
    catalog = load(folder)
    assert [(skill.name, skill.source) for skill in catalog.all_skills] == [("a", "a")]
    assert catalog.plugins["a"].diagnostics == ()


def test_several_plugins_choose_their_skills_in_one_folder(market, write_skill):
    folder = market(
        {"name": "docs", "source": "./", "strict": False, "skills": ["./skills/one"]},
        {"name": "code", "source": "./", "strict": False, "skills": ["./skills/two"]},
    )
    for name in ("one", "two", "three"):
        write_skill(folder / "skills", name)
    catalog = load(folder)
    assert sorted(catalog.plugins) == ["code", "docs"]
    assert {skill.name: skill.source for skill in catalog.all_skills} == {
        "one": "docs",
        "two": "code",
    }


def test_plugins_in_one_folder_are_disabled_one_by_one(market, write_skill):
    folder = market(
        {"name": "docs", "source": "./", "strict": False, "skills": ["./skills/one"]},
        {"name": "code", "source": "./", "strict": False, "skills": ["./skills/two"]},
    )
    for name in ("one", "two"):
        write_skill(folder / "skills", name)
    project = folder.parent / "project"
    project.mkdir()
    (project / "satchel.toml").write_text('disable = ["docs"]')
    catalog = Satchel(plugins=[folder], project=Project(project, trust="code")).catalog
    assert list(catalog.skills) == ["two"]


def test_an_entry_that_is_not_strict_replaces_the_manifest(market, write_skill):
    folder = market({"name": "a", "source": "./a", "strict": False, "version": "3"})
    write_skill(folder / "a" / "skills", "use-a")
    write_manifest(folder / "a", name="a", version="2")
    assert load(folder).plugins["a"].version == "3"


def test_the_root_of_plugins_is_put_before_a_plain_name(market, write_skill):
    folder = market({"name": "a", "source": "a"}, metadata={"pluginRoot": "./plugins"})
    write_skill(folder / "plugins" / "a" / "skills", "use-a")
    assert list(load(folder).skills) == ["use-a"]


def test_remote_plugins_are_named_and_not_loaded(market):
    folder = market(
        {"name": "far", "source": {"source": "github", "repo": "o/r"}},
        {"name": "web", "source": "https://example.org/web.git"},
    )
    catalog = load(folder)
    (item,) = found(catalog, "marketplace-remote")
    assert (item.severity, item.message.endswith(": far, web")) == ("info", True)
    assert list(catalog.plugins) == []


@pytest.mark.parametrize("source", ["../out", "./../out", "/out", "./link"])
def test_a_folder_outside_is_not_read(market, write_skill, tmp_path, source):
    write_skill(tmp_path / "out" / "skills", "secret")
    folder = market({"name": "a", "source": source.replace("/out", f"{tmp_path}/out", 1)})
    if source.startswith((".", "..")):
        folder = market({"name": "a", "source": source})
    (folder / "link").symlink_to(tmp_path / "out")
    catalog = load(folder)
    assert (list(catalog.plugins), list(catalog.skills)) == ([], [])
    (item,) = found(catalog, "source-link-outside")
    assert item.where.path.endswith("marketplace.json")


def test_a_list_outside_is_not_read(tmp_path, market):
    folder = market({"name": "a", "source": "./"})
    listing = folder / ".claude-plugin" / "marketplace.json"
    listing.rename(tmp_path / "list.json")
    listing.symlink_to(tmp_path / "list.json")
    assert len(found(load(folder), "marketplace-invalid")) == 1


def test_a_missing_folder_and_an_invalid_entry_cost_only_themselves(market, write_skill):
    folder = market(
        {"name": "gone", "source": "./gone"}, 3, {"source": "./a"}, {"name": "a", "source": "./a"}
    )
    write_skill(folder / "a" / "skills", "use-a")
    catalog = load(folder)
    assert list(catalog.plugins) == ["a"]
    assert len(found(catalog, "source-missing")) == 1
    assert [item.message for item in found(catalog, "marketplace-entry-invalid")] == [
        "entry 2 is left out: it is a number, not an object",
        "entry 3 is left out: no name is given",
    ]


def test_a_name_listed_twice_counts_once(market, write_skill):
    folder = market({"name": "a", "source": "./a"}, {"name": "a", "source": "./b"})
    write_skill(folder / "a" / "skills", "one")
    write_skill(folder / "b" / "skills", "two")
    catalog = load(folder)
    assert list(catalog.skills) == ["one"]
    assert len(found(catalog, "marketplace-entry-invalid")) == 1


def test_a_plugin_that_lists_others_is_loaded_beside_them(market, write_skill):
    folder = market({"name": "b", "source": "./b"})
    write_manifest(folder, name="a")
    write_skill(folder / "skills", "one")
    write_skill(folder / "b" / "skills", "two")
    assert sorted(load(folder).plugins) == ["a", "b"]


def test_a_marketplace_may_be_in_a_folder_of_plugins(market, write_skill):
    folder = market({"name": "a", "source": "./a"})
    write_skill(folder / "a" / "skills", "use-a")
    assert list(load(folder.parent).skills) == ["use-a"]


def test_an_entry_alone_reads_as_it_does_in_the_list():
    entry = {
        "name": "a",
        "source": "./deep/a",
        "strict": False,
        "skills": ["./x"],
        "mcpServers": {"s": {"command": "c"}},
        "tags": ["\u00e9"],
    }
    (first,) = entries_of({"plugins": [entry], "metadata": {"pluginRoot": "./p"}})
    (alone,) = entries_of(json.loads(first.listing()))
    assert alone == replace(first, source="./")
    assert json.loads(alone.text) == entry | {"source": "./"}


def test_real_marketplaces_load_what_is_there(shared):
    for repository in (
        "anthropics-claude-plugins-official",
        "obra-superpowers",
        "wshobson-agents",
    ):
        folder = shared / "corpus" / repository
        listed = json.loads((folder / ".claude-plugin" / "marketplace.json").read_text())
        local = {
            item["name"]
            for item in listed["plugins"]
            if isinstance(item["source"], str) and (folder / item["source"]).is_dir()
        }
        assert local
        assert set(load(folder).plugins) == local


def test_a_plugin_json_of_another_kind_does_not_matter_beside_an_entry(market, write_skill):
    folder = market({"name": "a", "source": "./a", "version": "3"})
    write_skill(folder / "a" / "skills", "use-a")
    (folder / "a" / "plugin.json").write_text('{"name": "a", "author": {"name": "x"}}')
    catalog = load(folder)
    assert (catalog.plugins["a"].version, list(catalog.skills)) == ("3", ["use-a"])
    (folder / "a" / "plugin.json").write_text('{"$schema": 1}')
    assert "a" not in load(folder).plugins
