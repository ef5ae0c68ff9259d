"""What a client says of a server, as one line of JSON."""

import asyncio
import json

ARGUMENTS = {"text": "ab", "times": 2}


def report(tools, called, left=""):
    """Print the tools, what `echo` answered, and how leaving with an open call ended."""
    print("PEER " + json.dumps({"tools": sorted(tools), "called": called, "left": left}))


async def cut_short(call):
    """Call the tool `slow`, and give up before it answers."""
    async with asyncio.timeout(0.5):
        await call({"seconds": 1.2})


async def at_end(leaving):
    """Return the type of the error with which a client leaves."""
    try:
        await leaving
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # task groups wrap each error once
        return type(error).__name__
    return "nothing"
