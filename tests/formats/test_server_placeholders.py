"""Placeholders of MCP servers, by Agent Plugins 1.0.0, sections 7.2.1 and 9."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats.mcp_json import McpServerManifest
from satchel.mcp_servers.server_declarations import plugin_server
from satchel.sources.search_roots import Precedence

ROOT, DATA = "/plugins/demo", "/data/demo"


def fill(table, environment=None, *, root=ROOT, data=DATA, of_claude=False):
    """Return a server of a plugin as it is started or reached."""
    contribution = SimpleNamespace(groups=())
    plugin = SimpleNamespace(
        name="demo", path=root, unit=root, scope=Precedence.USER, contribution=contribution
    )
    manifest = McpServerManifest(name="a", table=table, of_claude=of_claude)
    return plugin_server(plugin, manifest, root, data, environment or {}).server


def stdio(**fields):
    return {"command": "x", **fields}


def test_9_2_both_placeholders_are_filled_in_in_args_env_and_cwd():
    table = stdio(
        args=["--data", "${PLUGIN_DATA}/x:${PLUGIN_ROOT}", "${PLUGIN_ROOT}${PLUGIN_ROOT}"],
        env={"CONFIG": "${PLUGIN_ROOT}/c.json"},
        cwd="${PLUGIN_DATA}/work",
    )
    filled = fill(table)
    assert filled.args == ("--data", f"{DATA}/x:{ROOT}", ROOT + ROOT)
    assert filled.env["CONFIG"] == f"{ROOT}/c.json"
    assert filled.cwd == f"{DATA}/work"


def test_9_2_what_is_filled_in_is_not_scanned_again():
    filled = fill(stdio(args=["${PLUGIN_ROOT}"]), root="/a/${PLUGIN_DATA}", data="/b")
    assert filled.args == ("/a/${PLUGIN_DATA}",)


@pytest.mark.parametrize(
    "text",
    [
        "${HOME}",
        "$PLUGIN_ROOT",
        "${plugin_root}",
        "${PLUGIN_ROOT",
        "${ PLUGIN_ROOT }",
        "${PLUGIN_ROOT:-x}",
        "%PLUGIN_ROOT%",
        "$${X}",
        "${CLAUDE_PLUGIN_ROOT}",
        "`x`",
    ],
)
def test_9_2_whatever_else_looks_like_a_placeholder_stays(text):
    environment = {"HOME": "/h", "X": "x", "CLAUDE_PLUGIN_ROOT": "/c"}
    filled = fill(stdio(args=[text], env={"A": text}), environment)
    assert (filled.args, filled.env["A"]) == ((text,), text)


def test_9_2_names_of_variables_and_the_command_are_never_filled_in():
    filled = fill(stdio(command="${PLUGIN_ROOT}", env={"${PLUGIN_ROOT}": "x"}))
    assert filled.command == "${PLUGIN_ROOT}"
    assert filled.env["${PLUGIN_ROOT}"] == "x"


def test_7_2_1_urls_and_headers_are_never_filled_in():
    table = {"url": "https://a/${PLUGIN_ROOT}", "headers": {"h": "${PLUGIN_DATA}"}}
    filled = fill(table, {"PLUGIN_ROOT": "x"})
    assert (filled.url, filled.headers) == (table["url"], table["headers"])


def test_9_1_the_environment_is_what_the_server_sets_with_its_folders():
    filled = fill(stdio(env={"A": "own"}), {"A": "base", "B": "base"})
    assert filled.env == {"A": "own", "PLUGIN_ROOT": ROOT, "PLUGIN_DATA": DATA}


def test_9_1_root_and_data_are_set_last_whatever_was_there():
    filled = fill(stdio(env={"PLUGIN_ROOT": "mine"}), {"PLUGIN_DATA": "old"})
    assert (filled.env["PLUGIN_ROOT"], filled.env["PLUGIN_DATA"]) == (ROOT, DATA)


def test_7_2_1_without_a_working_directory_it_is_the_plugin_root():
    assert fill(stdio()).cwd == f"{ROOT}/"


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        ("./data", f"{ROOT}/data"),
        ("${PLUGIN_ROOT}", ROOT),
        ("./${PLUGIN_DATA}", f"{ROOT}/{DATA}"),
    ],
)
def test_7_2_1_placeholders_are_filled_in_before_a_working_directory_is_resolved(cwd, expected):
    assert fill(stdio(cwd=cwd)).cwd == expected


def test_7_2_1_a_relative_command_is_one_of_the_plugin_and_a_bare_one_stays():
    assert fill(stdio(command="./bin/my server")).command == f"{ROOT}/bin/my server"
    assert fill(stdio(command="npx")).command == "npx"


def test_4_1_arguments_and_variables_are_opaque_and_no_paths():
    filled = fill(stdio(args=["./x", "../y"], env={"A": "./z"}))
    assert (filled.args, filled.env["A"]) == (("./x", "../y"), "./z")


@given(st.text(st.characters(exclude_characters="\0")), st.text())
def test_9_2_a_text_without_placeholders_is_as_it_was(text, value):
    if "${PLUGIN_" not in text:
        assert fill(stdio(args=[text]), {"A": value}).args == (text,)


# ---- Claude bundles -----------------------------------------------------------------------


def claude(text, environment):
    filled = fill(stdio(command=f"x{text}", args=[text]), environment, of_claude=True)
    assert filled.command == f"x{filled.args[0]}"
    return filled.args[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${CLAUDE_PLUGIN_ROOT}/x", f"{ROOT}/x"),
        ("${CLAUDE_PLUGIN_DATA}", DATA),
        ("${TOKEN}-${TOKEN}", "secret-secret"),
        ("${NOBODY}", "${NOBODY}"),
        ("${NOBODY:-default}", "default"),
        ("${NOBODY:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-default}", "default"),
        ("${TOKEN:-default}", "secret"),
        ("$TOKEN", "$TOKEN"),
    ],
)
def test_a_bundle_may_name_any_variable_with_a_default(text, expected):
    assert claude(text, {"TOKEN": "secret", "EMPTY": ""}) == expected


def test_a_bundle_may_do_so_in_urls_and_headers():
    table = {"url": "https://${H}/", "headers": {"Auth": "Bearer ${T}"}}
    filled = fill(table, {"H": "host", "T": "t"}, of_claude=True)
    assert (filled.url, filled.headers) == ("https://host/", {"Auth": "Bearer t"})


def test_a_server_of_a_bundle_knows_its_folders_by_both_names():
    filled = fill(stdio(), of_claude=True)
    assert filled.env["CLAUDE_PLUGIN_ROOT"] == filled.env["PLUGIN_ROOT"] == ROOT
    assert filled.cwd is None
