"""Compare what Satchel and the plain SDK see of a server: `servers.py NAME COMMAND [ARGUMENT...]`.

Prints one line of JSON: how many tools both see, how many schemas are the same, and what a tool
without arguments that must be given answered.
"""

import asyncio
import json
import sys
import tempfile

from mcp import Client, StdioServerParameters

from satchel import Limits, Satchel, Settings, StdioServer


async def plain(command: str, args: list[str]) -> dict[str, dict]:
    """Return the input schemas by tool, as the SDK's client reads them.

    Tools that can only be called as tasks are left out, as Satchel does.
    """
    start = StdioServerParameters(command=command, args=args)
    async with Client(start, cache=None) as client:
        tools = (await client.list_tools()).tools
    needs_task = {
        tool.name for tool in tools if tool.execution and tool.execution.task_support == "required"
    }
    return {tool.name: tool.input_schema for tool in tools if tool.name not in needs_task}


def main(name: str, command: str, *args: str) -> None:
    """Connect twice, and print the comparison."""
    schemas = asyncio.run(plain(command, [*args]))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(limits=Limits(), state_folder=folder, config_folder=folder)
        with Satchel(settings=settings) as app:
            app.register_mcp_server(StdioServer(command=command, args=args), name=name)
            tools = {entry.tool.definition.name: entry for entry in app.catalog.tools.values()}
            same = sum(tools[tool].tool.parameters == schemas[tool] for tool in tools)
            free = [tool for tool, schema in schemas.items() if not schema.get("required")]
            answer = "no tool is without arguments"
            if free:
                session = app.session()
                session.activate(name)
                result = asyncio.run(session.call(tools[free[0]].name, {}))
                answer = f"{free[0]}: " + ("error" if result.is_error else "answered")
            problems = sorted(
                {item.code for item in app.catalog.diagnostics if item.code.startswith("mcp-")}
            )
    results = {"tools": len(tools), "of": len(schemas), "same": same, "called": answer}
    print("PEER " + json.dumps({**results, "problems": problems}))


main(*sys.argv[1:])
