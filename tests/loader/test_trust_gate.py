"""What a grant allows, and which settings and variables of a project count."""

from pathlib import Path

import pytest

from satchel import DefinitionError, Project, Settings
from satchel.configuration.projects import TrustLevel
from satchel.loader.trust_gate import open_gate
from satchel.sources.search_roots import Precedence
from satchel.trust.trust_record import TrustStore, new_record


@pytest.fixture
def project(tmp_path):
    (tmp_path / "clone").mkdir()
    return Project(tmp_path / "clone")


@pytest.fixture
def settings(tmp_path):
    return Settings(state_folder=str(tmp_path / "state"))


def record(project, settings, *, variables=()):
    decision = new_record(project.folder, TrustLevel.CODE, {}, variables)
    TrustStore(settings.state_folder).write(decision)


def test_an_unchanged_record_is_not_read_again(project, settings):
    record(project, settings)
    before = open_gate([project], settings)
    assert open_gate([project], settings, before).at(project.folder) is before.at(project.folder)
    record(project, settings, variables=("KEY",))
    assert open_gate([project], settings, before).at(project.folder).variables == {"KEY"}


def test_other_options_of_a_project_count_at_once(project, settings):
    record(project, settings)
    before = open_gate([project], settings)
    changed = Project(project.folder, variables=["KEY"])
    assert open_gate([changed], settings, before).at(project.folder).variables == {"KEY"}


def test_a_project_that_the_host_trusts_has_no_record_to_watch(project, settings):
    trusted = Project(project.folder, trust="code")
    assert open_gate([trusted], settings).stamps == ()
    assert len(open_gate([project], settings).stamps) == 1


def test_the_fix_for_a_variable_names_the_project(project, settings, monkeypatch):
    monkeypatch.setenv("KEY", "value")
    gate = open_gate([project], settings)
    with pytest.raises(DefinitionError) as caught:
        gate.variables(f"{project.folder}/.mcp.json", Precedence.PROJECT, ["KEY"])
    assert caught.value.fix == f"satchel trust {project.folder} --variable KEY"
    # The record does not count, so a command that changes it does not help.
    gate = open_gate([Project(project.folder, trust="code")], settings)
    with pytest.raises(DefinitionError) as caught:
        gate.variables(f"{project.folder}/.mcp.json", Precedence.PROJECT, ["KEY"])
    assert caught.value.fix.startswith("add --variable KEY, or in a program Project(")


def test_a_path_is_judged_by_the_project_that_it_is_in(project, settings, tmp_path):
    (tmp_path / "other").mkdir()
    other = Project(tmp_path / "other", trust="code")
    gate = open_gate([project, other], settings)
    for it in (project, other):
        assert gate.at(f"{it.folder}/plugins/a").project is it
    assert gate.at(f"{project.folder}-2/plugins/a") is None


def test_only_what_a_project_has_is_named(project, settings):
    (Path(project.folder) / "skills").mkdir()
    (diagnostic,) = open_gate([project], settings).diagnostics
    assert diagnostic.message.endswith("it has ./skills")
    (Path(project.folder) / ".mcp.json").write_text("{}")
    (diagnostic,) = open_gate([project], settings).diagnostics
    assert diagnostic.message.endswith("it has ./skills, .mcp.json")
