"""A project as a host writes it down."""

import pytest

from satchel import DefinitionError, Project


def test_a_project_keeps_its_folder_when_the_current_one_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = Project("clone")
    monkeypatch.chdir("/")
    assert project.folder == str(tmp_path / "clone")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Project("~/clone").folder == str(tmp_path / "clone")


def test_one_variable_may_be_a_string():
    assert Project(".", variables="TOKEN").variables == ("TOKEN",)
    assert Project(".", variables=["A", "B"]).variables == ("A", "B")


@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_refused(path):
    with pytest.raises(DefinitionError, match="empty path"):
        Project(path)


@pytest.mark.parametrize("level", ["all", "", True, "CODE"])
def test_an_unknown_level_is_refused_and_trusts_nothing(level):
    with pytest.raises(DefinitionError, match="none, data, code"):
        Project(".", trust=level)
