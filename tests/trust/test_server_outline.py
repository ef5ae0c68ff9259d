import json

import pytest

from satchel.trust.server_outline import server_outline


def outline(command="", args=(), url=""):
    return server_outline(json.dumps([command, args, None, url]))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("npx -y @acme/server@2025.7.1 /home/me", "npx -y @acme/server@2025.7.1 /home/***"),
        ("/usr/bin/npx.cmd acme-server", "npx.cmd acme-server"),
        ("npx --registry https://r.x/ acme-server", "npx --registry https://r.x/ acme-server"),
        ("npx --package acme other X", "npx --package acme other ***"),
        ("npx --package=acme other", "npx --package=*** other"),
        ("uvx --from git+https://X@h.x/r run", "uvx --from git+https://h.x/r run"),
        ("uvx tool[extra]==2.0 X", "uvx tool[extra]==2.0 ***"),
        ("uv tool run acme X", "uv tool run acme ***"),
        ("uv tool X", "uv *** ***"),
        ("uv tool install X", "uv *** *** ***"),
        ("uv run tool X", "uv run tool ***"),
        ("npm exec exec X", "npm exec exec ***"),
        ("pipx run acme", "pipx run acme"),
        ("pnpm dlx acme X", "pnpm dlx acme ***"),
        (
            "docker run -i --rm -e PAT=X ghcr.io/a/b:1 X",
            "docker run -i --rm -e PAT=*** ghcr.io/a/b:1 ***",
        ),
        ("docker login X", "docker *** ***"),
        ("deno run -A npm:@a/b", "deno run -A npm:@a/b"),
        ("python -m acme.server X", "python -m acme.server ***"),
        ("python3 -u -I -m acme.server X", "python3 -u -I -m acme.server ***"),
        ("python -u X", "python -u ***"),
        ("uv --directory X run server.py X", "uv --directory *** run server.py ***"),
        ("uv run --project X server.py", "uv run --project *** server.py"),
        ("uv --directory X", "uv --directory ***"),
        ("uv X run server.py", "uv *** run server.py"),
        ("python3 ${CLAUDE_PLUGIN_ROOT}/server.py", "python3 ${CLAUDE_PLUGIN_ROOT}/server.py"),
        ("npx --loglevel silent @a/b X", "npx --loglevel *** @a/b ***"),
        ("cmd /c npx -y @a/b X", "cmd /c npx -y @a/b ***"),
        ("cmd /c X npx", "cmd *** *** ***"),
        ("env A=X B=X npx @a/b X", "env A=*** B=*** npx @a/b ***"),
        ("env -u X npx", "env -u *** ***"),
        ("node /srv/my-app/x.mjs X", "node /srv/my-app/x.mjs ***"),
        (
            "python3 ${PLUGIN_ROOT}/scripts/x.py ${A:-X}/x.py",
            "python3 ${PLUGIN_ROOT}/scripts/x.py ***",
        ),
        ("tool --port=80 --key ${KEY}", "tool --port=*** --key ${KEY}"),
        ("mcp-proxy https://u:X@h.x:80/s/X?k=X", "mcp-proxy https://h.x:80/***"),
    ],
)
def test_the_package_and_the_names_of_options_are_shown(line, shown):
    command, *args = line.split()
    assert outline(command, args) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("npx -y @acme/fs /Users/X/Desktop ./data ~/work", "/Users/***/Desktop ./data ~/work"),
        (
            "npx -y @acme/fs C:\\Users\\X9\\Docs ../..",
            "C:\\Users\\***\\Docs ../..",
        ),
        ("tool C:/users/me/docs /media/me/disk", "C:/users/***/docs /media/***/disk"),
        ("node /Users/me/x/index.js", "/Users/***/x/index.js"),
        ("tool /mnt/c/users/me/docs /data/home/me", "/mnt/c/users/***/docs /data/home/***"),
        ("npx -y @acme/github", "@acme/github"),
        ("npx -y @acme/postgres postgresql://X:X@localhost/mydb", "postgresql://localhost/mydb"),
        ("npx @acme/playwright@latest --headless", "@acme/playwright@latest --headless"),
        (
            "docker run -e GITHUB_TOKEN ghcr.io/a/b stdio",
            "-e GITHUB_TOKEN ghcr.io/a/b stdio",
        ),
        (
            "docker run --env=KEY=X --mount X fs /projects",
            "--env=KEY=*** --mount *** fs /projects",
        ),
        ("docker run -e X9 acme/fs", "-e *** acme/fs"),
        ("uvx mcp-server-git --repository .", "--repository ."),
        ("uv --directory ../servers/weather run weather.py", "../servers/weather run weather.py"),
        ("node build/index.js serve --transport stdio", "build/index.js serve --transport stdio"),
        ("npx mcp-remote https://h.x/sse --header Bearer:X", "https://h.x/sse --header ***"),
        ("tool /sk9Zq3vXw8K ./sk9Zq3vXw8K /hunter ./a1b2c3/d X/data", "*** *** *** *** ***"),
        ("tool --password ./word --key serve --pin /data", "--password *** --key *** --pin ***"),
    ],
)
def test_paths_of_words_and_usual_words_are_shown(line, shown):
    command, *args = line.split()
    assert outline(command, args).endswith(f" {shown}")


SECRETS = [
    ["--header", "Bearer X"],
    ["--header", "Authorization: Bearer X"],
    ["-H", "X-Foo: X"],
    ["-e", "PAT=X"],
    ["-ePAT=X"],
    ["--pat", "X"],
    ["-pX"],
    ["-p", "X"],
    ["--basic", "me:X"],
    ["--credentials", "me", "X"],
    ["--api-key=X"],
    ["u/X@h"],
    ["jdbc:oracle:thin:u/X@h"],
    ["redis://:1/X@h"],
    ["postgres://me:1/X@h"],
    ["gsk_X"],
    ["${KEY:-X}"],
    ['--config={"key": "X"}'],
    ["host=h password=X"],
    ["--a\nX"],
]


@pytest.mark.parametrize("args", SECRETS)
@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("tool", ()),
        ("npx", ("pkg",)),
        ("docker", ("run", "image")),
        ("cmd", ("/c", "npx", "pkg")),
        ("env", ("A=b", "uv", "--directory", "d", "run", "x.py")),
        ("python", ("-u", "-m", "x")),
    ],
)
def test_no_value_is_shown(command, first, args):
    assert "X" not in outline(command, [*first, *args]).replace("X-Foo", "")


@pytest.mark.parametrize(
    "args", [["--api-key", "X", "pkg"], ["-pX"], ["--header", "X", "pkg"], ["-yX"]]
)
def test_what_stands_behind_an_unknown_option_of_a_runner_is_no_package(args):
    assert "X" not in outline("npx", args)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h.example", "https://h.example"),
        ("https://me:X@h.example:8080/s/X/mcp?k=X#X", "https://h.example:8080/***"),
        ("http://[::1]:80/mcp", "http://[::1]:80/mcp"),
        ("http://127.0.0.1:/x@good.example", "***"),
        ("http://evil.example\\@good.example/", "***"),
        ("http://${HOST:-X}/mcp", "***"),
        ("https://h.example/api/v1/mcp", "https://h.example/api/v1/mcp"),
        ("https://h.example/mcp/X9a", "https://h.example/***"),
        ("http://${HOST}:80/mcp", "http://${HOST}:80/mcp"),
        ("https://me:1/X@h.example", "***"),
    ],
)
def test_of_an_address_the_host_is_shown(url, shown):
    assert outline(url=url) == shown


def test_a_long_word_takes_no_time():
    assert outline("npx", ["key" * 50_000, "a/" * 50_000, "a:" * 50_000]).endswith("*** ***")
