"""The record of who served a name: the oldest owner stays, also when the record is damaged."""

import json
import logging

import pytest

from satchel.trust import name_owners
from satchel.trust.name_owners import NameOwners


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state"


def owners_of(folder, name="search"):
    return NameOwners(str(folder)).of("tool", name)


def test_the_units_that_served_a_name_are_remembered_the_oldest_first(folder):
    owners = NameOwners(str(folder))
    assert owners.of("tool", "search") == ()
    owners.record([("tool", "search", "a"), ("plugin", "search", "p")])
    owners.record([("tool", "search", "b"), ("tool", "search", "a")])
    assert owners.of("tool", "search") == ("a", "b") == owners_of(folder)
    assert owners.of("plugin", "search") == ("p",)


def test_what_is_recorded_is_not_written_again(folder):
    NameOwners(str(folder)).record([("tool", "search", "a")])
    (file,) = folder.rglob("owners.json")
    file.chmod(0o600)
    before = file.stat()
    NameOwners(str(folder)).record([("tool", "search", "a")])
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_another_process_recorded_first_stays_first(folder):
    late = NameOwners(str(folder))
    assert late.of("tool", "search") == ()
    NameOwners(str(folder)).record([("tool", "search", "a")])
    late.record([("tool", "search", "b")])
    assert late.of("tool", "search") == ("a", "b")


def test_the_oldest_owner_is_never_pushed_out(folder):
    owners = NameOwners(str(folder))
    for number in range(12):
        owners.record([("tool", "search", f"unit-{number}")])
    units = owners_of(folder)
    assert (len(units), units[0], units[-1]) == (8, "unit-0", "unit-11")


def test_a_full_record_takes_no_new_name_but_further_units_of_its_names(folder, monkeypatch):
    monkeypatch.setattr(name_owners, "_MOST_NAMES", 1)
    owners = NameOwners(str(folder))
    owners.record([("tool", "first", "a"), ("tool", "second", "b"), ("tool", "first", "c")])
    assert (owners_of(folder, "first"), owners_of(folder, "second")) == (("a", "c"), ())


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"owners": {"tool": ["a"]}})])
def test_a_damaged_record_is_reported_once_and_names_stay_protected_here(folder, caplog, content):
    NameOwners(str(folder)).record([("tool", "search", "a")])
    (file,) = folder.rglob("owners.json")
    file.write_text(content)
    owners = NameOwners(str(folder))
    with caplog.at_level(logging.WARNING, "satchel"):
        for name in ("search", "other"):
            assert owners.of("tool", name) == ()
            (line,) = caplog.messages
    assert line.endswith(f"remove {file} to start again")
    owners.record([("tool", "search", "b")])
    assert owners.of("tool", "search") == ("b",)
    assert file.read_text() == content
