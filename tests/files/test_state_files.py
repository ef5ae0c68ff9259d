import os
import stat

import pytest

from satchel.files.file_reader import UnreadableFileError
from satchel.files.state_files import StateFile, data_folder, state_folder


def test_the_state_folder_is_what_is_given_or_the_environment_says(monkeypatch, tmp_path):
    assert state_folder(str(tmp_path)) == str(tmp_path)
    monkeypatch.setenv("SATCHEL_STATE_DIR", "~/there")
    assert state_folder() == os.path.expanduser("~/there")
    monkeypatch.delenv("SATCHEL_STATE_DIR")
    assert state_folder().endswith("satchel")


def test_the_data_of_a_plugin_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("SATCHEL_DATA_DIR", str(tmp_path))
    assert data_folder("demo") == str(tmp_path / "plugins" / "demo")


def test_what_is_remembered_is_for_its_owner_alone(tmp_path):
    file = StateFile(str(tmp_path), "pins", "a.json")
    before = file.stamp
    assert file.read() is None
    file.change(lambda _: b"one")
    assert file.read() == b"one"
    assert file.stamp != before
    assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "pins").st_mode) == 0o700


def test_what_is_no_file_is_neither_read_nor_written(tmp_path):
    file = StateFile(str(tmp_path), "folder")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnreadableFileError):
        file.read()
    with pytest.raises(UnreadableFileError):
        file.change(lambda _: b"")
