"""Gemini extensions as a Satchel loads them."""

import json

import pytest

from satchel import Satchel, Settings


@pytest.fixture
def extension(tmp_path, write_files):
    """Write an extension with these files."""

    def write(files=(), **fields):
        manifest = {"gemini-extension.json": json.dumps({"name": "demo", "version": "1"} | fields)}
        return write_files(tmp_path / "plugins" / "demo", manifest | dict(files))

    return write


@pytest.fixture
def app(tmp_path):
    return lambda: Satchel(plugins=[tmp_path / "plugins"], settings=Settings(mcp_servers=False))


def test_the_context_is_in_the_prompt(app, extension):
    extension({"GEMINI.md": "Be brief."})
    loaded = app()
    assert (loaded.catalog.plugins["demo"].version, loaded.catalog.plugins["demo"].diagnostics) == (
        "1",
        (),
    )
    assert "Be brief." in loaded.session().prompt()


def test_the_manifest_names_the_context(app, extension):
    extension({"GEMINI.md": "Wrong.", "docs/c.md": "Right."}, contextFileName="docs/c.md")
    prompt = app().session().prompt()
    assert ("Right." in prompt, "Wrong." in prompt) == (True, False)


@pytest.mark.parametrize("name", ["docs${/}c.md", "${extensionPath}${pathSeparator}docs/c.md"])
def test_variables_in_the_name_of_the_context_are_filled_in(app, extension, name):
    extension({"docs/c.md": "Right."}, contextFileName=name)
    assert "Right." in app().session().prompt()


def test_several_contexts_are_in_the_prompt_and_a_missing_one_is_reported(app, extension):
    names = ["a.md", "no/b.md", "docs${/}c.md"]
    extension({"a.md": "First.", "docs/c.md": "Second."}, contextFileName=names)
    loaded = app()
    assert "First.\n\nSecond." in loaded.session().prompt()
    (problem,) = loaded.catalog.plugins["demo"].diagnostics
    assert (problem.code, "'no/b.md'" in problem.message) == ("source-missing", True)


@pytest.mark.parametrize("name", ["../out.md", "/etc/hostname"])
def test_a_context_outside_is_not_read(app, extension, tmp_path, name):
    extension({"commands/a.toml": "prompt = 'A.'"}, contextFileName=name)
    (tmp_path / "plugins" / "out.md").write_text("Secret.")
    loaded = app()
    assert "source-link-outside" in [item.code for item in loaded.catalog.diagnostics]
    assert loaded.session().prompt() == ""


def test_a_context_behind_a_link_outside_is_not_read(app, extension, tmp_path):
    folder = extension({"commands/a.toml": "prompt = 'A.'"})
    (tmp_path / "plugins" / "out.md").write_text("Secret.")
    (folder / "GEMINI.md").symlink_to("../out.md")
    assert "Secret." not in app().session().prompt()


def test_commands_take_arguments(app, extension):
    extension(
        {
            "commands/git/fix.toml": 'description = "Fix."\nprompt = "Fix {{args}}, not $1."\n',
            "commands/plain.toml": 'prompt = "Go."\n',
        }
    )
    session = app().session()
    assert "Fix a b, not $1." in session.load_skill("git-fix", "a b").text
    assert "Go.\n\nARGUMENTS: now" in session.load_skill("plain", "now").text
    assert session.prompt() == ""


@pytest.mark.parametrize("part", ["!{git status}", "@{a.md}"])
def test_what_only_the_client_runs_is_named(app, extension, part):
    extension(
        {
            "commands/a.toml": f"prompt = 'See {part}.'",
            "commands/plain.toml": "prompt = 'Hi {{args}}!'",
        }
    )
    (problem,) = [d for d in app().catalog.diagnostics if d.code == "command-not-run"]
    assert (problem.severity, part in problem.message) == ("info", True)
    assert problem.where.path.endswith("a.toml")


@pytest.mark.parametrize("text", ["prompt = 3", "description = 'x'", "prompt =", "prompt = ''"])
def test_an_invalid_command_is_left_out(app, extension, text):
    extension({"commands/a.toml": text, "commands/b.toml": "prompt = 'B.'"})
    catalog = app().catalog
    assert list(catalog.skills) == ["b"]
    assert [d.code for d in catalog.diagnostics if d.code == "command-invalid"] != []


def test_servers_are_known_by_their_transport(app, extension):
    extension(
        mcpServers={
            "local": {"command": "node", "args": ["${extensionPath}${/}a.js"], "timeout": 3},
            "http": {"httpUrl": "https://x"},
            "sse": {"url": "https://y"},
        }
    )
    servers = app().catalog.plugins["demo"].servers
    assert [(server.name, server.table.get("transport")) for server in servers] == [
        ("local", None),
        ("http", "streamable-http"),
        ("sse", "sse"),
    ]
    assert servers[0].table["args"] == ("${CLAUDE_PLUGIN_ROOT}/a.js",)


def test_the_tools_that_an_extension_includes_and_excludes_are_those_of_its_server(app, extension):
    choice = {"includeTools": ["read", "write(x)"], "excludeTools": ["write"]}
    http = {"httpUrl": "https://x"}
    servers = {"local": {"command": "node", **choice}, "http": http}
    extension(mcpServers={**servers, "none": {**http, "includeTools": []}})
    local, http, none = app().declared_mcp_servers.values()
    assert [name for name in ("read", "write", "other") if local.wants(name)] == ["read"]
    assert http.wants("other")
    assert [name for name in ("read", "other") if none.wants(name)] == []


def test_a_client_secret_is_not_used_and_a_diagnostic_says_so(app, extension):
    extension(mcpServers={"own": {"httpUrl": "https://x", "oauth": {"clientSecret": "hush"}}})
    plugin = app().catalog.plugins["demo"]
    (problem,) = [item for item in plugin.diagnostics if item.code == "mcp-secret-unused"]
    assert "'own'" in problem.message
    assert "issuer in [mcp.NAME.oauth]" in problem.fix
    assert "hush" not in str(plugin)


def test_other_parts_are_named(app, extension, skill_text):
    extension(
        {"skills/a/SKILL.md": skill_text("a"), "hooks/hooks.json": "{}"}, settings=[], themes=[]
    )
    loaded = app()
    (item,) = loaded.catalog.plugins["demo"].diagnostics
    assert (item.code, item.message.endswith("not its hooks, settings, themes")) == (
        "plugin-parts-ignored",
        True,
    )
    assert list(loaded.catalog.skills) == ["a"]


def test_an_extension_of_which_nothing_is_used_says_so(app, extension):
    extension()
    assert [item.code for item in app().catalog.plugins["demo"].diagnostics] == ["plugin-unused"]


def test_a_timeout_of_a_server_is_that_of_its_calls_and_other_fields_are_named(app, extension):
    servers = {
        "slow": {"command": "node", "timeout": 90_000},
        "plain": {"httpUrl": "https://x", "trust": True, "autoApprove": ["a"]},
        "wrong": {"command": "node", "timeout": "soon"},
    }
    extension(mcpServers=servers)
    loaded = app()
    limits = [server.timeout for server in loaded.declared_mcp_servers.values()]
    assert limits == [90, None, None]
    messages = [item.message for item in loaded.catalog.plugins["demo"].diagnostics]
    assert any("'plain': not used: 'autoApprove'" in text for text in messages)
    assert any("'wrong': not used: 'timeout'" in text for text in messages)
    assert len(messages) == 4  # with the servers that are not started


def test_a_field_that_only_gemini_cli_uses_is_an_info(app, extension):
    extension(mcpServers={"plain": {"httpUrl": "https://x", "trust": True}})
    problems = app().catalog.plugins["demo"].diagnostics
    assert [item.severity for item in problems if "'trust'" in item.message] == ["info"]


def test_a_variable_of_a_server_may_have_no_braces(app, extension):
    extension(mcpServers={"box": {"command": "node", "args": ["$1"], "env": {"KEY": "a $MY_KEY"}}})
    (server,) = app().catalog.plugins["demo"].servers
    assert server.table == {"command": "node", "args": ("$1",), "env": {"KEY": "a ${MY_KEY}"}}
