"""The user's record of trust: what is kept, and that nothing else is believed."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import Diagnostic
from satchel.errors import SatchelError
from satchel.files.file_reader import UnreadableFileError
from satchel.trust.code_units import CodeUnit
from satchel.trust.runnable_files import CodeFile
from satchel.trust.trust_record import TrustRecord, TrustStore, _parsed, _written, new_record

UNIT = CodeUnit("plugins/a", {"tools.py": CodeFile("d1", "x = 1\n")})


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def store(tmp_path):
    return TrustStore(str(tmp_path / "state"))


def code(project):
    return new_record(project, TrustLevel.CODE, {UNIT.key: UNIT}, ("B", "A", "B"))


def test_a_record_is_read_as_it_was_written(store, project):
    store.write(code(project))
    record = store.read(project).record
    assert record == code(project)
    assert record.variables == ("A", "B")
    assert list(store.all()) == [record]


def test_data_records_neither_code_nor_variables(project):
    record = new_record(project, TrustLevel.DATA, {UNIT.key: UNIT}, ("A",))
    assert (record.units, record.variables) == ({}, ())


def test_a_folder_below_and_a_copy_are_other_projects(store, project, tmp_path):
    store.write(code(project))
    for name in ("project/below", "copy"):
        (tmp_path / name).mkdir()
        assert store.read(str(tmp_path / name)).record is None
    assert store.read(str(tmp_path)).record is None


def test_a_record_moved_to_the_name_of_another_project_is_not_believed(store, project, tmp_path):
    store.write(code(project))
    (tmp_path / "other").mkdir()
    source, target = (Path(store.stamp(str(tmp_path / it))[0]) for it in ("project", "other"))
    target.write_bytes(source.read_bytes())
    target.chmod(0o600)
    assert store.read(str(tmp_path / "other")).record is None


def test_a_revoked_record_is_gone(store, project):
    store.write(code(project))
    assert [store.revoke(project), store.revoke(project)] == [True, False]
    assert store.read(project).record is None


def test_an_unreadable_record_is_listed_as_a_problem(store, project):
    store.write(code(project))
    Path(store.stamp(project)[0]).write_text("{")
    (problem,) = store.all()
    assert isinstance(problem, Diagnostic)


def test_a_state_folder_inside_the_project_is_refused(project):
    store = TrustStore(f"{project}/state")
    with pytest.raises(SatchelError, match="could then trust itself"):
        store.write(code(project))


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_record_that_others_can_write_is_not_believed(store, project, mode):
    store.write(code(project))
    Path(store.stamp(project)[0]).chmod(mode)
    reading = store.read(project)
    assert reading.record is None
    assert "others than you" in reading.diagnostics[0].message


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_a_record_that_would_not_be_used_is_an_error_that_names_its_folder(store, project):
    store.write(code(project))
    folder = Path(store.stamp(project)[0]).parent
    folder.chmod(0o777)
    with pytest.raises(SatchelError, match="0777") as raised:
        store.write(code(project))
    assert raised.value.where == str(folder)
    assert raised.value.fix == f"chmod 700 {folder}"
    folder.chmod(0o700)
    store.write(code(project))
    assert store.read(project).record == code(project)


def test_the_texts_of_a_record_are_bounded(store, project):
    files = {str(number): CodeFile(f"d{number}", "x" * 2**20) for number in range(6)}
    store.write(new_record(project, TrustLevel.CODE, {"a": CodeUnit("a", files)}, ()))
    unit = store.read(project).record.units["a"]
    assert unit.digest == CodeUnit("a", files).digest
    assert sum(len(file.text) for file in unit.files.values()) == 4 * 2**20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_record_or_a_named_problem(data):
    try:
        record = _parsed(data)
    except UnreadableFileError:
        return
    assert isinstance(record, TrustRecord)


@given(st.dictionaries(st.sampled_from(["path", "device", "level", "units", "variables"]), JSON))
def test_a_record_with_odd_parts_is_a_record_or_a_named_problem(parts):
    value = json.loads(_written(TrustRecord(path="/p", device=1, level=TrustLevel.CODE)))
    try:
        record = _parsed(json.dumps(value | parts).encode())
    except UnreadableFileError:
        return
    assert isinstance(record, TrustRecord)
    assert all(isinstance(name, str) for name in record.variables)
