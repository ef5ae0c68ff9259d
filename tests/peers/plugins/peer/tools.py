"""Tools that the clients call."""

import asyncio

from satchel import tool


@tool
def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


@tool
async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return "done"
