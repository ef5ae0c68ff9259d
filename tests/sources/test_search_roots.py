import os
from pathlib import Path

import pytest

from satchel.errors import DefinitionError
from satchel.sources.search_roots import (
    Precedence,
    RootKind,
    conventional_roots,
    own_plugins,
    search_root,
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_place_is_called_what_the_user_wrote(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = search_root("my/skills/", RootKind.SKILLS)
    assert (result.source, result.path) == ("my/skills", str(tmp_path / "my/skills"))
    assert (result.scope, result.optional) == (Precedence.EXPLICIT, False)


def test_a_place_may_be_a_path_object_or_below_the_home(home):
    assert search_root(Path("/x"), RootKind.PLUGINS).path == "/x"
    assert search_root("~/skills", RootKind.SKILLS).path == str(home / "skills")


def test_the_root_folder_is_a_place():
    assert (search_root("/", RootKind.SKILLS).source, search_root("/", RootKind.SKILLS).path) == (
        "/",
        "/",
    )


def test_a_link_in_a_path_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert search_root(tmp_path / "link", RootKind.SKILLS).path == str(tmp_path / "link")


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_is_refused(path):
    with pytest.raises(DefinitionError, match="a folder of skills has an empty path"):
        search_root(path, RootKind.SKILLS)


def test_only_places_below_the_home_are_well_known_without_a_project(home):
    roots = conventional_roots()
    assert {item.scope for item in roots} == {Precedence.USER}
    assert [item.source for item in roots] == [
        "~/skills",
        "~/.agents/skills",
        "~/.satchel/skills",
        "~/plugins",
        "~/.satchel/plugins",
    ]
    assert all(item.path.startswith(str(home) + os.sep) for item in roots)
    assert all(item.optional for item in roots)


def test_the_places_of_a_project_come_first(home, tmp_path):
    roots = conventional_roots(tmp_path / "project")
    assert [item.scope for item in roots] == [Precedence.PROJECT] * 5 + [Precedence.USER] * 5
    assert roots[0].path == str(tmp_path / "project/skills")
    assert [item.holds for item in roots[:5]] == [RootKind.SKILLS] * 3 + [RootKind.PLUGINS] * 2


def test_claude_adds_its_folder_of_skills(home):
    assert "~/.claude/skills" in [item.source for item in conventional_roots(claude=True)]


def test_folders_of_the_home_are_the_users_also_if_the_project_is_the_home(home):
    roots = conventional_roots(home)
    assert [item.scope for item in roots] == [Precedence.USER] * 5


def test_the_nearer_scope_is_the_smaller_one():
    assert sorted(Precedence) == [
        Precedence.EXPLICIT,
        Precedence.PROJECT,
        Precedence.USER,
        Precedence.PLUGIN,
        Precedence.BUNDLED,
        Precedence.REMOTE,
    ]


def test_a_relative_path_below_a_deleted_current_folder_is_refused(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(DefinitionError, match="current folder, which was deleted"):
        search_root("skills", RootKind.SKILLS)
    assert search_root("/skills", RootKind.SKILLS).path == "/skills"


def test_only_links_of_the_user_to_skills_and_installed_plugins_may_lead_out(home, tmp_path):
    roots = conventional_roots(tmp_path / "project")
    assert [item.source for item in roots if item.follows_links_out] == [
        "~/skills",
        "~/.agents/skills",
        "~/.satchel/skills",
        "~/.satchel/plugins",
    ]
    assert search_root("skills", RootKind.SKILLS).follows_links_out
    assert not search_root("plugins", RootKind.PLUGINS).follows_links_out


def test_the_roots_of_a_project_are_held_within_it(home, tmp_path):
    project = str(tmp_path / "project")
    assert [item.within for item in conventional_roots(project)] == [project] * 5 + [""] * 5


def test_the_plugins_that_a_user_installed_may_be_links(home):
    assert own_plugins() == str(home / ".satchel/plugins")
    assert search_root("~/.satchel/plugins", RootKind.PLUGINS).follows_links_out
    assert [item.follows_links_out for item in conventional_roots(home)].count(True) == 4
