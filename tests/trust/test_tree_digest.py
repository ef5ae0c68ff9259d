"""The digest of a folder: what counts, and which file is the first that changed."""

import subprocess

import pytest

from satchel.trust.tree_digest import changed_file, folder_digest, read_digests, tree_digest

SHA256SUM = "find . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | sha256sum"


@pytest.fixture
def folder(tmp_path, write_files):
    texts = {"b.txt": "b", "a/c.txt": "c", "é.md": "e", "A.txt": "a"}
    return write_files(tmp_path / "unit", texts)


def test_it_is_what_sha256sum_prints(folder):
    line = ["/bin/sh", "-c", SHA256SUM]
    printed = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert folder_digest(str(folder)) == f"sha256:{printed.split()[0]}"


def test_the_order_of_the_files_does_not_count_and_names_do():
    files = [("a", "1"), ("b", "2")]
    assert tree_digest(files) == tree_digest(reversed(files))
    assert tree_digest(files) != tree_digest([("a", "2"), ("b", "1")])
    assert tree_digest(files) != tree_digest([("a", "1"), ("c", "2")])


def test_modes_times_and_compiled_files_do_not_count(folder):
    before = folder_digest(str(folder))
    (folder / "b.txt").chmod(0o755)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_bytes(b"x")
    assert folder_digest(str(folder)) == before
    (folder / "b.txt").write_text("B")
    assert folder_digest(str(folder)) != before


def changed(folder, before, *options):
    return changed_file(before, str(folder), str(folder), *options)


def test_nothing_changed_in_a_folder_that_is_as_it_was(folder):
    assert changed(folder, read_digests(str(folder))) == ""


@pytest.mark.parametrize("name", ["b.txt", "a/c.txt", "a/new.txt"])
def test_the_file_that_changed_or_is_new_is_named(folder, name):
    before = read_digests(str(folder))
    (folder / name).write_text("changed")
    assert changed(folder, before) == name
    assert changed(folder, before, lambda other: other != name) == ""


def test_a_file_that_is_gone_is_named(folder):
    before = read_digests(str(folder))
    (folder / "é.md").unlink()
    assert changed(folder, before) == "é.md"


def test_the_first_of_several_is_named_also_if_the_folder_is_gone(folder):
    before = read_digests(str(folder))
    folder.rename(folder.with_name("moved"))
    assert changed(folder, before) == "A.txt"
