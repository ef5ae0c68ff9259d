"""`satchel trust`: what is shown, asked and recorded, and what the other commands use."""

import json
import os
import re
from pathlib import Path

import pytest

from satchel.formats.toml_tables import toml_table
from satchel.trust.trust_record import TrustStore

ESCAPE, HIDDEN = "\x1b[2J", "\u200b"


@pytest.fixture
def project(here, write_skill, toolkit):
    """The current folder with a skill, a plugin that marks that it ran, and servers."""
    write_skill(here / "skills", "hello", description=f"Says {HIDDEN}hello.")
    (here / "plugins/demo/more.py").write_text(f"# {ESCAPE}{HIDDEN}\n")
    (here / "satchel.toml").write_text(
        "enable = ['builtin']\n[mcp.box]\ncommand = 'box-server'\nargs = ['--key', '${TOKEN}']\n"
    )
    (here / ".mcp.json").write_text('{"mcpServers": {"far": {"url": "https://x.example/${KEY}"}}}')
    return here


def test_without_a_terminal_the_answer_is_no(run, project, was_run):
    result = run("trust")
    assert result.exit_code == 3
    assert "not trusted" in result.stderr
    assert not was_run()
    assert TrustStore().read(".").record is None


def test_everything_that_it_asks_for_is_shown_and_escaped(run, project):
    text = run("trust").stdout
    for part in (
        "hello (skills/hello): Says \\u200bhello.",
        "demo (plugins/demo): Shows how.",
        "plugins/demo: tools.py",
        "box (satchel.toml): box-server --key '${TOKEN}'",
        "far (.mcp.json): https://x.example/${KEY}",
        "1 enabling pattern:\n  builtin\n",
        "builtin (satchel)",
        "2 variables:\n  KEY: for far (.mcp.json)\n  TOKEN: for box (satchel.toml)\n",
    ):
        assert part in text
    assert HIDDEN not in text
    for option, sign in (("--diff", "+"), ("--full", "  ")):
        code = run("trust", option).stdout
        assert f"{sign}# \\x1b[2J\\u200b" in code
        assert not {ESCAPE, HIDDEN} & set(code)


def test_everything_is_shown_as_it_is_in_the_files(run, project):
    servers = {
        "far": {
            "url": "https://me:hunter2@x.example/p?token=hunter2",
            "headers": {"Host": "evil.example", "X-Trace": "id-${KEY}"},
        },
        "near": {
            "command": "sh",
            "args": ["-c", '"$1" /tmp/x', "--token", "touch"],
            "env": {"API_KEY": "hunter2", "LESSKEY": "keys"},
        },
        "local": {"url": "http://${NONE:-2130706433}"},
    }
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    (project / "satchel.toml").write_text("[config.demo]\napi_key = 'hunter2'\n")
    text = run("trust").stdout
    for part in (
        "far (.mcp.json): https://me:hunter2@x.example/p?token=hunter2, ",
        "headers={'Host': 'evil.example', 'X-Trace': 'id-${KEY}'}",
        """sh -c '"$1" /tmp/x' --token touch, env={'API_KEY': 'hunter2', 'LESSKEY': 'keys'}""",
        "local (.mcp.json): http://${NONE:-2130706433}",
        'demo.api_key = "hunter2"',
        "  KEY: for far (.mcp.json)\n",
    ):
        assert part in text
    assert run("trust", "--code").exit_code == 0
    changed = json.dumps({"mcpServers": servers}).replace("hunter2", "hunter3")
    (project / ".mcp.json").write_text(changed)
    diff = run("trust", "--diff")
    assert diff.exit_code == 0
    assert '-    "API_KEY": "hunter2"' in diff.stdout
    assert '+    "API_KEY": "hunter3"' in diff.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conf.json", '{"url": "x", "headers": {"a": "$(touch pwned)"}}'),
        ("conf.jsonc", '{"url": "x", "token": "planted"}\n/*\ntouch pwned\n'),
        ("package.json", '{"scripts": {"url": "x", "auth": "touch pwned"}}'),
        ("latin.sh", b"# \xe9\ntouch pwned\n"),
        ("long.sh", "# line\n" * 90_000 + "touch pwned\n"),
    ],
)
def test_every_text_is_shown_in_full_and_so_is_its_change(run, project, name, text):
    (project / ".mcp.json").write_text('{"mcpServers": {"own": {"command": "./serve"}}}')
    file = project / name
    data = text if isinstance(text, bytes) else text.encode()
    file.write_bytes(data)
    assert "touch pwned" in run("trust", "--full").stdout
    assert run("trust", "--code").exit_code == 0
    file.write_bytes(data.replace(b"touch pwned", b"touch again"))
    diff = run("trust", "--diff")
    assert diff.exit_code == 0
    assert "touch again" in diff.stdout


def test_the_values_in_an_env_file_are_neither_shown_nor_recorded_and_a_change_counts(run, project):
    (project / ".mcp.json").write_text('{"mcpServers": {"own": {"command": "./serve"}}}')
    for place in (project, project / "plugins/demo"):
        (place / ".env").write_text("TOKEN=hunter2\n")
    assert ".env" in run("trust").stdout
    assert "hunter2" not in run("trust", "--full").stdout + run("trust", "--diff").stdout
    assert run("trust", "--code").exit_code == 0
    assert "hunter2" not in repr(TrustStore().read(".").record)
    (project / ".env").write_text("TOKEN=hunter3\n")
    changed = run("trust", "--diff")
    assert (changed.exit_code, ": .env\n(not shown" in changed.stdout) == (0, True)
    assert "hunter" not in changed.stdout


def test_a_changed_file_is_compared_once_also_if_servers_may_use_it(run, project):
    (project / ".mcp.json").write_text('{"mcpServers": {"own": {"command": "./serve"}}}')
    assert run("trust", "--code").exit_code == 0
    tools = project / "plugins/demo/tools.py"
    tools.write_text(tools.read_text() + "# changed\n")
    assert run("trust", "--diff").stdout.count("+# changed") == 1


def test_look_alike_letters_in_addresses_are_written_out(run, project):
    servers = {
        "far": {"url": "https://ex\u0430mple.org/\u0430pi"},
        "near": {
            "command": "pyth\u043en",
            "args": ["--url=https://\u0441\u043e\u0440\u0443.x", "\u0434\u0430"],
        },
    }
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    text = run("trust").stdout
    assert r"https://ex\u0430mple.org/\u0430pi" in text
    assert r"pyth\u043en" in text
    assert r"https://\u0441\u043e\u0440\u0443.x" in text
    assert "\u0434\u0430" in text  # honest


def test_a_source_and_signer_that_the_project_names_are_shown_as_not_verified(run, project):
    (project / ".satchel").mkdir()
    record = project / ".satchel/sources.toml"
    fields = {"source": f"github:good/{HIDDEN}one", "version": "abc", "digest": "d", "signer": "me"}
    record.write_text(toml_table("skill", {"name": "hello", **fields}))
    shown = run("trust").stdout
    claim = "skill hello: from github:good/\\u200bone abc, signed by me"
    assert f"1 source:\n  {claim} (its own record says so, which is not verified)" in shown
    record.unlink()
    record.symlink_to("/etc/passwd")
    assert "leads out of the project" in run("trust").stdout


def test_an_option_records_it_and_the_other_commands_use_it(run, project, was_run):
    assert "hello" not in run("list", "skills").stdout
    assert run("trust", "--data").exit_code == 0
    assert "hello" in run("list", "skills").stdout
    assert run("call", "echo", "text=a").exit_code == 1
    assert not was_run()
    assert run("trust", "--code").exit_code == 0
    assert run("call", "echo", "text=a").stdout == "a\n"
    assert was_run()


def test_the_question_is_answered_on_a_terminal(run, project, monkeypatch):
    monkeypatch.setattr("satchel.cli.terminal.Terminal.is_there", True)
    assert run("trust", input="3\n").exit_code == 3
    assert run("trust", input="1\n").exit_code == 0
    assert TrustStore().read(".").record.level == "data"
    result = run("trust", input="2\nn\ny\n")
    assert result.exit_code == 0, result.output
    record = TrustStore().read(".").record
    assert (record.level, record.variables) == ("code", ("TOKEN",))
    assert "servers that use KEY are left out (those with a default, only" in result.stderr
    # What was allowed stays so.
    result = run("trust", "--code")
    assert result.exit_code == 0
    assert "it may use TOKEN; 'satchel trust --revoke' takes that back" in result.stderr
    assert TrustStore().read(".").record.variables == ("TOKEN",)


def test_a_change_is_held_shown_and_accepted(run, project, toolkit):
    run("trust", "--code")
    assert run("trust", "--diff").exit_code == 0
    tools = toolkit / "demo/tools.py"
    tools.write_text(tools.read_text().replace("Say it again.", "Say it twice."))
    diff = run("trust", "--diff")
    assert diff.exit_code == 0
    assert {'-    "Say it again."', '+    "Say it twice."'} <= set(diff.stdout.splitlines())
    held = run("call", "echo", "text=a")
    assert (held.exit_code, "changed after it was trusted" in held.stderr) == (1, True)
    run("trust", "--code")
    assert run("call", "echo", "text=a").exit_code == 0


def test_trust_is_listed_and_revoked(run, project):
    run("trust", "--code", "--variable", "TOKEN")
    (item,) = json.loads(run("trust", "--list", "--json").stdout)
    assert (item["path"], item["level"], item["variables"]) == (
        os.path.realpath("."), "code", ["TOKEN"],
    )  # fmt: skip
    assert "code" in run("trust", "--list").stdout
    assert run("trust", "--revoke").exit_code == 0
    assert json.loads(run("trust", "--list", "--json").stdout) == []
    assert "hello" not in run("list", "skills").stdout


def test_a_corrupt_record_is_said_and_can_be_replaced(run, project):
    run("trust", "--code")
    path = TrustStore().stamp(".")[0]
    with open(path, "w", encoding="utf-8") as file:
        file.write("{")
    assert "trust-unreadable" in run("list", "skills").stderr
    assert "trust-unreadable" in run("trust", "--list").stderr
    assert run("trust", "--code").exit_code == 0
    assert run("call", "echo", "text=a").exit_code == 0


def test_a_variable_that_nothing_uses_is_named_with_those_that_are_used(run, project):
    warning = "warning: no server of the project uses TOKEM; it uses KEY, TOKEN\n"
    assert warning in run("trust", "--code", "--variable", "TOKEM").stderr
    assert TrustStore().read(".").record.variables == ()
    listed = run("list", "--trust", "code", "--variable", "TOKEM", "--variable", "KEY")
    assert warning in listed.stderr
    assert "warning: " not in run("list", "--variable", "TOKEN", "--variable", "KEY").stderr
    needed = "--variable needs a project whose code is trusted"
    for options in (["--trust", "data"], ["--skills", "skills"]):
        assert needed in run("list", *options, "--variable", "KEY").stderr
    refused = run("trust", "--data", "--variable", "KEY")
    assert (refused.exit_code, "--data and --variable" in refused.stderr) == (2, True)


def test_a_folder_that_cannot_be_read_is_refused_with_the_reason(run, here, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    assert "gone: does not exist" in run("trust", "gone").stderr
    (here / "locked").mkdir()
    monkeypatch.setattr("os.scandir", refuse)
    result = run("trust", "locked")
    assert (result.exit_code, "locked: cannot be read: Permission denied" in result.stderr) == (
        1,
        True,
    )


def test_servers_of_which_files_are_compared_are_not_shown_as_files(run, here):
    config = {"maps": {"command": "sh", "args": ["-c", "cat data/*"]}}
    (here / ".mcp.json").write_text(json.dumps({"mcpServers": config}))
    (here / "data").mkdir()
    (here / "data/a.txt").write_text("one\n")
    shown = run("trust").stdout
    assert "what servers of .mcp.json may use: data/a.txt (digest" in shown
    assert ".mcp.json may use: MCP server" not in shown
    assert "MCP server" not in run("trust", "--full").stdout.replace("what servers", "")
    config["more"] = config["maps"]
    run("trust", "--code")
    (here / ".mcp.json").write_text(json.dumps({"mcpServers": config}))
    assert (
        "+++ what servers of .mcp.json may use: MCP server more\n" in run("trust", "--diff").stdout
    )


def test_what_is_compared_is_counted_and_a_link_is_named(run, here):
    (here / ".mcp.json").write_text('{"mcpServers": {"own": {"command": "make"}}}')
    (here / "LICENSE").touch()
    (here / "COPYING").symlink_to("LICENSE")
    shown = run("trust").stdout
    assert "3 compared files:\n  .mcp.json (digest " in shown
    digest = re.search(r"may use: COPYING \(a link, digest ([0-9a-f]+)\)\n", shown)
    assert digest
    assert len(digest[1]) == 12


def test_the_path_of_a_project_is_shown_also_in_its_own_folder(run, project, monkeypatch):
    monkeypatch.setenv("HOME", str(project.parent))
    path = f"~/{project.name}"
    shown = run("trust", "--data").stdout
    assert (shown.startswith(f"project {path}\n"), shown.endswith(f"(data): {path}\n")) == (
        True,
        True,
    )
    assert run("trust", "--revoke").stdout == f"no longer trusted: {path}\n"


def test_a_new_file_is_not_named_as_changed(run, here):
    (here / ".mcp.json").write_text('{"mcpServers": {"own": {"command": "make"}}}')
    (here / "Makefile").write_text("1")
    run("trust", "--code")
    (here / "Makefile").write_text("2")
    use = "which its command may use,"
    assert f"Makefile, {use} changed after it was trusted" in run("mcp", "list").stderr
    (here / "Makefile").write_text("1")
    (here / "README").touch()
    assert f"README, {use} is new since you trusted the project;" in run("mcp", "list").stderr


def test_the_last_line_says_that_what_cannot_be_compared_is_not_used(run, here, write_skill):
    scripts = write_skill(here / "skills", "hello") / "scripts"
    scripts.mkdir()
    (scripts / "run.py").touch()
    os.mkfifo(scripts / "pipe")
    result = run("trust", "--code")
    assert "trusted (data and code): " in result.stdout
    assert result.stderr.endswith("what cannot be compared, as said above, is not used\n")


def test_settings_that_are_broken_are_named_as_the_cause(run, here):
    (here / "satchel.toml").write_text("enable = [\n")
    result = run("trust")
    assert "satchel.toml:2: error[choices-unreadable]: the settings cannot be read" in result.stderr
    assert "has nothing that can be read; correct what is named above" in result.stderr


def test_all_of_the_code_is_shown_after_the_reason(run, project):
    result = run("trust", "--diff")
    assert result.output.startswith("its code is not trusted, so all of it is shown\n")


def test_the_list_says_which_records_are_not_used(run, project, write_skill, tmp_path):
    run("trust", "--code")
    path = Path(TrustStore().stamp(".")[0])
    path.chmod(0o666)
    listed = run("trust", "--list")
    assert (listed.stdout, "others than you can write it" in listed.stderr) == ("", True)
    assert "0 trusted projects" in listed.stderr
    path.chmod(0o600)
    moved = tmp_path / "moved"
    write_skill(moved / "skills", "hello")
    run("trust", str(moved), "--data")
    moved.rename(tmp_path / "elsewhere")
    listed = run("trust", "--list")
    assert "not used: the folder is gone, or is another one" in listed.stdout
    assert "1 trusted project\n" in listed.stderr
    records = json.loads(run("trust", "--list", "--json").stdout)
    assert [item["used"] for item in records] == [
        item["path"] == os.path.realpath(".") for item in records
    ]


def test_a_script_reads_what_holds_and_what_is_requested(run, project):
    result = run("trust", "--json")
    value = json.loads(result.stdout)
    assert (result.exit_code, value["level"], value["code"]) == (3, "none", {})
    requested = value["requested"]
    assert requested["skills"] == ["hello"]
    assert requested["servers"]["box"] == "box-server --key '${TOKEN}'"
    assert requested["variables"] == ["KEY", "TOKEN"]
    value = json.loads(run("trust", "--json", "--code").stdout)
    assert (value["level"], value["code"]) == ("code", requested["code"])
    result = run("trust", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (3, value)


def test_an_option_trusts_for_one_command(run, project, was_run):
    assert "hello" in run("list", "skills", "--trust", "data").stdout
    assert not was_run()
    assert run("call", "echo", "text=a", "--trust", "code").stdout == "a\n"
    assert TrustStore().read(".").record is None


def test_nothing_in_a_project_can_grant_trust(run, project, was_run):
    (project / ".env").write_text("SATCHEL_TRUST=code\n")
    (project / "satchel.toml").write_text("trust = 'code'\n[trust]\nlevel = 'code'\n")
    run("call", "echo", "text=a", "--project")
    assert not was_run()


def test_the_list_of_servers_shows_no_secret(run, project, monkeypatch):
    for name in ("TOKEN", "KEY"):
        monkeypatch.setenv(name, f"canary-{name}")
    run("trust", "--code", "--variable", "TOKEN", "--variable", "KEY")
    for form in ((), ("--json",)):
        result = run("mcp", "list", *form)
        assert "https://x.example/***" in result.stdout
        assert "canary" not in result.stdout + result.stderr


def test_the_users_own_edit_of_a_trusted_file_needs_no_new_trust(run, project):
    run("trust", "--code")
    assert run("disable", "tool:kinds", "--project").exit_code == 0
    assert "code-held" not in run("doctor").stdout
    (project / "satchel.toml").write_text("enable = ['*']\n")
    assert "code-held" in run("doctor").stdout
    # It was not trusted before the edit, so it is not after it.
    run("disable", "tool:echo", "--project")
    assert "code-held" in run("doctor").stdout


def test_an_edit_of_a_file_that_is_not_trusted_says_so(run, project):
    output = run("disable", "hello", "--project").stderr
    assert "not trusted, so the file has no effect yet: satchel trust" in output
    run("trust", "--data")
    assert "no effect" not in run("enable", "hello", "--project").stderr


def test_a_folder_with_nothing_to_trust_is_refused(run, here):
    assert run("trust").exit_code == 1
    assert run("trust", "nowhere").exit_code == 1


def test_a_watch_says_once_what_is_held_and_follows_the_trust(start, run, project, toolkit):
    run("trust", "--code")
    tools = toolkit / "demo/tools.py"
    tools.write_text(tools.read_text().replace("Say it again.", "Say it twice."))
    watching = start("watch")
    watching.until("plugins/demo: warning.code-held.", "stderr")
    watching.until("watching", "stderr")
    assert not (toolkit / "demo/was-run").exists()
    run("trust", "--code")
    watching.until("changed plugin demo|recovered plugin demo|added tool echo|changed tool echo")
    assert (toolkit / "demo/was-run").exists()


def test_a_folder_that_is_named_is_followed_without_a_question(start, project, toolkit):
    watching = start("watch", "--plugins", "plugins")
    watching.until("watching", "stderr")
    tools = toolkit / "demo/tools.py"
    tools.write_text(tools.read_text().replace("Say it again.", "Say it twice."))
    watching.until("changed plugin demo|changed tool echo")


def test_each_code_file_is_shown_once_also_if_servers_may_use_all_of_them(run, project):
    (project / ".mcp.json").write_text('{"mcpServers": {"far": {"command": "far"}}}')
    (project / "skills/hello/.env").write_text("A=1")
    text = run("trust").stdout
    for name in ("tools.py", "more.py", "skills/hello/.env"):
        assert text.count(f"{name} (digest") == 1
    assert "plugins/demo: tools.py (digest" in text
    full = run("trust", "--full").stdout
    assert sum(line.startswith("===") and "more.py" in line for line in full.splitlines()) == 1


def test_a_changed_declaration_is_written_once_and_a_broken_one_with_its_line(run, project):
    (project / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "one"}}}')
    assert run("trust", "--code").exit_code == 0
    (project / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "two"}}}')
    held = [line for line in run("mcp", "list").stderr.splitlines() if "[code-held]" in line]
    assert len(held) == 1
    (project / ".mcp.json").write_text('{"mcpServers": {\n"a": {"comm')
    assert ".mcp.json:2: warning[mcp-invalid]" in run("mcp", "list").stderr


def test_a_no_ends_the_trust_that_a_project_had(run, project, monkeypatch):
    monkeypatch.setattr("satchel.cli.terminal.Terminal.is_there", True)
    run("trust", "--code")
    refused = run("trust", input="3\n")
    assert (refused.exit_code, "no longer trusted" in refused.stderr) == (3, True)
    assert run("trust", "--list").stdout == ""


def test_without_a_terminal_the_trust_stays_and_that_is_said(run, project):
    run("trust", "--code")
    refused = run("trust")
    assert (refused.exit_code, "still trusted as before (data and code)" in refused.stderr) == (
        3,
        True,
    )
    assert "code" in run("trust", "--list").stdout


def test_a_record_that_others_could_write_is_replaced_by_a_private_one(run, project):
    run("trust", "--code")
    path = Path(TrustStore().stamp(".")[0])
    path.chmod(0o666)
    run("trust", "--code")
    assert path.stat().st_mode & 0o777 == 0o600
    assert TrustStore().read(".").record


@pytest.mark.parametrize(
    ("options", "used"),
    [
        ("--code --data", "--data and --code"),
        ("--data --list", "--data and --list"),
        ("--list --revoke", "--revoke and --list"),
        ("--code --diff", "--code and --diff"),
        ("--full --revoke", "--full and --revoke"),
        ("--variable KEY --list", "--variable and --list"),
        ("--diff --json", "--json and --diff"),
        ("--code --data --revoke", "--data, --code and --revoke"),
    ],
)
def test_contradicting_options_are_refused_and_named(run, project, options, used):
    run("trust", "--code")
    refused = run("trust", *options.split())
    assert (refused.exit_code, f"use one of {used}" in refused.stderr) == (2, True)
    assert TrustStore().read(".").record.level == "code"


def test_the_list_of_all_projects_takes_no_folder(run, project):
    refused = run("trust", "other", "--list")
    assert (refused.exit_code, "leave DIR out" in refused.stderr) == (2, True)


@pytest.mark.parametrize("answers", ["", "2\n", "2\ny\n"])
def test_the_end_of_the_input_is_no_answer_and_changes_nothing(run, project, monkeypatch, answers):
    monkeypatch.setattr("satchel.cli.terminal.Terminal.is_there", True)
    refused = run("trust", input=answers)
    assert (refused.exit_code, TrustStore().read(".").record) == (3, None)
    run("trust", "--data")
    refused = run("trust", input=answers)
    assert (refused.exit_code, TrustStore().read(".").record.level) == (3, "data")
    assert "\nError: the input ended before you answered, so you did not agree\n" in refused.stderr


def test_code_that_run_would_not_run_is_not_advised_to_be_run(run, project, toolkit):
    why = (
        "not used: the code of 1 plugin and the servers and settings of .mcp.json and "
        "satchel.toml, because only the data of the project is trusted; 'satchel trust' asks about "
        "its code\n"
    )
    for command in ("list", "list tools", "list contracts", "list --run", "doctor"):
        text = run(*command.split(), "--trust", "data").stderr
        assert (why in text, "add --run" in text, "--run runs it" in text) == (True, False, False)
    assert "use --run" not in run("list", "contracts", "--trust", "data").stderr
    assert "use --run" not in run("show", "echo", "--trust", "data").stdout
    assert why not in run("list", "skills", "--trust", "data").stderr
    assert "the code of 2 plugins but does not" in run("list", "--trust", "code").stderr
    run("trust", "--code")
    tools = toolkit / "demo/tools.py"
    tools.write_text(f"{tools.read_text()}# changed\n")
    assert "the code of 1 plugin but does not" in run("list").stderr


@pytest.fixture
def twins(here):
    """Plugins and skills whose places look alike, each with a line that only it has."""
    tools = "from satchel import tool\n\n@tool\ndef {}() -> str:\n    'Say.'\n    # of {}\n"

    def write(name: str, text: str) -> Path:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    for name in ("a", "a#b", "c.py"):
        tool = f"of_{len(name)}"
        write(f"plugins/{name}/toolkit.yaml", f"name: {tool}\n")
        write(f"plugins/{name}/tools.py", tools.format(tool, name))
        write(f"skills/{name}/SKILL.md", f"---\nname: s{len(name)}\ndescription: D.\n---\nx\n")
        write(f"skills/{name}/scripts/run.py", f"# script {name}\n")
    # A file that has the key of its own plugin as its name, and one with the place of another.
    write("plugins/c.py/plugins/c.py", "")
    write("plugins/c.py/plugins/a/tools.py", "# far\n")
    write("plugins/c.py/tools.py", "from .plugins.a.tools import *\n# of c.py\n")
    entries = [
        {"name": name, "source": "./p", "strict": False, "mcpServers": {name: {"command": name}}}
        for name in ("one", "two")
    ]
    market = {"name": "m", "owner": {"name": "o"}, "plugins": entries}
    write("plugins/market/.claude-plugin/marketplace.json", json.dumps(market))
    write("plugins/market/p/x.txt", "x")
    return here


def test_code_is_shown_also_where_places_look_alike(run, twins):
    lines = ["# of a", "# of a#b", "# of c.py", "# script a", "# script a#b", "# far"]
    shown = run("trust", "--code", "--full").stdout
    for line in lines:
        assert re.search(rf"^ *{line}$", shown, re.MULTILINE), line
    assert '"command": "one"' in shown
    assert '"command": "two"' in shown
    assert run("list", "--project").stderr.count("code-held") == 0
    for file in ("plugins/a#b/tools.py", "skills/a#b/scripts/run.py", "plugins/c.py/tools.py",
                 "plugins/c.py/plugins/a/tools.py"):  # fmt: skip
        before = (twins / file).read_text()
        (twins / file).write_text(f"{before}# new\n")
        assert "+# new" in run("trust", "--diff").stdout, file
        (twins / file).write_text(before)
    listing = twins / "plugins/market/.claude-plugin/marketplace.json"
    listing.write_text(listing.read_text().replace('"two"', '"six"'))
    diff = run("trust", "--diff").stdout
    assert re.search(r'^\+.*"six"', diff, re.MULTILINE)


def test_a_plugin_that_became_a_skill_is_named_by_the_diff(run, here, toolkit):
    (here / "plugins/demo/scripts").mkdir()
    (here / "plugins/demo/scripts/build.py").write_text("")
    assert run("trust", "--code").exit_code == 0
    (here / "plugins/demo/SKILL.md").write_text("---\nname: demo\ndescription: D.\n---\nx\n")
    (here / "satchel.toml").write_text("[sources]\nskills = ['plugins']\n")
    assert run("trust", "--diff").stdout.startswith("new: the scripts of skill plugins/demo\n")
    assert run("trust", "--code").exit_code == 0
    (here / "plugins/demo/SKILL.md").unlink()
    assert run("trust", "--diff").stdout.startswith("gone: the scripts of skill plugins/demo\n")


def test_a_file_that_is_not_compared_any_more_is_shown_as_it_is(run, here, write_files):
    servers = {"own": {"command": "sh", "args": ["run.sh"]}}
    write_files(
        here,
        {
            ".mcp.json": json.dumps({"mcpServers": servers}),
            "run.sh": "",
            "skills/lib/a.md": "old\n",
        },
    )
    assert run("trust", "--code").exit_code == 0
    write_files(here, {"skills/lib/SKILL.md": "x", "skills/lib/a.md": "evil\n"})
    lines = run("trust", "--diff").stdout.splitlines()
    at = lines.index(
        "+++ what servers of .mcp.json may use: skills/lib/a.md (not compared any more)"
    )
    assert lines[at + 2 : at + 4] == ["-old", "+evil"]
