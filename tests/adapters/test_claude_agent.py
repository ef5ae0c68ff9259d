"""The Claude Agent SDK with `satchel serve` over stdio, and a scripted provider on this machine."""

import asyncio
import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: make adapters")
sys.path.insert(0, str(Path(__file__).parent / "hosts"))

from claude_agent_sdk import ClaudeSDKClient
from scripted_provider import anthropic_answer, anthropic_stream

from satchel.adapters.claude_agent import options
from satchel.testing import write_plugin, write_skill
from satchel.testing.adapter_checks import NEW_TOOL, ScriptedModel, call

MULTIPLY = f"from satchel import tool\n{NEW_TOOL}"
PREFIX = "mcp__satchel__"


@contextmanager
def scripted(model: ScriptedModel):
    """Yield the environment of a command line that asks a server here."""

    class Provider(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self._send(b"", "text/plain")

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "count_tokens" in self.path:
                self._send(b'{"input_tokens": 10}', "application/json")
                return
            names = [tool["name"] for tool in body.get("tools", [])]
            ours = any(name.startswith(PREFIX) for name in names)
            body["system"] = json.dumps(body.get("system"))
            calls = anthropic_answer(body, model) if ours else []
            self._send(anthropic_stream(calls), "text/event-stream")

        def _send(self, data, kind):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
            "ANTHROPIC_API_KEY": "k",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }
    finally:
        server.shutdown()


def test_a_call_runs_and_an_edit_is_in_the_next_request(tmp_path):
    write_skill(tmp_path / "skills", "guide", description="How to calculate.", body="Use tools.\n")
    write_plugin(tmp_path / "plugins", "math", MULTIPLY)

    def edit():
        tools = tmp_path / "plugins" / "math" / "tools.py"
        tools.write_text(MULTIPLY + MULTIPLY.replace("multiply", "divide"))
        return [call(f"{PREFIX}multiply", "m", a=4, b=5)]

    steps = [[call(f"{PREFIX}load_skill", name="guide")] for _ in range(20)]
    model = ScriptedModel(edit, *steps)

    async def run(environment):
        served = ("--skills", f"{tmp_path}/skills", "--plugins", f"{tmp_path}/plugins")
        chosen = options(
            *served,
            tools=[],
            setting_sources=[],
            allowed_tools=["mcp__satchel"],
            system_prompt="base",
            cwd=tmp_path,
            env=environment | {"HOME": str(tmp_path)},
        )
        async with asyncio.timeout(120), ClaudeSDKClient(chosen) as client:
            await client.query("go")
            async for _ in client.receive_response():
                pass

    with scripted(model) as environment:
        asyncio.run(run(environment))
    assert "20" in model.answers["m"].text
    assert "Use tools." in model.answers["call_1_0"].text
    assert f"{PREFIX}divide" not in model.requests[0].tools
    assert f"{PREFIX}divide" in model.requests[-1].tools
