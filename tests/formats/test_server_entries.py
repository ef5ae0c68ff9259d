"""The fields of other clients' files: each is used, or named."""

import inspect
import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.formats import server_entries
from satchel.formats.frozen_values import to_plain
from satchel.formats.server_entries import read_claude_servers
from satchel.settings import Limits

LOCAL = {"command": "run"}
REMOTE = {"url": "https://example.com/mcp"}
FOLDERS = {"workspaceFolder": "/work", "userHome": "/home/ada"}

FIELDS = sorted(set(re.findall(r'"(\w+)"', inspect.getsource(server_entries))))
"""All words in quotes in the reader: the fields, and some more."""
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner),
    max_leaves=8,
)


def read(data, **folders):
    return read_claude_servers(json.dumps(data).encode(), "x/.mcp.json", Limits(), folders)


def one(server, key="mcpServers", **folders):
    """Return the table of one server below a key, and what is said about it."""
    reading = read({key: {"box": server}}, **folders)
    tables = [to_plain(server.table) for server in reading.value]
    return tables[0] if tables else None, [item.message for item in reading.diagnostics]


def test_comments_and_last_commas_are_read_as_editors_write_them():
    text = """// of VS Code
    {"servers": { /* one, "two" */
        "box": {"url": "https://example.com//a/*b,]", "headers": {"a": "\\\\", // ,}",
        },},
    },}"""
    reading = read_claude_servers(text.encode(), "x/.mcp.json", Limits())
    (value,) = reading.value
    assert (value.table["url"], value.table["headers"]) == (
        "https://example.com//a/*b,]",
        {"a": "\\"},
    )
    assert reading.diagnostics == ()


def test_a_fault_among_comments_has_its_line():
    reading = read_claude_servers(b"{/*\n\n*/ // x\n a,}", "x/.mcp.json", Limits())
    assert [item.where.line for item in reading.diagnostics] == [4]


@pytest.mark.parametrize("text", [b"/*", b'"\\"', b",//", b",/*", b'\\"'])
def test_a_hostile_file_is_read_in_time(text):
    began = time.monotonic()
    read_claude_servers(text * 60_000, "x/.mcp.json", Limits(json_file=10**6))
    assert time.monotonic() - began < 5


HTTP = {**REMOTE, "transport": "streamable-http"}


@pytest.mark.parametrize(
    ("key", "server", "table"),
    [
        ("mcpServers", {"serverUrl": "https://example.com/mcp"}, REMOTE),
        ("mcpServers", {"type": "streamableHttp", **REMOTE}, HTTP),
        ("servers", {"type": "http", **REMOTE}, HTTP),
        ("context_servers", {"source": None, "enabled": True, **REMOTE}, REMOTE),
        ("mcp", {"type": "remote", "enabled": True, **REMOTE}, REMOTE),
        ("mcp_servers", REMOTE, REMOTE),
    ],
)
def test_a_server_is_read_below_the_key_of_each_client(key, server, table):
    assert one(server, key) == (table, [])


def test_servers_may_be_two_keys_deep_or_at_the_top():
    deep = read({"mcp": {"servers": {"box": LOCAL}}})
    flat = read({"servers": LOCAL, "mcp": LOCAL})
    assert [server.name for server in deep.value] == ["box"]
    assert [server.name for server in flat.value] == ["servers", "mcp"]


def test_other_keys_beside_the_servers_are_named():
    reading = read({"servers": {"box": LOCAL}, "inputs": [{"id": "key"}], "sandbox": {}})
    (item,) = reading.diagnostics
    assert (item.code, item.message) == ("plugin-field-unknown", "not used: 'inputs', 'sandbox'")


def test_a_command_may_be_a_list_with_its_arguments():
    item, message = one({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": 1}})
    assert (item, message) == ({"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}}, [])


@pytest.mark.parametrize(
    ("key", "fields", "seconds"),
    [
        ("mcpServers", {"timeout": 90_000}, (90, None)),
        ("context_servers", {"timeout": 90}, (90, None)),
        ("mcp", {"timeout": {"startup": 30_000, "request": 90_000}}, (90, 30)),
        ("mcp_servers", {"tool_timeout_sec": 90, "startup_timeout_sec": 30}, (90, 30)),
        ("mcp_servers", {"startup_timeout_ms": 30_000}, (None, 30)),
    ],
)
def test_time_limits_count_as_their_client_counts(key, fields, seconds):
    item, message = one({**LOCAL, **fields}, key)
    assert ((item.get("timeout"), item.get("startup-timeout")), message) == (seconds, [])


@pytest.mark.parametrize("value", [60, 0, -1, "soon", True])
def test_a_limit_that_is_invalid_or_less_than_a_second_is_named(value):
    item, message = one({**LOCAL, "timeout": value})
    assert (item.get("timeout"), message) == (None, ["server 'box': not used: 'timeout'"])


def test_the_protocol_has_a_word_of_our_own():
    assert one(LOCAL)[0] == LOCAL
    item, message = one({**LOCAL, "protocol": "legacy"})
    assert (item["protocol"], message) == ("legacy", [])
    item, message = one({**LOCAL, "protocol": "2030"})
    assert message == ["'protocol' of server 'box' is neither auto nor legacy"]
    assert item == LOCAL


@pytest.mark.parametrize("value", [["legacy"], {"legacy": 1}, 5, True])
def test_a_protocol_that_is_no_text_is_named_like_an_unknown_one(value):
    item, message = one({**LOCAL, "protocol": value})
    assert message == ["'protocol' of server 'box' is neither auto nor legacy"]
    assert item == LOCAL


@settings(max_examples=30)  # each has all fields
@given(JSON)
def test_no_value_of_a_field_raises_or_costs_another_server(value):
    servers = {"other": LOCAL}
    for field in FIELDS:
        servers[f"{field} of one"] = {**LOCAL, field: value}
        servers[f"{field} of two"] = {**REMOTE, field: value}
        servers[f"{field} in one"] = {**REMOTE, "oauth": {field: value}, "timeout": {field: value}}
    assert "other" in [server.name for server in read({"mcpServers": servers}).value]


@given(st.sampled_from(FIELDS), JSON)
def test_no_value_in_the_place_of_the_servers_raises(key, value):
    read({key: value})


@pytest.mark.parametrize("fields", [{"disabled": True}, {"enabled": False}])
def test_a_disabled_server_is_named(fields):
    assert one({**LOCAL, **fields}) == (None, ["server 'box' is disabled in this file"])


@pytest.mark.parametrize("fields", [{"disabled": "no"}, {"enabled": 1}])
def test_a_switch_that_is_unclear_makes_a_server_invalid(fields):
    item, (message,) = one({**LOCAL, **fields})
    assert item is None
    assert "not true or false" in message


@pytest.mark.parametrize(
    ("fields", "enable", "disable"),
    [
        ({"includeTools": ["a"], "excludeTools": ["b"]}, ["a"], ["b"]),
        ({"enabled_tools": ["a"], "disabled_tools": ["b"]}, ["a"], ["b"]),
        ({"tools": ["*"], "disabledTools": "b"}, ["*"], ["b"]),
        ({"tools": []}, [], None),
        ({}, None, None),
    ],
)
def test_lists_of_tools_choose_tools(fields, enable, disable):
    item, message = one({**LOCAL, **fields})
    assert (item.get("enable"), item.get("disable"), message) == (enable, disable, [])


@pytest.mark.parametrize(
    "name", ["alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode"]
)
def test_what_permits_calls_elsewhere_permits_nothing_and_is_named(name):
    plain, _ = one(LOCAL)
    assert one({**LOCAL, name: ["a"]}) == (plain, [f"server 'box': not used: {name!r}"])


def test_permissions_of_single_tools_choose_no_tools():
    item, message = one({**LOCAL, "tools": {"a": {"approval_mode": "approve"}}})
    assert (item.get("enable"), message) == (None, ["server 'box': not used: 'tools'"])


def test_fields_of_the_other_kind_of_server_are_named():
    _, local = one({**LOCAL, **REMOTE, "headers": {}})
    _, remote = one({**REMOTE, "env": {}, "envFile": ".env", "cwd": "x"})
    assert local == ["server 'box': not used: 'headers', 'url'"]
    assert remote == ["server 'box': not used: 'cwd', 'env', 'envFile'"]


def test_headers_and_variables_may_be_given_by_the_names_of_variables():
    remote, _ = one(
        {**REMOTE, "bearer_token_env_var": "TOKEN", "env_http_headers": {"X-User": "USER_ID"}}
    )
    local, message = one({**LOCAL, "env_vars": ["A", {"name": "B"}], "env": {"A": "1"}})
    assert remote["headers"] == {"X-User": "${USER_ID}", "Authorization": "Bearer ${TOKEN}"}
    assert (local["env"], message) == ({"A": "1", "B": "${B}"}, [])


def test_a_login_is_read_in_the_words_of_each_client_and_its_other_fields_are_named():
    oauth = {"clientId": "us", "callbackPort": 8765, "authServerMetadataUrl": "https://a"}
    claude, message = one({**REMOTE, "oauth": oauth})
    cursor, _ = one({**REMOTE, "auth": {"CLIENT_ID": "us", "scopes": ["a", "b"]}})
    opencode, _ = one({**REMOTE, "oauth": {"client_id": "us", "scope": "a b"}})
    assert claude["oauth"] == {"client-id": "us", "redirect": "http://localhost:8765/callback"}
    assert message == ["server 'box': not used: 'oauth.authServerMetadataUrl'"]
    assert cursor["oauth"] == opencode["oauth"] == {"client-id": "us", "scopes": ["a", "b"]}


def test_a_redirect_to_another_machine_is_not_used_and_named():
    item, message = one({**REMOTE, "oauth": {"redirectUri": "https://evil.example/cb"}})
    assert (item, message) == (REMOTE, ["server 'box': not used: 'oauth.redirectUri'"])


def test_a_secret_is_said_to_be_unused_once():
    _, (message,) = one({**REMOTE, "auth": {"CLIENT_SECRET": "hush"}})
    assert message == "the 'clientSecret' of server 'box' is not used"


@pytest.mark.parametrize("text", ["${env:TOKEN}", "{env:TOKEN}", "${TOKEN}"])
def test_variables_are_named_as_each_client_names_them(text):
    item, _ = one({**REMOTE, "headers": {"Authorization": f"Bearer {text}"}})
    assert item["headers"]["Authorization"] == "Bearer ${TOKEN}"


def test_folders_of_an_editor_are_filled_in_where_they_are_known():
    server = {**LOCAL, "args": ["${workspaceFolder}/a${/}b"], "envFile": "${userHome}/.env"}
    item, message = one(server, **FOLDERS)
    assert (item["args"], item["env-file"], message) == (["/work/a/b"], "/home/ada/.env", [])


@pytest.mark.parametrize(
    "text", ["${input:api-key}", "${command:x.y}", "${workspaceFolder}", "${workspaceFolder:api}"]
)
@pytest.mark.parametrize("place", ["env", "args", "cwd", "envFile", "headers", "url"])
def test_a_placeholder_that_nothing_fills_in_is_never_passed_on(text, place):
    kind = REMOTE if place in {"headers", "url"} else LOCAL
    value = {"env": {"A": text}, "headers": {"A": text}, "args": [text]}.get(place, text)
    item, (message,) = one({**kind, place: value})
    assert item is None
    assert f"the placeholder '{text}', which only its own client can fill in" in message


def test_a_placeholder_that_nothing_closes_does_not_reach_into_the_next_text():
    """It would show a secret in the message about it."""
    item, message = one({**LOCAL, "args": ["${input:abc"], "env": {"KEY": "sk-planted}"}})
    assert item["args"] == ["${input:abc"]
    assert "planted" not in "".join(message)


def test_a_placeholder_in_a_field_that_is_not_used_costs_nothing():
    item, message = one({**LOCAL, "sandbox": {"allowWrite": ["${workspaceFolder}"]}})
    assert (item, message) == (LOCAL, ["server 'box': not used: 'sandbox'"])


def test_other_text_with_a_colon_in_braces_stays():
    item, message = one({**LOCAL, "args": ["${ctx:user}", "${NAME:-none}", "{file}"]})
    assert (item["args"], message) == (["${ctx:user}", "${NAME:-none}", "{file}"], [])


def test_an_empty_url_is_named():
    (problem,) = read({"mcpServers": {"box": {"type": "http", "url": ""}}}).diagnostics
    assert problem.message == "server 'box' has an empty 'url'"


@pytest.mark.parametrize(
    ("server", "fix"),
    [
        ({"comand": "run"}, "did you mean 'command'?"),
        ({"ulr": "https://example.com"}, "did you mean 'url'?"),
        ({"args": ["x"]}, "Fix or remove it."),
    ],
)
def test_a_key_with_a_typo_is_named(server, fix):
    (problem,) = read({"mcpServers": {"box": server}}).diagnostics
    assert problem.message == "server 'box' has neither a command nor a URL of a known type"
    assert problem.fix == fix
