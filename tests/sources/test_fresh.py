import importlib
import os
import sys

import pytest

from satchel.sources import fresh
from satchel.sources.fresh import import_from_source


@pytest.fixture
def package(tmp_path, monkeypatch, untouched_modules):
    """A package with a module, in a folder of the import path; bytecode is written."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(fresh._fresh, "packages", set())
    folder = tmp_path / "fresh_one"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    return folder


def value(package, text, stamp=1_000_000_000):
    """Write the module with a fixed date, forget it, and import it."""
    file = package / "mod.py"
    file.write_text(f"X = {text!r}\n")
    os.utime(file, (stamp, stamp))
    importlib.invalidate_caches()
    for name in ("fresh_one", "fresh_one.mod"):
        sys.modules.pop(name, None)
    return importlib.import_module("fresh_one.mod").X


def test_an_edit_that_no_date_and_no_size_tells_runs_new(package):
    assert value(package, "one") == "one"
    assert value(package, "two") == "one", "the fault is there without us"
    import_from_source("fresh_one")
    assert [value(package, "six"), value(package, "ten")] == ["six", "ten"]


def test_no_bytecode_is_left_behind(package):
    import_from_source("fresh_one")
    value(package, "one")
    assert not (package / "__pycache__").exists()


def test_other_packages_are_left_alone(package):
    import_from_source("fresh")
    value(package, "one")
    assert (package / "__pycache__").exists()


def test_what_is_nowhere_is_missing_as_ever(package):
    import_from_source("fresh_one")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("fresh_one.absent")
