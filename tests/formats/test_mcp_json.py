"""mcp.json by the letter of Agent Plugins 1.0.0; names begin with the section they test."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.diagnostics import Severity, strictly
from satchel.formats import mcp_json_reader as module
from satchel.formats.mcp_json import MCP_SCHEMAS, McpServerManifest
from satchel.formats.mcp_json_reader import read_mcp
from satchel.settings import Limits

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
GOOD = {"type": "stdio", "command": "server"}
REMOTE = {"type": "streamable-http", "url": "https://example.com/mcp"}


def read(data, spec="1.0.0", **limits):
    if isinstance(data, dict):
        data = json.dumps(data, indent=1)
    raw = data.encode() if isinstance(data, str) else data
    return read_mcp(raw, "p/mcp.json", Limits(**limits), spec)


def servers(**servers):
    return read({"$schema": SCHEMA, "mcpServers": servers})


def is_valid(server):
    """Tell whether a server is read; one that is not takes no other along, and is reported."""
    reading = servers(good=GOOD, tried=server, last=REMOTE)
    names = [value.name for value in reading.value]
    assert [name for name in names if name != "tried"] == ["good", "last"]
    assert bool(reading.diagnostics) is ("tried" not in names)
    assert {item.code for item in reading.diagnostics} <= {"mcp-server-invalid"}
    return "tried" in names


def disabled(data, **named):
    """Return what is wrong with a file that brings no servers at all."""
    reading = read(data, **named)
    assert reading.value is None
    assert {item.severity for item in reading.diagnostics} == {Severity.WARNING}
    assert {item.code for item in reading.diagnostics} == {"mcp-invalid"}
    return [item.where.line for item in reading.diagnostics]


# ---- 7.2.1 Discovery and configuration: the file ------------------------------------------


def test_7_2_1_every_field_of_every_kind_of_server_is_read():
    reading = servers(
        local={**GOOD, "args": ["-x", ""], "env": {"A": "${PLUGIN_DATA}"}, "cwd": "./data"},
        remote={**REMOTE, "headers": {"X-Tenant": "public"}},
        old={"type": "sse", "url": "https://legacy.example.com/sse"},
    )
    assert reading.diagnostics == ()
    local, remote, old = reading.value
    assert local == McpServerManifest(
        name="local",
        table={
            "command": "server",
            "args": ("-x", ""),
            "env": {"A": "${PLUGIN_DATA}"},
            "cwd": "./data",
        },
    )
    assert remote.table == {
        "transport": "streamable-http",
        "url": "https://example.com/mcp",
        "headers": {"X-Tenant": "public"},
    }
    assert old.table == {"transport": "sse", "url": "https://legacy.example.com/sse"}


def test_a_server_is_immutable():
    (server,) = servers(a={**GOOD, "env": {"A": "1"}}).value
    with pytest.raises(TypeError):
        server.table["env"]["A"] = "2"
    assert hash(server) == hash(servers(a={**GOOD, "env": {"A": "1"}}).value[0])


def test_7_2_1_no_servers_at_all_are_valid():
    assert servers() == read({"$schema": SCHEMA, "mcpServers": {}})
    assert servers().value == servers().diagnostics == ()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "NaN", "{} {}"])
def test_7_2_2_a_file_that_is_no_json_object_disables_the_servers(text):
    assert disabled(text) == [1]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ({"mcpServers": {}}, [1]),
        ({"$schema": SCHEMA}, [1]),
        ({"$schema": SCHEMA, "mcpServers": []}, [3]),
        ({"$schema": SCHEMA, "mcpServers": None}, [3]),
        ({"$schema": SCHEMA, "mcpServers": {}, "servers": {}}, [4]),
        ({"$schema": 1, "x": 1}, [1, 2, 3]),
    ],
)
def test_7_2_1_the_top_level_has_schema_and_servers_and_nothing_else(data, lines):
    assert disabled(data) == lines


@pytest.mark.parametrize(
    "schema", [SCHEMA.replace("1.0.0", "1.1.0"), SCHEMA.replace("mcp", "plugin"), "", "1.0.0"]
)
def test_7_2_2_a_version_that_is_not_known_disables_the_servers(schema):
    assert disabled({"$schema": schema, "mcpServers": {"a": GOOD}}) == [2]


def test_10_1_a_version_other_than_that_of_the_manifest_disables_the_servers(monkeypatch):
    newer = SCHEMA.replace("1.0.0", "1.1.0")
    monkeypatch.setattr(module, "MCP_SCHEMAS", {SCHEMA: "1.0.0", newer: "1.1.0"})
    assert read({"$schema": newer, "mcpServers": {}}, spec="1.1.0").value == ()
    assert disabled({"$schema": newer, "mcpServers": {}}, spec="1.0.0") == [2]
    assert disabled({"$schema": SCHEMA, "mcpServers": {}}, spec="1.1.0") == [2]


def test_5_2_and_7_2_1_each_version_has_both_schemas():
    from satchel.formats.open_plugin_manifest import PLUGIN_SCHEMAS

    assert sorted(MCP_SCHEMAS.values()) == sorted(PLUGIN_SCHEMAS.values())


# ---- 7.2.1 each server --------------------------------------------------------------------


@pytest.mark.parametrize(
    "server",
    [
        *(None, [], "server", 1),
        {},
        {"command": "server"},
        {"url": "https://example.com"},
        {**GOOD, "type": None},
        {**GOOD, "type": "STDIO"},
        {**REMOTE, "type": "http"},
        {**REMOTE, "type": "ws"},
    ],
)
def test_7_2_1_a_server_must_have_a_type_that_is_known(server):
    assert not is_valid(server)


@pytest.mark.parametrize(
    "server",
    [
        {**GOOD, "url": "https://example.com"},
        {**GOOD, "headers": {}},
        {**REMOTE, "command": "server"},
        {**REMOTE, "env": {}},
        {**REMOTE, "cwd": "./"},
        {**GOOD, "disabled": True},
        {**REMOTE, "timeout": 5},
    ],
)
def test_7_2_1_a_field_that_is_unknown_or_of_another_kind_makes_a_server_invalid(server):
    assert not is_valid(server)


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": None},
        {"command": ["server"]},
        {"command": ""},
        {"args": "x"},
        {"args": [1]},
        {"args": None},
        {"env": []},
        {"env": {"A": 1}},
        {"env": None},
        {"cwd": 1},
        {"cwd": None},
    ],
)
def test_7_2_1_a_local_server_has_fields_of_the_right_types(wrong):
    assert not is_valid(GOOD | wrong)


@pytest.mark.parametrize("command", ["npx", "./bin/server", "./bin/my server", "python3.11", "c++"])
def test_7_2_1_a_command_is_a_bare_name_or_a_path_inside_the_plugin(command):
    assert is_valid({"type": "stdio", "command": command})


@pytest.mark.parametrize(
    "command",
    [
        "npx -y server",
        "bin/server",
        "/usr/bin/env",
        "../bin/server",
        "bin\\server",
        "C:\\x.exe",
        "${PLUGIN_ROOT}/bin/server",
        "~/server",
        " npx",
        "a\tb",
        "a\x00",
        ".",
        "..",
    ],
)
def test_7_2_1_any_other_command_makes_a_server_invalid(command):
    assert not is_valid({"type": "stdio", "command": command})


@pytest.mark.parametrize(
    "cwd",
    ["./", "./data", "${PLUGIN_ROOT}", "${PLUGIN_ROOT}/x", "${PLUGIN_DATA}", "${PLUGIN_DATA}/a/b"],
)
def test_7_2_1_a_working_directory_has_one_of_three_forms(cwd):
    assert is_valid({**GOOD, "cwd": cwd})


@pytest.mark.parametrize(
    "cwd",
    [
        "",
        ".",
        "data",
        "/tmp",
        "../x",
        "${PLUGIN_ROOT}x",
        "${PLUGIN_DATA}.bak",
        "${HOME}",
        "~",
        "x${PLUGIN_ROOT}",
        "${plugin_root}",
        "$PLUGIN_ROOT",
    ],
)
def test_7_2_1_any_other_working_directory_makes_a_server_invalid(cwd):
    assert not is_valid({**GOOD, "cwd": cwd})


@pytest.mark.parametrize("name", ["PLUGIN_ROOT", "PLUGIN_DATA"])
def test_9_2_the_reserved_variables_are_not_a_servers_to_set(name):
    assert not is_valid({**GOOD, "env": {name: "x"}})


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "HTTPS://Example.com:8443/mcp?x=1",
        "http://localhost:3000/mcp",
        "http://127.0.0.1/",
        "http://127.9.8.7",
        "http://[::1]:8080/",
        "https://[2001:db8::1]/mcp",
        "http://LOCALHOST?x",
        "https://my_server.internal/a@b",
    ],
)
def test_7_2_1_a_url_is_https_or_of_this_machine(url):
    assert is_valid({**REMOTE, "url": url})
    assert is_valid({"type": "sse", "url": url})


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/mcp",
        "example.com",
        "//example.com",
        "ftp://example.com",
        "https://",
        "https:///x",
        "https://user@example.com",
        "https://u:p@example.com",
        "https://@example.com",
        "https://example.com/#part",
        "https://example.com/#",
        "https://exa mple.com",
        "http://example.com",
        "http://10.0.0.1",
        "http://localhost.example.com",
        "http://127.1",
        "http://0.0.0.0",
        "http://[::2]",
        "https://[::1",
        "https://example.com:port/",
        "https://example.com/${TOKEN}",
        "https://example.com/\n",
        "https://example.com:99999",
        "http://[::1].example.com/",
        "http://[::1]example.com/",
        "http://[::1%25lo]/",
        "http://[127.0.0.1]/",
        "https://[fe80::1%25eth0]/",
        "https://[x]/",
        "https://[]/",
        "http://127.0.0.1%2eexample.com/",
        "https://%00/",
        "https://a..b/",
        "https://./",
        "https://-/",
        "https://a]b/",
    ],
)
def test_7_2_1_any_other_url_makes_a_server_invalid(url):
    assert not is_valid({**REMOTE, "url": url})


@pytest.mark.parametrize(
    "headers", [{}, {"X-Tenant": ""}, {"x-a": "b c\td"}, {"Authorization": "${TOKEN}"}]
)
def test_7_2_1_headers_are_fields_of_http(headers):
    assert is_valid({**REMOTE, "headers": headers})


@pytest.mark.parametrize(
    "headers",
    [
        {"": "x"},
        {"a b": "x"},
        {"a:": "x"},
        {"ä": "x"},
        {"a": "x\r\nb: y"},
        {"a": "\x00"},
        {"a": " x"},
        {"a": "x "},
        {"a": "日本"},
        {"a": 1},
        [],
        "a: b",
    ],
)
def test_7_2_1_what_is_no_header_makes_a_server_invalid(headers):
    assert not is_valid({**REMOTE, "headers": headers})


def test_7_2_1_a_header_twice_in_other_letters_makes_a_server_invalid():
    assert not is_valid({**REMOTE, "headers": {"X-Tenant": "a", "x-tenant": "b"}})


def test_7_2_2_everything_that_is_wrong_with_a_server_is_reported_with_its_line():
    reading = servers(bad={"type": "stdio", "command": "a b", "cwd": "x", "url": "u"})
    assert [item.where.line for item in reading.diagnostics] == [6, 7, 8]
    assert all("'bad'" in item.message for item in reading.diagnostics)
    assert {item.severity for item in strictly(reading.diagnostics)} == {Severity.ERROR}


# ---- beyond the letter --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"a": {"type": "stdio", "command": "x", "command": "y"}, "b": %s', ["b"]),
        ('"a": %s, "a": %s, "b": %s', ["b"]),
        ('"a": {"type": "stdio", "command": "x", "env": {"A": "", "A": ""}}, "b": %s', ["b"]),
    ],
)
def test_what_is_given_twice_takes_out_the_server_it_is_about(text, names):
    inner = text.replace("%s", json.dumps(GOOD))
    reading = read(f'{{"$schema": "{SCHEMA}", "mcpServers": {{{inner}}}}}')
    assert [server.name for server in reading.value] == names
    assert [item.code for item in reading.diagnostics] == ["mcp-server-invalid"]


def test_what_is_given_twice_at_the_top_disables_the_servers():
    disabled(f'{{"$schema": "{SCHEMA}", "mcpServers": {{}}, "mcpServers": {{}}}}')


def test_a_large_or_deep_file_disables_the_servers():
    assert disabled("[" * 60_000) == [1]
    assert disabled("[]" * 3000, json_file=2048) == [None]


@given(
    st.binary()
    | st.recursive(
        st.none() | st.integers() | st.text() | st.sampled_from(["stdio", "./x", "https://a"]),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "command", "args", "env", "cwd", "url", "headers"]), inner
            )
        ),
    ).map(lambda value: json.dumps({"$schema": SCHEMA, "mcpServers": {"a": value}}).encode())
)
def test_no_bytes_raise(data):
    reading = read(data)
    assert reading.value is not None or reading.diagnostics
