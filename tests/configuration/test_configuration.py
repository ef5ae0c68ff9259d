import os

import pytest

from satchel.configuration.configuration import (
    ProjectLayer,
    config_folder,
    configuration_path,
    fingerprint,
    fixed_folder,
    read_configuration,
)
from satchel.formats.config_fields import ConfigField

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


def read(tmp_path, **values):
    return read_configuration("acme", values, str(tmp_path))


def values(tmp_path, **config):
    return dict(read(tmp_path, **config).values)


def test_without_a_file_there_is_nothing_and_nothing_is_wrong(tmp_path):
    result = read(tmp_path)
    assert (dict(result.values), result.diagnostics) == ({}, ())
    assert result.path == str(tmp_path / "plugins" / "acme.env")


def test_code_wins_over_the_environment_and_that_over_the_file(tmp_path, write, monkeypatch):
    write("A=file\nB=file\nC=file\n")
    monkeypatch.setenv("SATCHEL_ACME_A", "environment")
    monkeypatch.setenv("SATCHEL_ACME_B", "environment")
    assert values(tmp_path, a="code") == {"a": "code", "b": "environment", "c": "file"}


def test_what_is_meant_for_another_plugin_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("SATCHEL_ACME_MAPS_KEY", "of acme-maps")
    monkeypatch.setenv("SATCHEL_ACME_KEY", "own")
    result = read_configuration("acme", {}, str(tmp_path), [ConfigField(name="key")])
    assert dict(result.values) == {"key": "own"}


@pytest.mark.parametrize("plugin", ["config", "data"])
def test_the_variables_of_satchel_itself_are_no_plugins(tmp_path, monkeypatch, plugin):
    monkeypatch.setenv(f"SATCHEL_{plugin.upper()}_DIR", "/x")
    assert dict(read_configuration(plugin, {}, str(tmp_path)).values) == {}


def test_a_path_of_a_project_is_meant_from_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    fields = [ConfigField(name="list", type="path"), ConfigField(name="home", type="path")]
    layer = ProjectLayer("/project/satchel.toml", {"list": "data/list.txt", "home": "~"})
    result = read_configuration("acme", {}, str(tmp_path), fields, layer)
    assert result.values["list"] == "/project/data/list.txt"
    assert result.values["home"] == os.path.expanduser("~")


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
    result = read(tmp_path)
    assert result.values == {"a": "1", "b": "2", "c": "3"}
    assert [(item.code, item.where.line) for item in result.diagnostics] == [
        ("config-unreadable", 2),
        ("config-unreadable", 4),
    ]
    assert {item.where.path for item in result.diagnostics} == {str(file)}
    assert CANARY not in repr(result)
    assert caplog.text == ""


@pytest.mark.parametrize("data", [b"A=\xff\xfe", b"A=1\n" * 100_000])
def test_a_file_that_cannot_be_read_is_reported_and_the_rest_of_the_cascade_holds(
    tmp_path, write, data
):
    write(data)
    result = read(tmp_path, b="code")
    assert result.values == {"b": "code"}
    assert [item.code for item in result.diagnostics] == ["config-unreadable"]


def test_a_folder_or_a_pipe_in_its_place_is_reported_and_does_not_block(tmp_path):
    (tmp_path / "plugins" / "acme.env").mkdir(parents=True)
    assert [item.code for item in read(tmp_path).diagnostics] == ["config-unreadable"]
    (tmp_path / "plugins" / "acme.env").rmdir()
    os.mkfifo(tmp_path / "plugins" / "acme.env")
    assert [item.code for item in read(tmp_path).diagnostics] == ["config-unreadable"]


def test_a_link_that_leads_nowhere_is_reported(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "acme.env").symlink_to(tmp_path / "gone")
    assert [item.code for item in read(tmp_path).diagnostics] == ["config-unreadable"]


def test_the_name_of_a_plugin_becomes_the_name_of_a_variable(monkeypatch):
    monkeypatch.setenv("SATCHEL_ACME_WEATHER_2_API_KEY", "abc")
    result = read_configuration("acme-weather.2", {}, "/nowhere")
    assert result.values == {"api_key": "abc"}
    assert result.variable("api_key") == "SATCHEL_ACME_WEATHER_2_API_KEY"
    assert result.how_to_set("api_key") == (
        "satchel config set acme-weather.2 api_key, "
        "or put API_KEY=... into /nowhere/plugins/acme-weather.2.env, "
        "or set SATCHEL_ACME_WEATHER_2_API_KEY"
    )


def test_a_key_that_can_be_no_variable_is_set_by_hand(tmp_path):
    configuration = read_configuration("acme", {}, str(tmp_path))
    assert configuration.how_to_set("key").startswith("satchel config set acme key, or put KEY=")
    assert configuration.how_to_set("key", "a-b").startswith("put KEY=... and A-B=... into ")


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


# ---- what a manifest declares -------------------------------------------------------------

RETRIES = ConfigField(name="retries", type="integer", default=2, required=False, min=0, max=9)
KEY = ConfigField(name="api_key", type="secret", min=4)


def declared(tmp_path, *fields, project=None, **values):
    layer = ProjectLayer("/project/satchel.toml", project or {})
    return read_configuration("acme", values, str(tmp_path), fields, layer)


def test_each_source_wins_over_the_next_and_the_default_comes_last(tmp_path, write, monkeypatch):
    def found(**values):
        config = declared(tmp_path, RETRIES, project={"RETRIES": 3}, **values)
        assert config.diagnostics == ()
        return config.values["retries"], config.origins["retries"]

    assert read_configuration("acme", {}, str(tmp_path), (RETRIES,)).values == {"retries": 2}
    assert found() == (3, "project")
    write("RETRIES=4\n")
    assert found() == (4, "file")
    monkeypatch.setenv("SATCHEL_ACME_RETRIES", "5")
    assert found() == (5, "environment")
    assert found(retries=6) == (6, "code")
    assert found(retries="") == (5, "environment")
    assert found(retries=None) == (5, "environment")


def test_a_field_that_is_spelled_with_capitals_is_one(tmp_path, write):
    field = ConfigField(name="apiKey", type="integer")
    write("APIKEY=4\n")
    assert declared(tmp_path, field).values == {"apikey": 4}
    assert declared(tmp_path, field, apiKey=5).values == {"apikey": 5}


def test_what_is_not_declared_stays_as_it_is(tmp_path, write):
    write("OTHER=4\nRETRIES=4\n")
    config = declared(tmp_path, RETRIES, project={"third": 5})
    assert config.values == {"other": "4", "retries": 4, "third": 5}


COMMAND = "satchel config set acme retries"
PLACES = {
    "code": ("Satchel(config=...)", "correct it in Satchel(config=...)"),
    "environment": ("SATCHEL_ACME_RETRIES", COMMAND),
    "file": ("acme.env", COMMAND),
    "project": ("/project/satchel.toml", COMMAND),
}


@pytest.mark.parametrize("origin", PLACES)
def test_what_is_not_allowed_is_left_out_and_reported_without_its_value(
    tmp_path, write, monkeypatch, origin
):
    """No farther layer takes its place: who gave it meant something else."""
    wrong, (where, fix) = {"retries": CANARY}, PLACES[origin]
    if origin == "environment":
        monkeypatch.setenv("SATCHEL_ACME_RETRIES", CANARY)
    write(f"RETRIES={CANARY if origin == 'file' else ''}\n")
    project = wrong if origin == "project" else None
    of_code = wrong if origin == "code" else {}
    config = declared(tmp_path, RETRIES, project=project, **of_code)
    assert config.values == {}
    (problem,) = config.diagnostics
    assert problem.code == "config-invalid"
    assert problem.where.path.endswith(where)
    assert "'retries'" in problem.message
    assert "a whole number from 0 to 9" in problem.message
    assert problem.fix.endswith(fix)
    assert CANARY not in repr(config)


def test_a_secret_of_a_project_is_refused_and_never_shown(tmp_path, write):
    project = {"API_KEY": CANARY}
    config = declared(tmp_path, KEY, project=project)
    assert (config.values, config.missing) == ({}, (KEY,))
    (problem,) = config.diagnostics
    assert (problem.code, problem.where.path) == ("config-invalid", "/project/satchel.toml")
    assert problem.fix.endswith("satchel config set acme api_key")
    assert CANARY not in repr(config)
    write("API_KEY=from-the-file\n")
    assert declared(tmp_path, KEY, project=project).values == {"api_key": "from-the-file"}


def test_a_path_has_its_home_and_may_have_to_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    field = ConfigField(name="root", type="path", must_exist=True)
    assert declared(tmp_path, field, root="~").values == {"root": str(tmp_path)}
    assert declared(tmp_path, field, root=tmp_path).values == {"root": str(tmp_path)}
    config = declared(tmp_path, field, root="~/gone")
    assert (config.values, list(config.invalid)) == ({}, ["root"])
    assert str(tmp_path / "gone") not in str(config.diagnostics)


def test_a_required_field_without_a_value_is_missing(tmp_path):
    config = declared(tmp_path, KEY, RETRIES, ConfigField(name="more", required=False))
    assert config.missing == (KEY,)
    (problem,) = config.without_values(config.missing)
    assert problem.code == "config-invalid"
    assert problem.fix.startswith("satchel config set acme api_key, or put API_KEY=")


class Wordless:
    def __repr__(self):
        raise RuntimeError


def test_a_fingerprint_differs_when_a_value_does():
    value = Wordless()
    assert fingerprint({"a": 1, "b": value}) == fingerprint({"b": value, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": value}) != fingerprint({"a": Wordless()})
