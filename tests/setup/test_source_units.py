import json

import pytest

from satchel.setup.source_units import find_units


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
