"""The record of who served a name first."""

import json

import pytest

from satchel.trust.name_owners import NameOwners


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state/names/owners.json"


def test_a_name_that_was_never_served_has_no_owner(state, file):
    owners = NameOwners(state)
    assert owners.of("tool", "search") == ()
    owners.record([])
    assert not file.exists()


def test_the_oldest_owner_comes_first_and_each_is_recorded_once(state):
    owners = NameOwners(state)
    for unit in ("plugins/maps", "plugins/atlas", "plugins/maps"):
        owners.record([("tool", "search", unit)])
    assert owners.of("tool", "search") == ("plugins/maps", "plugins/atlas")
    assert owners.of("plugin", "search") == ()


def test_the_next_process_knows_the_owners(state):
    NameOwners(state).record([("tool", "search", "plugins/maps")])
    assert NameOwners(state).of("tool", "search") == ("plugins/maps",)


def test_two_processes_add_to_one_record(state):
    first, second = NameOwners(state), NameOwners(state)
    assert first.of("tool", "a") == second.of("tool", "a") == ()
    first.record([("tool", "a", "one")])
    second.record([("tool", "a", "two"), ("tool", "b", "two")])
    assert NameOwners(state).of("tool", "a") == second.of("tool", "a") == ("one", "two")


def test_of_many_owners_the_oldest_stays(state):
    owners = NameOwners(state)
    for number in range(20):
        owners.record([("tool", "search", f"unit-{number}")])
    units = owners.of("tool", "search")
    assert (units[0], units[-1], len(units)) == ("unit-0", "unit-19", 8)


def test_a_full_record_takes_no_new_names(state, monkeypatch):
    monkeypatch.setattr("satchel.trust.name_owners._MOST_NAMES", 1)
    owners = NameOwners(state)
    owners.record([("tool", "a", "one"), ("tool", "b", "one")])
    owners.record([("tool", "a", "two")])
    assert (owners.of("tool", "a"), owners.of("tool", "b")) == (("one", "two"), ())


def test_what_is_recorded_already_is_not_written_again(state, file):
    owners = NameOwners(state)
    owners.record([("tool", "search", "plugins/maps")])
    file.unlink()
    owners.record([("tool", "search", "plugins/maps")])
    assert not file.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"owners": 3}', '{"owners": {"tool": []}}'])
def test_a_broken_record_is_reported_once_and_protects_names_meanwhile(state, file, text, caplog):
    file.parent.mkdir(parents=True)
    file.write_text(text)
    owners = NameOwners(state)
    assert owners.of("tool", "search") == owners.of("tool", "other") == ()
    owners.record([("tool", "search", "plugins/maps")])
    assert owners.of("tool", "search") == ("plugins/maps",)
    assert file.read_text() == text
    assert caplog.text.count("owners of names cannot be read") == 1
    assert f"the owners of names cannot be recorded in {file}: " in caplog.text


def test_the_record_is_plain_json_for_its_owner_alone(state, file):
    NameOwners(state).record([("tool", "search", "plugins/maps")])
    assert json.loads(file.read_text()) == {
        "version": 1,
        "owners": {"tool": {"search": ["plugins/maps"]}},
    }
    assert file.stat().st_mode & 0o777 == 0o600
