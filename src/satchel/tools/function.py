"""A tool made of a function, and the tools that stand in a module."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from satchel.errors import DefinitionError
from satchel.names import near_misses, tool_name_fault
from satchel.text import visible
from satchel.tools.base import Tool
from satchel.tools.calling import run, runs_on_loop
from satchel.tools.decorator import ToolOptions, options_of
from satchel.tools.docstrings import read_docstring
from satchel.tools.schema import Arguments
from satchel.tools.signature import name_and_docstring, signature_of, where


class FunctionTool(Tool):
    """A tool that calls a function, of any kind, with arguments that were checked.

    What is given here wins over what `@tool` was told, and that over what the function says
    of itself. `presets` are values for parameters that the model neither sees nor sets.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        group: str | None = None,
        presets: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        if isinstance(fn, type) or not callable(fn):
            raise DefinitionError(f"a tool is made of a function, not of {type(fn).__name__!r}")
        options = options_of(fn) or ToolOptions()
        own_name, docstring = name_and_docstring(fn)
        said, texts = read_docstring(docstring)
        self.fn = fn
        self.name = _good_name(_first(name, options.name, own_name), where(fn))
        self.description = visible(_first(description, options.description, said))
        self.group = _first(group, options.group)
        self.timeout = _good_timeout(_first(timeout, options.timeout), where(fn))
        self._signature = signature_of(fn)
        self._presets = self._good_presets(presets or {})
        hidden = self._signature.bound | self._presets.keys()
        open_ones = [item for item in self._signature.parameters if item.name not in hidden]
        self._arguments = Arguments(fn, open_ones, texts)
        self._on_loop = runs_on_loop(fn)
        self.parameters = self._arguments.schema

    async def execute(self, /, **arguments: Any) -> Any:
        """Check the arguments, add defaults and presets, and call the function.

        A function that is not async runs in a thread of its own. Raises `ArgumentError`.
        """
        values = self._arguments.check(self.name, arguments)
        positional, keywords = self._signature.place({**values, **self._presets})
        return await run(partial(self.fn, *positional, **keywords), on_loop=self._on_loop)

    def _good_presets(self, presets: Mapping[str, Any]) -> Mapping[str, Any]:
        known = [item.name for item in self._signature.parameters]
        for name in presets:
            if name not in known:
                near = near_misses(name, known)
                raise DefinitionError(
                    f"there is no parameter {name!r} to preset",
                    where=where(self.fn),
                    fix=f"did you mean {', '.join(near)}?" if near else "",
                )
        return MappingProxyType(dict(presets))


def as_tool(thing: Any) -> Tool:
    """Return a tool as it is, and make one of anything else that can be called."""
    if not isinstance(thing, Tool):
        return FunctionTool(thing)
    _good_name(getattr(thing, "name", ""), f"tool of class {type(thing).__qualname__}")
    return thing


def tools_in(namespace: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the marked callables and the `Tool` instances with a public name, in their order.

    A wrapper carries the mark of what it wraps; if both stand there, they are one tool, the first.
    """
    found: dict[int, Any] = {}
    for name, thing in namespace.items():
        if not name.startswith("_") and (identity := _identity(thing)) is not None:
            found.setdefault(id(identity), thing)
    return tuple(found.values())


def _identity(thing: Any) -> object | None:
    """Return what makes a thing one tool and not another, or `None` if it is no tool."""
    try:
        if isinstance(thing, Tool):
            return thing
    except Exception:
        return None  # a lazy proxy may raise when asked for its class
    return options_of(thing)


def _good_name(name: Any, place: str) -> str:
    if not isinstance(name, str):
        raise DefinitionError("the name of a tool must be text", where=place)
    if fault := tool_name_fault(name):
        raise DefinitionError(
            f"the tool name {name!r} {fault}", where=place, fix="give another with name="
        )
    return name


def _good_timeout(timeout: float | None, place: str) -> float | None:
    # Not "timeout <= 0": that would let NaN pass.
    if timeout is not None and not timeout > 0:
        raise DefinitionError(f"a timeout of {timeout} seconds cannot be kept", where=place)
    return timeout


def _first(*choices: Any) -> Any:
    """Return the first choice that was made."""
    return next((choice for choice in choices if choice is not None), None)
