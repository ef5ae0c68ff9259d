import importlib
import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader

import pytest

from satchel.importing import editable_imports
from satchel.importing.editable_imports import (
    PathEntry,
    entries_of,
    install_entries,
    uninstall_entries,
)
from satchel.importing.module_paths import LocatedModule


@pytest.fixture
def package(tmp_path, monkeypatch, untouched_modules):
    """A package with a module, in a folder of the import path; bytecode is written."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(editable_imports._finder, "entries", ())
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


def route(package, name="fresh_one"):
    return PathEntry("fresh", LocatedModule(name, str(package)))


def test_an_edit_that_changes_neither_date_nor_size_runs_the_new_code(package):
    assert value(package, "one") == "one"
    assert value(package, "two") == "one", "the fault is there without us"
    install_entries(route(package))
    assert [value(package, "six"), value(package, "ten")] == ["six", "ten"]


def test_an_edit_runs_new_also_with_the_loader_of_a_library(package, monkeypatch):
    class Loader(SourceFileLoader):
        def source_to_code(self, data, path):
            return super().source_to_code(bytes(data).replace(b"six", b"SIX"), path)

    hook = FileFinder.path_hook((Loader, [".py"]))
    monkeypatch.setattr(sys, "path_hooks", [hook, *sys.path_hooks])
    sys.path_importer_cache.pop(str(package.parent), None)
    sys.path_importer_cache.pop(str(package), None)
    install_entries(route(package))
    assert [value(package, "one"), value(package, "six")] == ["one", "SIX"]


def test_no_bytecode_is_left_behind(package):
    install_entries(route(package))
    value(package, "one")
    assert not (package / "__pycache__").exists()


def test_other_packages_are_left_alone(package):
    install_entries(route(package, "fresh"))
    value(package, "one")
    assert (package / "__pycache__").exists()


def test_what_is_nowhere_is_missing_as_ever(package):
    install_entries(route(package))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("fresh_one.absent")


def copy(package, folder, text):
    """Write the package once more, where no import path leads."""
    other = folder / "elsewhere" / package.name
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (other / "mod.py").write_text(f"X = {text!r}\n")
    return other


def test_a_package_comes_from_where_it_is_edited_whatever_the_path_says(package, tmp_path):
    install_entries(route(copy(package, tmp_path, "there")))
    assert value(package, "here") == "there"


def test_a_single_module_comes_from_where_it_is_edited(package, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "fresh_two.py").write_text("X = 2\n")
    install_entries(route(tmp_path / "elsewhere" / "fresh_two", "fresh_two"))
    module = importlib.import_module("fresh_two")
    assert (module.X, hasattr(module, "__path__")) == (2, False)


def test_of_two_ways_the_last_counts_until_it_is_lifted(package, tmp_path):
    old, new = route(package), route(copy(package, tmp_path, "there"))
    install_entries(old)
    install_entries(new)
    assert entries_of("fresh") == (new, old)
    assert value(package, "here") == "there"
    uninstall_entries([new])
    assert (value(package, "here"), entries_of("fresh"), entries_of("other")) == (
        "here",
        (old,),
        (),
    )


def test_equal_ways_are_lifted_one_by_one(package):
    first, second = route(package), route(package)
    install_entries(first, second)
    uninstall_entries([first])
    assert entries_of("fresh") == (second,)
