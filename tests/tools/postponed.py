"""A module with postponed annotations, some of which exist only for type checkers."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from nowhere import Client, Missing

    from satchel.tools import ToolContext


def early(stops: list[Stop], near: Annotated[Stop | None, Field(description="Begin.")] = None): ...


class Stop(BaseModel):
    city: str
    then: Stop | None = None


def returns_missing(city: str) -> Missing: ...


def takes_client(city: str, client: Client): ...


def takes_context(
    one: ToolContext, two: ToolContext | None, three: Annotated[ToolContext, "of the call"]
): ...


def wrapped(fn):
    @wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper
