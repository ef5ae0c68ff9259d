import pytest

from satchel.sources.plugin_formats import PluginFormat, format_of

OPEN = '{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "a"}'


@pytest.mark.parametrize(
    ("plugin_json", "expected"),
    [
        (OPEN, PluginFormat.OPEN),
        ('{"name": "a"}', PluginFormat.CLAUDE),
        ('{"name": "a", ', PluginFormat.OPEN),  # half-written: it may become an open plugin again
        ("", PluginFormat.OPEN),
        ("[]", PluginFormat.OPEN),
        ("[" * 100_000, PluginFormat.OPEN),
        (None, PluginFormat.CLAUDE),
    ],
)
def test_a_plugin_json_wins_over_another_manifest_unless_it_has_no_schema(
    tmp_path, plugin_json, expected
):
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin/plugin.json").write_text('{"name": "a"}')
    if plugin_json is not None:
        (tmp_path / "plugin.json").write_text(plugin_json)
    assert format_of(str(tmp_path)) is expected


def test_a_plugin_json_alone_is_of_the_open_format(tmp_path):
    (tmp_path / "plugin.json").write_text('{"name": "a"}')
    assert format_of(str(tmp_path)) is PluginFormat.OPEN
    assert format_of(str(tmp_path / "none")) is None
