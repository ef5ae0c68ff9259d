"""`call` and `schema` with every kind of tool and of result."""

import json
import signal

import pytest

TOOLS = """
    import asyncio
    import time
    from pathlib import Path
    from satchel import *

    @tool
    async def stream():
        "Tell things."
        yield "a"
        yield "b\\x1b[31m"
        yield {"k": 1}
        yield {"k": 2}
        yield Image(b"abc")

    @tool
    async def stumble():
        "Tell something and fail."
        yield "so far"
        raise ToolError("it broke")

    @tool
    def pieces():
        "Give a block of each kind."
        return [
            "see",
            Image(b"abc"),
            Audio(b"1"),
            Resource("file:///x\\x1b", "text"),
            ResourceLink(uri="https://x", name="n"),
        ]

    @tool
    def nothing() -> None:
        "Give nothing."

    @tool(background=True)
    async def later(n: int) -> str:
        "Take a while."
        if n < 0:
            raise ToolError("n must not be negative")
        return f"done {n}"

    @tool(background=True)
    async def later_bit_by_bit():
        "Take a while, and tell."
        yield "a"
        yield "b"

    @tool(state=["api_key"])
    def fetch(city: str, api_key: str) -> int:
        "Fetch something."
        return len(api_key)

    @tool(idempotent=True)
    def double(n: int) -> int:
        "Double it."
        return 2 * n

    class Add(Tool):
        name = "add"
        description = "Add one."

        async def execute(self, n: int, context: ToolContext) -> str:
            return f"{n + 1} {context.tool} {context.state}"

    add = Add()

    @tool
    def leave() -> str:
        "Try to end the process."
        raise SystemExit(7)

    @tool
    def secret() -> str:
        "Fail with a path."
        raise RuntimeError("a detail of ours")

    @tool
    async def hang() -> str:
        "Wait for ever."
        print("began", flush=True)
        await asyncio.Event().wait()

    @tool
    def block() -> str:
        "Wait for ever in a thread."
        print("began", flush=True)
        time.sleep(1000)

    @tool(background=True)
    async def hang_later() -> str:
        "Wait for ever in the background."
        print("began", flush=True)
        await asyncio.Event().wait()
"""

SOURCES = ("--plugins", "p")


@pytest.fixture(autouse=True)
def world(here, write_plugin, tmp_path, monkeypatch):
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(tmp_path / "config"))
    write_plugin(here / "p", "demo", tools=TOOLS)


@pytest.fixture
def call(run):
    return lambda *words: run("call", *words, *SOURCES)


def test_running_text_joins_and_whatever_else_comes_has_its_own_line(call):
    result = call("stream")
    assert result.exit_code == 0
    assert result.stdout == 'ab[31m\n{"k":1}\n{"k":2}\n[image image/png, 3 bytes]\n'


def test_a_stream_is_one_object_in_json(call):
    shape = json.loads(call("stream", "--json").stdout)
    assert [block["type"] for block in shape["content"]] == ["text", "text", "text", "image"]
    assert shape["structured"] == [{"k": 1}, {"k": 2}]
    assert shape["is_error"] is False


def test_a_stream_that_fails_keeps_what_it_sent(call):
    result = call("stumble")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "so far\n", "it broke\n")


def test_what_is_no_text_is_named_in_a_line(call):
    assert call("pieces").stdout.splitlines() == [
        "see",
        "[image image/png, 3 bytes]",
        "[audio audio/wav, 1 byte]",
        "[resource file:///x]",
        "[link https://x]",
    ]
    content = json.loads(call("pieces", "--json").stdout)["content"]
    assert content[1] == {"type": "image", "data": "YWJj", "mimeType": "image/png"}
    assert content[4]["type"] == "resource_link"


def test_nothing_is_said_as_a_model_reads_it(call):
    result = call("nothing")
    message = "Done. The tool returned no value.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, message, "")


@pytest.mark.parametrize(
    ("words", "code", "stdout", "stderr"),
    [
        (["later", "n=1"], 0, "done 1\n", ""),
        (["later", "n=-1"], 1, "", "n must not be negative\n"),
        (["later_bit_by_bit"], 0, "ab\n", ""),
    ],
)
def test_a_background_tool_is_waited_for(call, words, code, stdout, stderr):
    result = call(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (code, stdout, stderr)


def test_a_background_tool_gives_its_own_result_in_json(call):
    shape = json.loads(call("later", "n=1", "--json").stdout)
    assert (shape["text"], shape["is_error"]) == ("done 1", False)
    shape = json.loads(call("later", "n=-1", "--json").stdout)
    assert (shape["text"], shape["error_code"]) == ("n must not be negative", "tool_error")


def test_wrong_arguments_of_a_background_tool_are_reported_before_or_after(call):
    result = call("later", "n=x")
    assert result.exit_code == 1
    assert "valid integer" in result.stderr


def test_a_missing_value_is_reported_with_the_key_and_the_file(call, tmp_path, monkeypatch):
    result = call("fetch", "city=Oslo")
    assert result.exit_code == 1
    assert "'api_key'" in result.stderr
    assert str(tmp_path / "config" / "plugins" / "demo.env") in result.stderr
    assert "SATCHEL_DEMO_API_KEY" in result.stderr
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", "abc")
    assert call("fetch", "city=Oslo").stdout == "3\n"


@pytest.mark.parametrize(
    ("words", "name"),
    [(["fetch", "city=a", "api_key=mine"], "api_key"), (["add", "n=1", "context={}"], "context")],
)
def test_what_only_the_host_sets_is_refused(call, monkeypatch, words, name):
    monkeypatch.setenv("SATCHEL_DEMO_API_KEY", "abc")
    result = call(*words)
    assert result.exit_code == 1
    assert f"{name}: is set by the host" in result.stderr


def test_a_tool_class_and_an_idempotent_tool_are_called_like_any_other(call):
    assert call("add", "n=1").stdout == "2 add {}\n"
    assert call("double", "n=4").stdout == "8\n"


def test_a_tool_that_exits_or_raises_is_a_failed_call_with_an_id(call):
    for name in ("leave", "secret"):
        result = call(name, "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["error_code"] == "tool_failed"
        assert "a detail of ours" not in result.stdout


@pytest.mark.parametrize("name", ["hang", "block", "hang_later"])
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_ctrl_c_ends_it_with_exit_code_one_and_no_traceback(start, name, options):
    satchel = start("call", name, *SOURCES, *options)
    satchel.until("began", "stderr")
    satchel.process.send_signal(signal.SIGINT)
    assert satchel.rest() == []
    assert satchel.process.returncode == 1
    messages = "\n".join(satchel.rest("stderr"))
    assert "Aborted!" in messages
    assert "Traceback" not in messages


def test_a_stream_is_shown_while_it_comes(start, here):
    source = """
        from satchel import tool
        import asyncio

        @tool
        async def drip():
            "Drip."
            yield "first\\n"
            await asyncio.Event().wait()
    """
    (here / "p" / "demo" / "tools.py").write_text("\n".join(s[8:] for s in source.splitlines()))
    satchel = start("call", "drip", *SOURCES)
    satchel.until("first")
    satchel.process.send_signal(signal.SIGINT)
    satchel.rest()
    assert satchel.process.returncode == 1


# ---- schema ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "key"),
    [
        ("openai", "function"),
        ("openai-strict", "function"),
        ("anthropic", "input_schema"),
        ("gemini", "name"),
        ("mcp", "inputSchema"),
    ],
)
def test_schemas_are_printed_in_the_dialect_that_is_asked_for(run, dialect, key):
    first, second = (run("schema", "--group", "demo", "--dialect", dialect, *SOURCES) for _ in "ab")
    assert first.stdout == second.stdout
    shapes = json.loads(first.stdout)
    assert all(key in shape for shape in shapes)
    assert "api_key" not in first.stdout


@pytest.mark.parametrize("sources", [SOURCES, ()])
def test_an_unknown_dialect_is_reported_with_near_misses(run, sources):
    result = run("schema", "--dialect", "opnai", *sources)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean openai?" in result.stderr


def test_the_tools_for_tasks_are_shown_with_a_background_tool(run):
    shapes = json.loads(run("schema", "--group", "demo", "--dialect", "anthropic", *SOURCES).stdout)
    assert [shape["name"] for shape in shapes][-3:] == ["view_task", "wait_task", "cancel_task"]


def test_the_built_in_tools_can_be_called(run, tmp_path, monkeypatch):
    enabled = ("--entry-points", "builtin", "--plugins", "p")
    assert "left out" in run("call", "view_text_file", "path=a.txt", *enabled).stderr
    monkeypatch.setenv("SATCHEL_BUILTIN_BASE_DIRECTORY", str(tmp_path))
    assert run("call", "write_text_file", "path=a.txt", "content=hi", *enabled).exit_code == 0
    assert run("call", "view_text_file", "path=a.txt", *enabled).stdout == "1\thi\n"
    assert run("call", "get_today_date", *enabled).exit_code == 0
