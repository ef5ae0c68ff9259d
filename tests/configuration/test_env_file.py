import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.configuration.env_file import (
    change_env,
    env_text,
    parse_env,
    read_env,
    replace_env,
    write_env,
)
from satchel.errors import SatchelError

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "plugins" / "acme.env"


@given(TEXTS, TEXTS)
def test_whatever_is_set_is_read_back_the_same(tmp_path_factory, one, two):
    path = str(tmp_path_factory.mktemp("env") / "acme.env")
    change_env(path, {"ONE": one})
    change_env(path, {"two": two})
    assert read_env(path) == ({"one": one, "two": two}, ())
    change_env(path, {"one": two})
    assert read_env(path) == ({"one": two, "two": two}, ())


@given(st.text(st.sampled_from("AB=\"'\\#\n\r \t$x")), st.text("\"'\\#\n\r $x=", min_size=1))
def test_any_file_keeps_its_other_values_or_is_left_alone(tmp_path_factory, before, value):
    path = tmp_path_factory.mktemp("env") / "acme.env"
    path.write_bytes(before.encode())
    others = {key: kept for key, kept in parse_env(before, "")[0].items() if key != "key"}
    try:
        change_env(str(path), {"key": value})
    except SatchelError:
        assert path.read_bytes() == before.encode()
    else:
        assert read_env(str(path))[0] == {**others, "key": value}


def test_comments_order_and_the_other_lines_stay(file):
    file.parent.mkdir()
    file.write_text("# first\nexport A=1 # old\n\n  B = 'x y'\n# last\nC=3\n")
    assert change_env(str(file), {"a": "new", "D": "a b"})
    assert file.read_text() == "# first\nexport A=new\n\n  B = 'x y'\n# last\nC=3\nD='a b'\n"
    assert change_env(str(file), {"b": None})
    assert file.read_text() == "# first\nexport A=new\n\n# last\nC=3\nD='a b'\n"


def test_of_a_key_that_stands_twice_one_is_left(file):
    file.parent.mkdir()
    file.write_text("A=1\nB=2\nA=3")
    change_env(str(file), {"a": "4"})
    assert file.read_text() == "B=2\nA=4"
    change_env(str(file), {"c": "5"})
    assert file.read_text() == "B=2\nA=4\nC=5\n"


def test_a_file_is_for_its_owner_alone(file):
    change_env(str(file), {"a": "1"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.chmod(0o644)
    change_env(str(file), {"a": "2"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["acme.env"]


def test_what_changes_nothing_writes_nothing(file):
    assert not change_env(str(file), {"a": None})
    assert not file.exists()
    change_env(str(file), {"a": "1"})
    before = file.stat().st_mtime_ns, file.stat().st_ino
    assert not change_env(str(file), {"A": "1"})
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


@pytest.mark.parametrize("data", [b"A=\xff", b"A=1\n" * 100_000])
def test_a_file_that_cannot_be_read_is_not_touched(file, data):
    file.parent.mkdir()
    file.write_bytes(data)
    with pytest.raises(SatchelError):
        change_env(str(file), {"b": "1"})
    assert file.read_bytes() == data


def test_a_value_that_is_no_text_or_too_long_is_refused_without_being_quoted(file):
    for value in ("\ud800", "x" * 300_000):
        with pytest.raises(SatchelError) as caught:
            change_env(str(file), {"a": value})
        assert value not in str(caught.value)
    assert not file.exists()


def test_a_file_that_a_program_would_break_is_left_to_its_owner(file):
    file.parent.mkdir()
    file.write_text("A='open\nB=2\n")
    with pytest.raises(SatchelError, match="edit it by hand"):
        change_env(str(file), {"c": "x y"})
    assert file.read_text() == "A='open\nB=2\n"


def test_the_whole_text_can_be_taken_and_given(file):
    assert env_text(str(file)) == ""
    write_env(str(file), "# A\n")
    assert env_text(str(file)) == "# A\n"


MANY = """
import sys
from satchel.configuration.env_file import change_env
path, name = sys.argv[1:]
for number in range(50):
    change_env(path, {f"{name}{number}": "v"})
"""


def test_nothing_is_lost_where_several_change_one_file(file):
    command = [sys.executable, "-c", MANY, str(file)]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(read_env(str(file))[0]) == 100
    assert os.listdir(file.parent) == ["acme.env"]


def test_a_text_takes_the_place_only_of_the_one_that_was_read(file):
    assert replace_env(str(file), "", "A=1\n")
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not replace_env(str(file), "", "A=2\n")
    assert env_text(str(file)) == "A=1\n"
