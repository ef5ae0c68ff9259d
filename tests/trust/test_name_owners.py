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


def test_of_many_owners_the_oldest_and_the_newest_stay(state):
    owners = NameOwners(state)
    for number in range(100):
        owners.record([("tool", "search", f"unit-{number}")])
    units = owners.of("tool", "search")
    assert units == tuple(f"unit-{number}" for number in (*range(32), *range(68, 100)))


def test_a_full_record_takes_no_new_names(state, monkeypatch):
    monkeypatch.setattr("satchel.trust.name_owners._MOST_NAMES", 1)
    owners = NameOwners(state)
    owners.record([("tool", "a", "one"), ("tool", "b", "one")])
    owners.record([("tool", "a", "two")])
    assert (owners.of("tool", "a"), owners.of("tool", "b")) == (("one", "two"), ())


def test_long_paths_cannot_make_the_record_unreadable(state, monkeypatch, caplog):
    NameOwners(state).record([("skill", "pdf", "skills/pdf")])
    monkeypatch.setattr("satchel.trust.name_owners._MOST_BYTES", 1000)
    NameOwners(state).record([("skill", "docx", "x" * 1000)])
    assert "the record is full" in caplog.text
    owners = NameOwners(state)
    assert (owners.of("skill", "pdf"), owners.of("skill", "docx")) == (("skills/pdf",), ())


def test_what_is_recorded_already_is_not_written_again(state, file):
    owners = NameOwners(state)
    owners.record([("tool", "search", "plugins/maps")])
    file.unlink()
    owners.record([("tool", "search", "plugins/maps")])
    assert not file.exists()


def test_a_start_with_the_same_names_does_not_parse_the_record(state, file, monkeypatch):
    served = [("skill", f"s{number}", f"skills/{number}") for number in range(3)]
    NameOwners(state).record(served)
    before, loads = file.read_bytes(), json.loads
    monkeypatch.setattr("json.loads", lambda _: pytest.fail("it was parsed"))
    NameOwners(state).record(iter(served))
    monkeypatch.setattr("json.loads", loads)
    NameOwners(state).record(served[1:])
    assert NameOwners(state).of("skill", "s0") == ("skills/0",)
    added = file.read_bytes().partition(b'"owners"')
    assert added[1:] == before.partition(b'"owners"')[1:]
    monkeypatch.setattr("json.loads", lambda _: pytest.fail("it was parsed"))
    NameOwners(state).record(served[1:])


def test_a_start_whose_names_are_contested_writes_nothing_if_all_is_recorded(state, file):
    NameOwners(state).record([("skill", "pdf", "skills/pdf")])
    before = file.read_bytes()
    owners = NameOwners(state)
    assert owners.of("skill", "pdf")
    owners.record([("skill", "pdf", "skills/pdf")])
    assert file.read_bytes() == before


def test_after_a_start_with_the_same_names_newcomers_are_recorded(state):
    NameOwners(state).record([("skill", "pdf", "skills/pdf")])
    owners = NameOwners(state)
    owners.record([("skill", "pdf", "skills/pdf")])
    owners.record([("skill", "pdf", "skills/a/pdf"), ("skill", "pdf", "skills/pdf")])
    assert NameOwners(state).of("skill", "pdf") == ("skills/pdf", "skills/a/pdf")


def test_no_name_in_the_record_poses_as_the_digest_of_a_start(state, file):
    served = [("skill", "pdf", "skills/pdf")]
    NameOwners(state).record(served)
    (digest,) = json.loads(file.read_text())["starts"]
    file.unlink()
    NameOwners(state).record([("skill", digest, "skills/hostile")])
    NameOwners(state).record(served)
    assert NameOwners(state).of("skill", "pdf") == ("skills/pdf",)


def test_a_record_that_cannot_be_written_is_no_problem_if_all_is_recorded(
    state, caplog, monkeypatch
):
    served = [("skill", "pdf", "skills/pdf"), ("skill", "docx", "skills/docx")]
    NameOwners(state).record(served)

    def refuse(*_: object) -> None:
        raise OSError("read-only")

    monkeypatch.setattr("satchel.trust.name_owners.StateFile.change", refuse)
    NameOwners(state).record(served[1:])
    assert not caplog.text
    NameOwners(state).record([("skill", "xlsx", "skills/xlsx")])
    assert "read-only" in caplog.text


def test_many_skills_leave_room_for_the_names_of_tools(state, monkeypatch):
    monkeypatch.setattr("satchel.trust.name_owners._MOST_NAMES", 1)
    owners = NameOwners(state)
    owners.record([("skill", "a", "one"), ("skill", "b", "one"), ("tool", "a", "two")])
    assert owners.of("tool", "a") == ("two",)


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
    record = json.loads(file.read_text())
    assert len(record.pop("starts")) == 1
    assert record == {"version": 1, "owners": {"tool": {"search": ["plugins/maps"]}}}
    assert file.stat().st_mode & 0o777 == 0o600
