import os

import pytest

from satchel.sources import configuration_path, read_configuration
from satchel.sources.config import config_folder, fixed_folder

CANARY = "s3cr3t-canary"


@pytest.fixture
def write(tmp_path):
    """Write the file of the plugin `acme`."""

    def write(data: str | bytes):
        file = tmp_path / "plugins" / "acme.env"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    return write


def read(tmp_path, **given):
    return read_configuration("acme", given, str(tmp_path))


def values(tmp_path, **given):
    return dict(read(tmp_path, **given).values)


def test_without_a_file_there_is_nothing_and_nothing_is_wrong(tmp_path):
    found = read(tmp_path)
    assert (dict(found.values), found.diagnostics) == ({}, ())
    assert found.path == str(tmp_path / "plugins" / "acme.env")


def test_code_wins_over_the_environment_and_that_over_the_file(tmp_path, write, monkeypatch):
    write("A=file\nB=file\nC=file\n")
    monkeypatch.setenv("SATCHEL_ACME_A", "environment")
    monkeypatch.setenv("SATCHEL_ACME_B", "environment")
    assert values(tmp_path, a="code") == {"a": "code", "b": "environment", "c": "file"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("API_KEY=abc", "abc"),
        ("api_key=abc", "abc"),
        ("export API_KEY=abc", "abc"),
        ("API_KEY = 'a b'", "a b"),
        ('API_KEY="a\\nb"', "a\nb"),
        ("API_KEY=a$HOME${X}", "a$HOME${X}"),
        ("API_KEY=a # a remark", "a"),
        ("\ufeffAPI_KEY=abc", "abc"),
        ("API_KEY=abc\r\n", "abc"),
        ("API_KEY=one\nAPI_KEY=two", "two"),
    ],
)
def test_a_line_of_the_file_is_read_as_shells_do_but_nothing_is_filled_in(
    tmp_path, write, line, value
):
    write(line)
    assert values(tmp_path) == {"api_key": value}


@pytest.mark.parametrize("line", ["A=", "A=''", "A", "# A=1", ""])
def test_an_empty_value_is_none(tmp_path, write, monkeypatch, line):
    write(line)
    monkeypatch.setenv("SATCHEL_ACME_A", "")
    assert values(tmp_path) == {}


def test_an_empty_variable_leaves_the_file_its_say(tmp_path, write, monkeypatch):
    write("A=file")
    monkeypatch.setenv("SATCHEL_ACME_A", "")
    assert values(tmp_path) == {"a": "file"}


def test_an_odd_line_is_named_without_its_text_and_costs_only_itself(tmp_path, write, caplog):
    file = write(f"A=1\n=== {CANARY}\nB=2\n'{CANARY}\nC=3\n")
    found = read(tmp_path)
    assert found.values == {"a": "1", "b": "2", "c": "3"}
    assert [(item.code, item.where.line) for item in found.diagnostics] == [
        ("config-unreadable", 2),
        ("config-unreadable", 4),
    ]
    assert {item.where.path for item in found.diagnostics} == {str(file)}
    assert CANARY not in repr(found)
    assert caplog.text == ""


@pytest.mark.parametrize("data", [b"A=\xff\xfe", b"A=1\n" * 100_000])
def test_a_file_that_cannot_be_read_is_told_and_the_rest_of_the_cascade_holds(
    tmp_path, write, data
):
    write(data)
    found = read(tmp_path, b="code")
    assert found.values == {"b": "code"}
    assert [item.code for item in found.diagnostics] == ["config-unreadable"]


def test_a_folder_or_a_pipe_in_its_place_is_told_and_holds_nobody_up(tmp_path):
    (tmp_path / "plugins" / "acme.env").mkdir(parents=True)
    assert [item.code for item in read(tmp_path).diagnostics] == ["config-unreadable"]
    (tmp_path / "plugins" / "acme.env").rmdir()
    os.mkfifo(tmp_path / "plugins" / "acme.env")
    assert [item.code for item in read(tmp_path).diagnostics] == ["config-unreadable"]


def test_a_link_that_leads_nowhere_is_told(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "acme.env").symlink_to(tmp_path / "gone")
    assert [item.code for item in read(tmp_path).diagnostics] == ["config-unreadable"]


def test_the_name_of_a_plugin_becomes_the_name_of_a_variable(monkeypatch):
    monkeypatch.setenv("SATCHEL_ACME_WEATHER_2_API_KEY", "abc")
    found = read_configuration("acme-weather.2", {}, "/nowhere")
    assert found.values == {"api_key": "abc"}
    assert found.variable("api_key") == "SATCHEL_ACME_WEATHER_2_API_KEY"
    assert found.how_to_set("api_key") == (
        "put API_KEY=... into /nowhere/plugins/acme-weather.2.env, "
        "or set SATCHEL_ACME_WEATHER_2_API_KEY"
    )


def test_no_value_is_in_a_repr(tmp_path, write):
    write(f"A={CANARY}")
    assert CANARY not in repr(read(tmp_path, b=CANARY))


def test_the_folder_is_the_systems_unless_a_variable_moves_it(tmp_path, monkeypatch):
    monkeypatch.delenv("SATCHEL_CONFIG_DIR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "satchel" in config_folder()
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", "~/mine")
    assert config_folder() == str(tmp_path / "mine")
    assert configuration_path("acme") == str(tmp_path / "mine" / "plugins" / "acme.env")
    assert configuration_path("acme", "/other") == "/other/plugins/acme.env"


def test_a_folder_stays_where_it_was_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SATCHEL_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert fixed_folder("") == ""
    assert fixed_folder("here") == str(tmp_path / "here")
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", "moved")
    assert fixed_folder("") == str(tmp_path / "moved")
    assert fixed_folder("here") == str(tmp_path / "here")
