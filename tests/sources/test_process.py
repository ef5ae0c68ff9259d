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
    monkeypatch.syspath_prepend("/plugin/lib")
    monkeypatch.syspath_prepend("/somebody/elses")
    assert before.put_back() == ()
    assert "/plugin/lib" in sys.path
    assert before.put_back("/plugin") == ("sys.path",)
    assert "/plugin/lib" not in sys.path
    assert "/somebody/elses" in sys.path, "the host may have added it meanwhile"


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


def test_beside_others_only_what_is_plainly_the_plugins_doing_is_undone(
    before, tmp_path, monkeypatch
):
    """The host and other imports go on meanwhile; what they do is theirs."""
    own, others = ModuleType("json"), ModuleType("csv")
    own.__file__, others.__file__ = "/plugin/json.py", "/upgraded/csv.py"
    import csv
    import json

    before = Process.now()
    monkeypatch.setitem(sys.modules, "json", own)
    monkeypatch.setitem(sys.modules, "csv", others)
    monkeypatch.setattr(sys, "path", [*sys.path[1:], "/plugin"])
    monkeypatch.chdir(tmp_path)
    assert before.put_back("/plugin", alone=False) == ("sys.path", "the module 'json'")
    assert sys.modules["json"] is json
    assert sys.modules["csv"] is others is not csv
    assert "/plugin" not in sys.path
    assert os.getcwd() == str(tmp_path)


def test_what_nobody_could_go_on_with_is_put_back_even_beside_others(monkeypatch):
    path, finders = list(sys.path), list(sys.meta_path)
    before = Process.now()
    try:
        sys.path.clear()
        sys.meta_path.clear()
        assert before.put_back("/plugin", alone=False) == ("sys.path", "sys.meta_path")
        assert (sys.path, sys.meta_path) == (path, finders)
    finally:
        sys.path[:], sys.meta_path[:] = path, finders
