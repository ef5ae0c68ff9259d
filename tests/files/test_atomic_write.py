import fcntl
import os
import stat

import pytest

from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, write_atomic


def test_a_file_is_made_with_its_folder_and_replaced_with_its_mode(tmp_path):
    path = tmp_path / "new" / "file"
    write_atomic(str(path), b"one")
    path.chmod(0o640)
    write_atomic(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == ["file"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"one")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_atomic(str(tmp_path / "link"), b"two", private=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600


def test_what_fails_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"one")

    def fail(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(SatchelError, match="No space left"):
        write_atomic(str(path), b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["file"]


def test_who_changes_a_file_is_alone_with_it_and_leaves_nothing(tmp_path):
    folder = tmp_path / "new"
    with file_lock(str(folder / "file"), private=True):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        descriptor = os.open(folder, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert os.listdir(folder) == []
