"""The served tools as a registry, as in other toolkits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from satchel.errors import NotFoundError
from satchel.names import near_misses
from satchel.tools import Tool

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog

RegisterAll = Callable[[Iterable[Tool | Callable[..., Any]], Mapping[str, Any]], tuple[Tool, ...]]
"""Adds several tools, with the options of `Satchel.register_tool`."""


class _Application(Protocol):
    """The part of a `Satchel` that a registry needs."""

    @property
    def catalog(self) -> Catalog: ...

    def remove_tool(self, name: str) -> None: ...


class ToolRegistry:
    """A live view of the served tools, whatever their groups."""

    def __init__(self, app: _Application, register_all: RegisterAll) -> None:
        self._app, self._register_all = app, register_all

    def get(self, name: str) -> Tool | None:
        """Return a tool by its name, or `None`."""
        entry = self._app.catalog.tools.get(name)
        return entry.tool if entry else None

    def get_or_raise(self, name: str) -> Tool:
        """Return a tool by its name. Raises `NotFoundError` with the near misses."""
        if (tool := self.get(name)) is None:
            raise NotFoundError("tool", name, near_misses(name, [t.name for t in self.list()]))
        return tool

    def list(self) -> list[Tool]:
        """Return all tools, in the order of their names."""
        return [entry.tool for entry in self._app.catalog.tools.values() if entry.tool]

    def register_many(
        self, tools: Iterable[Tool | Callable[..., Any]], **options: Any
    ) -> tuple[Tool, ...]:
        """Add several tools, all or none; `options` are those of `Satchel.register_tool`."""
        return self._register_all(tools, options)

    def unregister(self, name: str) -> None:
        """Remove a tool that the host added. Raises `NotFoundError` with the near misses."""
        self._app.remove_tool(name)

    def __contains__(self, item: object) -> bool:
        """Return whether a name or a tool is served."""
        if isinstance(item, Tool):
            return self.get(item.name) is item
        return isinstance(item, str) and self.get(item) is not None

    def __len__(self) -> int:
        return len(self.list())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.list())

    def __repr__(self) -> str:
        return f"<ToolRegistry of {len(self)} tools>"
