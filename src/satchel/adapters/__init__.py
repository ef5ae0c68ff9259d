"""Connects a session to agent frameworks: one module for each, which imports only its framework.

`from satchel.adapters.pydantic_ai import toolset`, and so on. `model_request` is what all share.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def framework(package: str) -> Iterator[None]:
    """Import a framework in the block; if it is missing, the error says what to install."""
    try:
        yield
    except ModuleNotFoundError as problem:
        message = f"{problem.msg}; this adapter needs it: pip install {package}"
        raise ModuleNotFoundError(message, name=problem.name) from None
