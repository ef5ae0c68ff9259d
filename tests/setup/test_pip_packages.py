import pytest

from satchel.errors import SatchelError
from satchel.setup.pip_packages import project

TABLE = '[project]\nname = "acme"\n'


@pytest.mark.parametrize("folder", ["", "acme", "src/acme"])
def test_a_project_without_a_plugin_may_ship_skills(tmp_path, folder):
    (tmp_path / "pyproject.toml").write_text(TABLE)
    with pytest.raises(SatchelError, match="contains no plugin"):
        project(str(tmp_path), editable=False)
    (tmp_path / folder / ".agents/skills").mkdir(parents=True)
    package = project(str(tmp_path), editable=True)
    assert (package.target, package.distribution, package.editable) == (str(tmp_path), "acme", True)


@pytest.mark.parametrize(
    "text",
    [
        f'{TABLE}[project.entry-points."satchel.plugins"]\nacme = "acme"\n',
        f'{TABLE}dynamic = ["entry-points"]\n',
    ],
)
def test_a_project_with_an_entry_point_or_unknown_ones_may_contain_a_plugin(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    assert project(str(tmp_path), editable=False).distribution == "acme"


def test_a_folder_without_a_project_is_no_package_and_a_broken_one_is_an_error(tmp_path):
    assert project(str(tmp_path), editable=False) is None
    (tmp_path / "pyproject.toml").write_text("[build-system]\n")
    assert project(str(tmp_path), editable=False).distribution == ""
    (tmp_path / "pyproject.toml").write_text("[project\n")
    with pytest.raises(SatchelError, match="cannot read"):
        project(str(tmp_path), editable=False)
