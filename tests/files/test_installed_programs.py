"""Programs are found in absolute folders only: the current one may be a hostile clone."""

import os

import pytest

from satchel.files.installed_programs import absolute_path_variable, find_program


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A project, which is the current folder, with programs of its own."""
    for place in ("git", "bin/git"):
        program = tmp_path / "clone" / place
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path


@pytest.mark.parametrize("path", ["", ".", "bin", ":", ".:bin::", "./bin"])
def test_a_relative_folder_of_the_path_is_not_searched(clone, monkeypatch, path):
    monkeypatch.setenv("PATH", path)
    assert absolute_path_variable() == os.defpath
    result = find_program("git")
    assert result is None or not result.startswith(str(clone))
    monkeypatch.setenv("PATH", f"{path}:{clone}/mine")
    assert absolute_path_variable() == f"{clone}/mine"
    assert find_program("git") is None
    (clone / "mine").mkdir()
    (clone / "clone/git").rename(clone / "mine/git")
    assert find_program("git") == f"{clone}/mine/git"


def test_without_a_path_the_default_of_the_system_is_used(monkeypatch):
    monkeypatch.delenv("PATH")
    assert absolute_path_variable() == ":".join(
        it for it in os.defpath.split(":") if os.path.isabs(it)
    )
