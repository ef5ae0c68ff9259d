"""A real `satchel serve`, spoken to by the official client: both eras, both transports."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from clients import ERAS, HANDSHAKE, PATIENCE, STATELESS, client_of, names_of, run
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.usefixtures("quick_starts")

every_era = pytest.mark.parametrize("era", ERAS)
every_transport = pytest.mark.parametrize(
    ("transport", "era"),
    [
        ("stdio", HANDSHAKE),
        ("http", STATELESS),
        pytest.param("stdio", STATELESS, marks=pytest.mark.slow),
        pytest.param("http", HANDSHAKE, marks=pytest.mark.slow),
    ],
)

WORKING = """
import asyncio
from pathlib import Path
from satchel import ToolContext, tool

HERE = Path(__file__).parent

@tool
def counting(upto: int):
    "Count, a part at a time."
    for number in range(upto):
        yield f"{number} "

@tool
async def endless(context: ToolContext) -> str:
    "Never end."
    await context.get_metadata("mcp").progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        (HERE / "ended").touch()
"""

NOISY = """
import os, sys
print("imported")
os.write(1, b"raw bytes\\n")
os.system("echo from a child")
heard = sys.stdin.read()

from satchel import tool

@tool
def noisy(text: str) -> str:
    "{}"
    print("called")
    os.write(1, b"more raw bytes\\n")
    os.system("echo from a child; cat")
    return text + heard + sys.stdin.read()
"""


@pytest.fixture
def world(tmp_path, write_skill, write_plugin):
    """A folder of skills and one of plugins."""
    write_skill(tmp_path / "skills", "pdf")
    write_plugin(tmp_path / "plugins", "demo", tools=NOISY.format("First."))
    return tmp_path


def command(world, *options):
    named = ("--skills", world / "skills", "--plugins", world / "plugins")
    return ["-m", "satchel", "serve", *map(str, (*named, *options))]


def environment(world):
    return {**os.environ, "HOME": str(world)}


@asynccontextmanager
async def served(world, *options):
    """Run the server over HTTP; yields its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command(world, "--http", "127.0.0.1:0", *options),
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        env=environment(world),
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while not (match := re.search(rb"at (http://\S+),", await process.stderr.readline())):
                pass
        yield match[1].decode()
        process.terminate()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def connected(world, transport, era, address=None):
    if transport == "stdio":
        start = StdioServerParameters(
            command=sys.executable, args=command(world), env=environment(world)
        )
        async with client_of(stdio_client(start), era) as both:
            yield both
    elif address:
        async with client_of(address, era) as both:
            yield both
    else:
        async with served(world) as url, client_of(url, era) as both:
            yield both


@pytest.fixture(scope="module")
def steady(tmp_path_factory, write_plugin):
    """A folder that nobody edits, and the address of the one server that serves it over HTTP."""
    world = tmp_path_factory.mktemp("steady")
    write_plugin(world / "plugins", "demo", tools=NOISY.format("First."))
    write_plugin(world / "plugins", "work", tools=WORKING)
    (world / "skills").mkdir()
    with subprocess.Popen(
        [sys.executable, *command(world, "--http", "127.0.0.1:0")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**environment(world), "SATCHEL_CONFIG_DIR": str(world / "config")},
    ) as process:
        while not (match := re.search(rb"at (http://\S+),", process.stderr.readline())):
            assert process.poll() is None
        yield world, match[1].decode()
        process.terminate()
    assert process.returncode == 0


@every_transport
def test_what_plugins_print_and_read_never_reaches_the_protocol(steady, transport, era):
    world, address = steady

    async def ask():
        async with connected(world, transport, era, address) as (client, _):
            result = await client.call_tool("noisy", {"text": "clean"})
            return await names_of(client), result.content[0].text

    names, text = run(ask())
    assert "noisy" in names
    assert text == "clean"


@every_transport
def test_the_parts_of_a_stream_arrive_as_progress(steady, transport, era):
    world, address = steady

    async def ask():
        async with connected(world, transport, era, address) as (client, notices):
            call = client.call_tool("counting", {"upto": 3}, progress_callback=notices.step)
            return (await call).content[0].text, notices.progress

    text, progress = run(ask())
    assert text == "0 1 2 "
    assert progress == [(1, None, "0 "), (2, None, "1 "), (3, None, "2 ")]


@every_transport
def test_a_tool_is_cancelled_when_its_client_gives_the_call_up(steady, transport, era):
    world, address = steady
    ended = world / "plugins/work/ended"
    ended.unlink(missing_ok=True)

    async def ask():
        begun = asyncio.Event()

        async def progress(*_):
            begun.set()

        async with connected(world, transport, era, address) as (client, _):
            call = asyncio.create_task(client.call_tool("endless", {}, progress_callback=progress))
            await begun.wait()
            call.cancel()
            async with asyncio.timeout(PATIENCE):
                while not ended.exists():
                    await asyncio.sleep(0.02)

    run(ask())


def edit_tool(world, number):
    (world / "plugins" / "demo" / "tools.py").write_text(NOISY.format(f"Second {number}."))


def edit_skill(world, number):
    text = f"---\nname: pdf\ndescription: Second {number}.\n---\nDo that.\n"
    (world / "skills" / "pdf" / "SKILL.md").write_text(text)


async def edited_until_notified(world, notices, edit, kind):
    """Edit until a client with a handshake is notified: over HTTP, the stream for it comes later.

    Each wait is twice as long as the last, so that a busy machine gets its time between two edits.
    """
    for number in range(7):
        edit(world, number)
        try:
            async with asyncio.timeout(2**number):
                return await notices.until(f"notifications/{kind}/list_changed")
        except TimeoutError:
            continue
    return pytest.fail("it was never told")


@every_transport
def test_a_client_is_notified_of_a_tool_and_of_a_skill_that_are_edited_on_disk(
    world, transport, era
):
    async def hear(client, notices, edit, kind):
        if era == STATELESS:
            async with client.listen(**{f"{kind}_list_changed": True}) as stream:
                edit(world, 0)
                await anext(stream)
        else:
            await edited_until_notified(world, notices, edit, kind)

    async def ask():
        async with connected(world, transport, era) as (client, notices):
            await hear(client, notices, edit_tool, "tools")
            tools = (await client.list_tools()).tools
            await hear(client, notices, edit_skill, "resources")
            listed = (await client.list_resources()).resources
            read = await client.read_resource("skill://pdf/SKILL.md")
            return tools[0].description, listed[0].description, read.contents[0].text

    tool, skill, text = run(ask())
    assert tool.startswith("Second")
    assert skill.startswith("Second")
    assert text.endswith("Do that.\n")


@every_era
def test_what_a_carried_server_offers_is_served_on(world, config_folder, era):
    plain = Path(__file__).parents[1] / "mcp_servers" / "plain.py"
    book = [{"name": "echo", "description": "Say it.", "inputSchema": {"type": "object"}}]
    (world / "book.json").write_text(json.dumps(book))
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text(
        f"[mcp.box]\ncommand = {sys.executable!r}\n"
        f"args = [{str(plain)!r}, {str(world / 'book.json')!r}]\n"
    )
    start = StdioServerParameters(
        command=sys.executable, args=command(world, "--group", "box"), env=environment(world)
    )

    async def ask():
        async with client_of(stdio_client(start), era) as (client, _):
            return await names_of(client), await client.call_tool("echo", {})

    names, result = run(ask())
    assert {"noisy", "echo"} <= set(names)
    assert not result.is_error


def test_a_server_that_names_itself_is_started_once(world, config_folder):
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text(
        f"[mcp.me]\ncommand = {sys.executable!r}\nargs = {command(world)!r}\n"
        f"env = {{ SATCHEL_CONFIG_DIR = {str(config_folder)!r} }}\n"
    )
    start = StdioServerParameters(
        command=sys.executable, args=command(world, "--group", "all"), env=environment(world)
    )

    async def ask():
        async with client_of(stdio_client(start)) as (client, _), asyncio.timeout(60):
            while "me_noisy" not in (names := await names_of(client)):
                await asyncio.sleep(0.05)  # on a busy machine it comes after the first list
            return names

    # Its own, and what the same server offers under another name; not that one's once more.
    assert {name for name in run(ask()) if name.endswith("noisy")} == {"noisy", "me_noisy"}


def begun(world):
    """Start a server on stdio, and shake hands with it."""
    process = subprocess.Popen(
        [sys.executable, *command(world)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(world),
    )
    while b"serving" not in process.stderr.readline():
        pass
    hello = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    )
    process.stdin.write(hello)
    process.stdin.flush()
    assert b'"serverInfo"' in process.stdout.readline()
    return process


@pytest.mark.usefixtures("fresh_starts")
def test_the_server_ends_when_its_client_leaves(world):
    process = subprocess.Popen(
        [sys.executable, *command(world)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(world),
    )
    out, err = process.communicate(b"\n", timeout=PATIENCE)
    assert process.returncode == 0
    assert out == b""
    assert b"from a child" in err


@pytest.mark.usefixtures("fresh_starts")
@pytest.mark.parametrize(
    "locale",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_what_goes_out_is_utf_8_whatever_the_locale_says(world, locale):
    async def ask():
        start = StdioServerParameters(
            command=sys.executable, args=command(world), env={**environment(world), **locale}
        )
        async with client_of(stdio_client(start)) as (client, _):
            result = await client.call_tool("noisy", {"text": "é😀中"})
            return result.content[0].text

    assert run(ask()) == "é😀中"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_message_is_no_fault(world, number):
    process = begun(world)
    for _ in range(100):
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    process.stdin.flush()
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"unexpected" not in err


def test_a_client_that_closes_its_end_has_left(world):
    process = begun(world)
    process.stdout.close()
    for number in range(2, 4):
        process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
        process.stdin.flush()
    assert process.wait(PATIENCE) == 0
    assert b"unexpected" not in process.stderr.read()
    process.stderr.close()
    process.stdin.close()


@pytest.mark.usefixtures("fresh_starts")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_on_a_signal_though_its_client_says_nothing(world, number):
    process = begun(world)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_what_fits_nothing_is_said(world):
    process = subprocess.run(
        [
            *(sys.executable, *command(world, "--group", "nothing")),
            *("--enable-tool", "load_*", "--disable-tool", "none_*"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        env=environment(world),
        check=False,
    )
    assert b"there is no group 'nothing' yet" in process.stderr
    assert b"no tool matches 'none_*' yet" in process.stderr
    assert b"load_*" not in process.stderr
    assert process.stdout == b""
