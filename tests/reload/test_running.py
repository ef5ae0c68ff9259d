"""Calls that run while their plugin is replaced end on the version they began with."""

import asyncio
import gc
import sys

import pytest

from satchel import Satchel

PATIENCE = 120.0

SOURCE = """
    import builtins
    from satchel import tool

    {mark}
    async def greet() -> str:
        "Greet."
        began, go_on = builtins.satchel_gates
        began.set()
        await go_on.wait()
        from .words import WORD
        {say} WORD
"""


def alive() -> set[str]:
    """The versions of the plugin whose modules the interpreter still knows."""
    gc.collect()
    names = {name.partition(".")[0] for name in sys.modules}
    return {name for name in names if name.startswith("_satchel_plugin_slow_")}


async def around(call, inner):
    async for item in inner(call):
        yield item


async def by_call(session):
    return (await session.call("greet")).text


async def by_stream(session):
    return [item async for item in session.stream("greet")][-1].text


async def in_background(session):
    answer = await session.call("greet")
    result = await session.call("wait_task", {"task_id": answer.structured["task_id"]})
    return result.content[-1].text


WAYS = [
    (by_call, "@tool", "return", None),
    (by_call, "@tool", "return", around),
    (by_call, "@tool(idempotent=True)", "return", None),
    (by_stream, "@tool", "yield", None),
    (by_stream, "@tool", "yield", around),
    (in_background, "@tool(background=True)", "return", None),
    (in_background, "@tool(background=True)", "yield", None),
    (in_background, "@tool(background=True, idempotent=True)", "return", around),
]


@pytest.mark.parametrize("case", WAYS)
def test_a_call_that_runs_ends_on_the_version_it_began_with(
    tmp_path, write_plugin, monkeypatch, case
):
    way, mark, say, layer = case
    source = SOURCE.replace("{mark}", mark).replace("{say}", say)
    write_plugin(tmp_path, "slow", "active: true\n", tools=source, words="WORD = 'first'\n")
    app = Satchel(plugins=[tmp_path])
    if layer is not None:
        app.register_middleware(layer)

    async def main():
        began, go_on = asyncio.Event(), asyncio.Event()
        monkeypatch.setattr("builtins.satchel_gates", (began, go_on), raising=False)
        async with asyncio.timeout(PATIENCE):
            session = app.session()
            running = asyncio.create_task(way(session))
            await began.wait()
            (tmp_path / "slow" / "words.py").write_text("WORD = 'second'\n")
            app.refresh()
            assert len(alive()) == 2
            go_on.set()
            first = await running
            return first, await way(session)

    assert asyncio.run(main()) == ("first", "second")
    assert len(alive()) == 1, "the old version went with its last call"


def test_a_middleware_sees_the_new_version_of_a_tool(tmp_path, write_plugin):
    source = 'from satchel import tool\n@tool\ndef greet() -> str:\n    return "{word}"\n'
    write_plugin(tmp_path, "demo", "active: true\n", tools=source.replace("{word}", "one"))
    app = Satchel(plugins=[tmp_path])
    seen = []

    async def note(call, inner):
        seen.append(call.tool)
        async for item in inner(call):
            yield item

    app.register_middleware(note, tool="greet")
    session = app.session()
    assert asyncio.run(session.call("greet")).text == "one"
    write_plugin(tmp_path, "demo", "active: true\n", tools=source.replace("{word}", "two"))
    app.refresh()
    assert asyncio.run(session.call("greet")).text == "two"
    assert seen[0] is not seen[1]
    assert seen[1] is app.catalog.tools["greet"].tool


def test_an_idempotent_tool_runs_again_once_it_is_reloaded(tmp_path, write_plugin):
    source = """
        from satchel import tool

        @tool(idempotent=True)
        def greet() -> str:
            return "{word}"
    """
    write_plugin(tmp_path, "demo", "active: true\n", tools=source.replace("{word}", "one"))
    app = Satchel(plugins=[tmp_path])
    session = app.session()
    assert asyncio.run(session.call("greet")).text == "one"
    write_plugin(tmp_path, "demo", "active: true\n", tools=source.replace("{word}", "two"))
    app.refresh()
    assert asyncio.run(session.call("greet")).text == "two"
