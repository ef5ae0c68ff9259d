"""The inputs of a pass: which limits count."""

from satchel import Limits, Settings
from satchel.configuration.selection import Selection, SelectionFile
from satchel.sources.search_roots import Precedence


def test_a_limit_of_the_settings_file_counts_unless_the_host_set_its_own(pass_inputs, tmp_path):
    limits = {"find_folders": 7, "plugin_import": 2}
    file = SelectionFile(path=str(tmp_path / "satchel.toml"), scope=Precedence.USER, limits=limits)
    settings = Settings(limits=Limits(plugin_import=3))
    inputs = pass_inputs(selection=Selection((file,)), settings=settings)
    assert inputs.limits == Limits(find_folders=7, plugin_import=3)
    assert pass_inputs().limits == Limits()
