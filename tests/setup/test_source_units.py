import json
from collections import Counter

import pytest

from satchel.setup.source_units import find_units
from satchel.sources.skill_walk import SkillWalk


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_plugin_has_its_own_name_unless_a_marketplace_gives_it_one(tmp_path, is_listed):
    manifest = tmp_path / "plugins/folder/.claude-plugin/plugin.json"
    listing = tmp_path / ".claude-plugin/marketplace.json"
    for path in (manifest, listing):
        path.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"name": "own", "description": "Tidies."}))
    if is_listed:
        plugins = [{"name": "listed", "source": "./plugins/folder"}]
        listing.write_text(json.dumps({"name": "m", "owner": {"name": "o"}, "plugins": plugins}))
    (unit,) = find_units(str(tmp_path)).units
    assert (unit.kind, unit.name) == ("plugin", "listed" if is_listed else "own")
    assert unit.description == "Tidies."


def test_a_folder_that_many_links_lead_to_is_searched_once(tmp_path, monkeypatch, write_skill):
    searched = Counter()
    scan_folder = SkillWalk._scan_folder

    def counted(self, folder):
        searched[folder.opened.path] += 1
        scan_folder(self, folder)

    monkeypatch.setattr(SkillWalk, "_scan_folder", counted)
    for number in range(5):
        folder = tmp_path / f"lib/{number}"
        folder.mkdir(parents=True)
        for name in "ab":
            (folder / name).symlink_to(f"../{number + 1}")
    write_skill(tmp_path / "lib/5", "deep")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills/greet").symlink_to("../lib/5/deep")
    assert [(unit.name, unit.folder) for unit in find_units(str(tmp_path)).units] == [
        ("deep", str(tmp_path / "lib/5/deep"))
    ]
    assert max(searched.values()) < 5
