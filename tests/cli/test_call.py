"""`call`: one call of a tool, and how its arguments are read."""

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from satchel.cli.call_output import typed
from satchel.cli.commands import call_command


@pytest.fixture
def call(run, toolkit):
    def call(*args):
        return run("call", *args, "--plugins", "plugins")

    return call


def test_text_stays_text_and_the_rest_is_json(call):
    assert call("echo", "text=5", "times=3").stdout == "555\n"
    assert call("echo", "text=null", "hint=1").stdout == "null1\n"
    result = json.loads(call("kinds", "value=[1, 2]", "deep=true", "--json").stdout)
    assert result["structured"] == {"value": [1, 2], "deep": True}


def test_arguments_may_come_as_one_object_and_pairs_win(call):
    assert call("echo", "--args", '{"text": "a", "times": 2}', "times=3").stdout == "aaa\n"
    assert call("echo", "--args", "[1]").exit_code == 2
    assert call("echo", "--args", "{").exit_code == 2
    assert call("echo", "text").exit_code == 2
    assert call("echo", "=a").exit_code == 2


def test_what_a_contract_reads_of_the_state_is_given_as_one_object(run, here, write_plugin):
    tools = "from satchel import tool\n@tool\ndef find(index: dict) -> dict:\n    return index\n"
    rules = "from satchel import ToolContract, ToolStateRead\n"
    reads = 'state_reads=[ToolStateRead("index")]'
    rules += f'FIND = ToolContract(name="find", schema={{}}, description="Find.", {reads})\n'
    write_plugin(here / "plugins", "finder", "contract: rules:FIND\n", tools=tools, rules=rules)
    result = run("call", "find", "--state", '{"index": {"a": 1}}', "--plugins", "plugins")
    assert (result.exit_code, result.stdout) == (0, '{"a":1}\n')
    result = run("call", "find", "--plugins", "plugins")
    assert result.exit_code == 1
    assert "'index'" in result.stderr
    assert run("call", "find", "--state", "[1]", "--plugins", "plugins").exit_code == 2


def test_a_value_may_hold_an_equals_sign(call):
    assert call("echo", "text=a=b").stdout == "a=b\n"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "1", "1"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", "null"),
        ({"type": "integer"}, "1", 1),
        ({"type": "integer"}, "one", "one"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "1", 1),
        ({}, "[1]", [1]),
        ({}, "[" * 100_000, "[" * 100_000),
        ({}, "NaN", "NaN"),
        ({}, "9" * 5_000, "9" * 5_000),
        (True, "1", 1),
    ],
)
def test_a_value_takes_the_type_of_its_parameter(schema, text, value):
    assert typed({"key": text}, {"properties": {"key": schema}}) == {"key": value}


def test_a_failing_tool_speaks_on_stderr_and_exits_with_one(call):
    result = call("echo", "text=a", "times=-1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "times must not be negative\n"
    shape = json.loads(call("echo", "text=a", "times=-1", "--json").stdout)
    assert (shape["is_error"], shape["error_code"]) == (True, "tool_error")


def test_wrong_arguments_are_reported(call):
    result = call("echo", "txt=a")
    assert result.exit_code == 1
    assert "txt" in result.stderr


def test_an_unknown_tool_is_reported_with_near_misses(call):
    result = call("ecko")
    assert result.exit_code == 1
    assert "did you mean echo?" in result.stderr


def test_the_group_of_the_tool_is_activated_for_the_call(run, here, write_plugin):
    write_plugin(
        here / "p",
        "off",
        "active: false\n",
        tools='from satchel import tool\n@tool\ndef hi() -> str:\n    "Hi."\n    return "hi"\n',
    )
    assert run("call", "hi", "--plugins", "p").stdout == "hi\n"


def test_a_shadowed_tool_is_not_called_in_place_of_another(run, here, write_plugin):
    for name in ("one", "two"):
        write_plugin(
            here / "p",
            name,
            tools=f"""
                from satchel import tool
                @tool
                def hi() -> str:
                    "Hi."
                    return "{name}"
            """,
        )
    assert run("call", "hi", "--plugins", "p").stdout == "one\n"
    result = run("call", "two:hi", "--plugins", "p")
    assert result.exit_code == 1
    assert "is shadowed" in result.stderr


def test_a_tool_that_is_lost_with_a_broken_plugin_is_reported_with_the_reason(
    run, here, write_plugin
):
    tools = "from satchel import tool\n@tool\ndef find() -> str:\n    return 'x'\n"
    write_plugin(here / "plugins", "finder", "contract: rules:FIND\n", tools=tools, rules="def (")
    result = run("call", "find", "--plugins", "plugins")
    assert result.exit_code == 1
    assert "rules.py:1" in result.stderr
    assert "there is no tool named 'find'" in result.stderr
    assert "invalid syntax" in result.stderr


def test_a_call_of_a_disabled_tool_or_plugin_says_what_enables_it(run, call, here, write_plugin):
    broken = "import nothing_of_that_name\n"
    write_plugin(here / "plugins", "broken", "active: true\n", tools=broken)
    assert run("disable", "echo", "--plugins", "plugins").exit_code == 0
    done = call("echo", "text=a")
    assert done.exit_code == 1
    assert "tool 'echo' is disabled by disable = ['echo']" in done.stderr
    assert "satchel enable --plugins plugins echo" in done.stderr
    run("enable", "echo", "--plugins", "plugins")
    plugins = json.loads(run("list", "plugins", "--plugins", "plugins", "--json").stdout)
    name = next(item["name"] for item in plugins if item["name"] != "broken")
    run("disable", name, "--plugins", "plugins")
    done = call("nothing_like_it", "text=a")
    assert f"plugin {name!r} is disabled" in done.stderr
    assert "so its tools are not known" in done.stderr
    assert f"satchel enable --plugins plugins {name}" in done.stderr
    assert "nothing_of_that_name" not in done.stderr
    shown = run("show", "nothing_like_it", "--plugins", "plugins")
    assert (shown.exit_code, f"satchel enable --plugins plugins {name}" in shown.stderr) == (
        1,
        True,
    )


def test_the_reason_for_an_unknown_tool_is_a_plugin_that_failed(run, here, write_plugin):
    write_plugin(
        here / "plugins",
        "early",
        "config: {key: {type: secret}}\n",
        tools="from satchel import tool\n\n@tool(state=['key'])\ndef f(key: str): 'Do it.'\n",
    )
    write_plugin(here / "plugins", "typo", tools="def hello(:\n")
    done = run("call", "hello", "--plugins", "plugins")
    assert "plugins/typo/tools.py:1:" in done.stderr
    assert "there is no tool named 'hello'" in done.stderr
    assert "'key'" not in done.stderr


@pytest.fixture
def project(run, here):
    """A trusted project with two servers, whose programs are in it."""

    def declare(*arguments: str) -> None:
        servers = {
            name: {"command": sys.executable, "args": ["plain.py", f"{name}.json", *arguments]}
            for name in ("first", "second")
        }
        (here / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        assert run("trust", "--code").exit_code == 0

    shutil.copy(Path(__file__).parents[1] / "mcp_servers/plain.py", here)
    for name in ("first", "second"):
        book = [{"name": f"say_{name}", "inputSchema": {"type": "object"}}]
        (here / f"{name}.json").write_text(json.dumps(book))
    declare()
    return declare


def test_a_tool_of_a_held_server_is_held_and_no_other_one_is_guessed(run, here, project):
    assert run("call", "say_second").exit_code == 0
    assert "did you mean say_second" in run("call", "say_secon").stderr
    (here / "new.txt").touch()
    held, unknown = run("call", "say_second"), run("call", "second_say")
    assert "\nError: tool 'say_second' of mcp:second is held (see above)\n" in held.stderr
    assert "MCP server 'second' is not used: new.txt, which its command" in held.stderr
    listed = run("list").stderr
    assert "warning[code-held]: MCP server 'second' is not used: new.txt" in listed
    assert "which list does not start" not in listed
    why = "but MCP server 'second' is held (see above)\n"
    assert unknown.stderr.endswith(f"there is no tool named 'second_say', {why}")
    assert "did you mean" not in run("call", "say_secon").stderr
    (here / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "make"}}}')
    unknown = run("call", "say_second")
    why = "but what .mcp.json enables, configures and starts is held (see above)\n"
    assert unknown.stderr.endswith(f"there is no tool named 'say_second', {why}")


def test_the_reason_for_the_tool_of_a_missing_server_is_that_of_its_owner(
    run, here, project, monkeypatch
):
    monkeypatch.setenv("SAY_KEY", "k")
    project("${SAY_KEY}")
    assert run("trust", "--code", "--variable", "SAY_KEY").exit_code == 0
    assert run("call", "say_first").exit_code == 0
    shown = run("show", "say_first").stderr
    assert (
        "\"MCP server 'first' is not started by this command\" (satchel mcp tools first)" in shown
    )
    monkeypatch.delenv("SAY_KEY")
    for command in ("call", "show"):
        assert f"satchel {command}" not in (why := run(command, "say_first").stderr)
        assert "named 'say_first', but the tools of server 'first' are missing: " in why
        assert "SAY_KEY, which is not set" in why
        assert "(set SAY_KEY, or write " in why
    assert run("disable", "mcp:first", "--project").exit_code == 0
    for command in ("call", "show"):
        why = run(command, "say_first").stderr
        assert "plugin 'mcp:first' is disabled by disable = ['mcp:first']" in why
        assert "(satchel enable mcp:first --project)" in why
    monkeypatch.setenv("SAY_KEY", "k")
    (here / "new.txt").touch()
    why = run("show", "say_second").stderr
    assert "but the tools of MCP server 'second' are missing: " in why
    assert "new.txt, which its command may use, is new" in why
    (here / "new.txt").unlink()
    servers = here / ".mcp.json"
    text = servers.read_text()
    servers.write_text("{")
    assert run("trust", "--code").exit_code == 0
    assert "there are errors; the first: " in (why := run("call", "say_second").stderr)
    assert ".mcp.json" in why
    servers.write_text(text)
    (here / "second.json").unlink()
    assert run("trust", "--code", "--variable", "SAY_KEY").exit_code == 0
    why = run("call", "say_second").stderr
    assert "tool 'say_second' cannot be called: MCP server 'second' disconnected; " in why
    assert "'satchel mcp tools second' tries it and says why" in why


def test_the_server_that_differs_from_the_lock_is_named_for_its_tools(run, here, project):
    assert run("lock").exit_code == 0
    project("stays")
    for name, server in (("second_say", "second"), ("say", "first")):
        message = run("call", name, "--frozen").stderr
        text = f"named '{name}', but the tools of server {server} are missing: 'server {server} ("
        assert text in message
    (here / ".mcp.json").write_text((here / ".mcp.json").read_text().replace("stays", "rude", 1))
    run("trust", "--code")
    run("lock")
    project("rude")
    (here / "new.txt").touch()
    for name, why in (("first_say", "'first' is held"), ("second_say", "second are missing")):
        assert f"server {why}" in run("call", name, "--frozen").stderr


@pytest.mark.slow
def test_a_plugin_that_hangs_while_it_is_imported_does_not_delay_the_tools_of_others(
    here, write_plugin
):
    hangs = "import threading\nthreading.Event().wait()\n"
    write_plugin(here / "plugins", "hangs", tools=hangs)
    quick = "from satchel import tool\n\n@tool\ndef quick() -> str:\n    return 'here'\n"
    write_plugin(here / "plugins", "quick", tools=quick)
    began = time.monotonic()
    # In a process of its own: the import never ends, and would be one beside those of other tests.
    line = [sys.executable, "-m", "satchel", "call", "quick", "--plugins", "plugins"]
    done = subprocess.run(line, cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout == "here\n"
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("is_known", [True, False])
def test_no_other_plugin_answers_for_one_that_is_slow(
    run, here, write_plugin, monkeypatch, is_known
):
    monkeypatch.setattr(call_command, "_PATIENCE", 0.1)
    code = "from satchel import tool\n\n@tool\ndef where() -> str:\n    return {!r}\n"
    write_plugin(here / "plugins", "slow", tools=code.format("slow"))
    write_plugin(here / "plugins", "z-quick", tools=code.format("quick"))
    if is_known:
        assert run("call", "where", "--plugins", "plugins").stdout == "slow\n"
    waits = "import time\nfrom pathlib import Path\nwhile not Path('go').exists():\n    "
    tools = waits + "time.sleep(0.01)\n" + code.format("slow")
    write_plugin(here / "plugins", "slow", tools=tools)
    threading.Timer(0.5, (here / "go").touch).start()
    assert run("call", "where", "--plugins", "plugins").stdout == "slow\n"
    # The record is the same as if it had been quick.
    write_plugin(here / "plugins", "slow", tools="1 / 0\n")
    assert "is new" in run("call", "where", "--plugins", "plugins").stderr
