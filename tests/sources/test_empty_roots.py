"""A folder that brings nothing, and the cause that is named."""

from pathlib import Path

import pytest

from satchel import Satchel
from satchel.sources.empty_roots import empty_root
from satchel.sources.search_roots import RootKind, search_root


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize(
    ("kind", "files", "message", "fix"),
    [
        (RootKind.SKILLS, [], "brings no skills: it is empty", "name the folder that has"),
        (RootKind.PLUGINS, [], "brings no plugins: it is empty", "name the folder that has"),
        (RootKind.SKILLS, ["node_modules/a/SKILL.md"], "'node_modules' in it is never", "name the"),
        (RootKind.SKILLS, ["a/toolkit.yaml"], "it has plugins", "as a folder of plugins"),
        (RootKind.SKILLS, ["toolkit.yaml"], "it has plugins", "as a folder of plugins"),
        (RootKind.PLUGINS, ["a/SKILL.md"], "it has skills", "as a folder of skills"),
        (RootKind.PLUGINS, ["SKILL.md"], "it has skills", "as a folder of skills"),
        (RootKind.SKILLS, ["a/b.md"], "no folder in it has a SKILL.md", "one skill's folder"),
        (RootKind.PLUGINS, ["a/b.py"], "has a toolkit.yaml or plugin.json", "one plugin's folder"),
        (RootKind.PLUGINS, ["x/a/toolkit.yaml"], "one level deeper, in 'x'", "name {root}/x"),
    ],
)
def test_the_likely_cause_is_named(tmp_path, kind, files, message, fix):
    touch(tmp_path, *files)
    result = empty_root(search_root(tmp_path, kind))
    assert result.code == "source-empty"
    assert message in result.message
    assert fix.format(root=tmp_path) in result.fix


def test_it_is_a_diagnostic_of_the_catalog_until_something_comes(tmp_path, write_skill):
    def codes():
        codes = [item.code for item in app.catalog.diagnostics]
        return [code for code in codes if code.startswith("source-")]

    app = Satchel(skills=tmp_path)
    assert codes() == ["source-empty"]
    write_skill(tmp_path, "pdf")
    app.refresh()
    assert codes() == []


def test_a_skill_that_is_too_deep_is_the_cause_that_is_named(tmp_path, write_skill):
    write_skill(tmp_path / "a/b/c/d/e/f/g/h", "deep")
    diagnostics = Satchel(skills=tmp_path).catalog.diagnostics
    (empty,) = [item for item in diagnostics if item.code == "source-empty"]
    assert "'a/b/c/d/e/f" in empty.message
    assert "levels deep" in empty.message


def test_a_project_that_is_missing_is_an_error_until_it_is_there(tmp_path):
    def missing():
        codes = [it for it in app.catalog.diagnostics if it.code == "source-missing"]
        return [(item.severity, item.where.path) for item in codes]

    with Satchel(project=tmp_path / "nowhere") as app:
        assert missing() == [("error", str(tmp_path / "nowhere"))]
        (tmp_path / "nowhere").mkdir()
        app.refresh()
        assert missing() == []


def test_a_folder_that_is_missing_is_an_error_and_not_empty(tmp_path):
    diagnostics = Satchel(skills=tmp_path / "nowhere").catalog.diagnostics
    sources = [item for item in diagnostics if item.code.startswith("source-")]
    assert [(item.severity, item.code) for item in sources] == [("error", "source-missing")]
