"""What plugin code changes for everybody is put back and named."""

import importlib
import os
import sys
from types import ModuleType

import pytest

from satchel.sources.process import Process


@pytest.fixture
def before():
    return Process.now()


def test_nothing_changed_is_nothing_to_tell(before):
    assert before.put_back("/plugin") == ()


def test_the_current_folder_is_put_back(before, tmp_path):
    os.chdir(tmp_path)
    assert before.put_back() == ("the current folder",)
    assert os.getcwd() == before.folder


def test_a_folder_plugin_may_not_add_to_the_import_path_and_a_package_may(before, monkeypatch):
    monkeypatch.syspath_prepend("/added")
    assert before.put_back() == ()
    assert "/added" in sys.path
    assert before.put_back("/plugin") == ("sys.path",)
    assert "/added" not in sys.path


def test_finders_that_vanish_are_put_back(before):
    finders = list(sys.meta_path)
    sys.meta_path.clear()
    try:
        assert before.put_back() == ("sys.meta_path",)
        assert sys.meta_path == finders
    finally:
        sys.meta_path[:] = finders


def test_a_module_that_was_replaced_is_the_old_one_again(monkeypatch):
    wave = importlib.import_module("wave")
    before = Process.now()
    monkeypatch.setitem(sys.modules, "wave", ModuleType("wave"))
    assert before.put_back() == ("the module 'wave'",)
    assert sys.modules["wave"] is wave


def test_a_module_imported_by_a_public_name_from_the_plugin_is_forgotten(before, monkeypatch):
    stray, other = ModuleType("stray"), ModuleType("other")
    stray.__file__, other.__file__ = "/plugin/stray.py", "/plugin-2/other.py"
    monkeypatch.setitem(sys.modules, "stray", stray)
    monkeypatch.setitem(sys.modules, "other", other)
    assert before.put_back("/plugin") == ("the module 'stray'",)
    assert "stray" not in sys.modules
    assert "other" in sys.modules
    monkeypatch.setitem(sys.modules, "stray", stray)
    assert before.put_back() == (), "a package's own modules are there to be imported"


def test_a_current_folder_that_is_gone_cannot_be_put_back(before, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside = tmp_path / "inside"
    inside.mkdir()
    os.chdir(inside)
    gone = Process.now()
    os.chdir(tmp_path)
    inside.rmdir()
    assert gone.put_back() == ("the current folder",)
    assert os.getcwd() == str(tmp_path)
