"""Middleware that allows and denies tools by name."""

from collections.abc import AsyncIterator, Iterable

from satchel.configuration.selection import SelectionPatterns
from satchel.errors import DefinitionError
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line, shorten
from satchel.tools import Item, ToolCall, failure

_NAME_LENGTH = 64

_Patterns = tuple[SelectionPatterns, SelectionPatterns]
"""Those of tools, and those of groups."""


def authorize(allow: Iterable[str] = ("*",), deny: Iterable[str] = ()) -> Middleware:
    """Refuse tools that are denied or not allowed, with the code `not_allowed`; `deny` wins.

    Patterns are names or globs of tools, such as `read_*` or `tool:read_*`, or of groups, such as
    `group:maps`.
    """
    allowed, denied = _patterns(allow), _patterns(deny)

    async def middleware(call: ToolCall, inner: Handler) -> AsyncIterator[Item]:
        # Other middleware may have sent the call to another tool by its name. The groups
        # of that tool are unknown here, so only its name can allow it. Denying either tool refuses.
        own_name = call.name if call.tool is None else call.tool.name
        if (
            not _matches(allowed, call.name, call.groups if own_name == call.name else ())
            or _matches(denied, call.name, call.groups)
            or _matches(denied, own_name, call.groups)
        ):
            name = shorten(one_line(call.name), _NAME_LENGTH)
            message = f"{name} is not allowed here; continue without it, and do not retry"
            yield failure("not_allowed", message, call.id or None)
            return
        async with opened(inner, call) as items:
            async for item in items:
                yield item

    return middleware


def _patterns(patterns: Iterable[str]) -> _Patterns:
    if isinstance(patterns, str):
        raise DefinitionError(
            f"{patterns!r} is one pattern, not several", fix=f"write ({patterns!r},)"
        )
    all_patterns = tuple(patterns)
    # Without a kind, a pattern is for tools: the name of a group alone allows nothing.
    of_groups = tuple(text for text in all_patterns if text.startswith("group:"))
    return SelectionPatterns(all_patterns), SelectionPatterns(of_groups)


def _matches(patterns: _Patterns, name: str, groups: tuple[str, ...]) -> bool:
    of_tools, of_groups = patterns
    return (of_tools.match("tool", (name,)) or of_groups.match("group", groups)) is not None
