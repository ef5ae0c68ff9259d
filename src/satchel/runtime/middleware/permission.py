"""Middleware that allows and denies tools by name."""

from collections.abc import AsyncIterator, Iterable

from satchel.errors import DefinitionError
from satchel.names import fits
from satchel.runtime.middleware_chain import Handler, Middleware
from satchel.runtime.stream_opening import opened
from satchel.text import one_line, shorten
from satchel.tools import Item, ToolCall, failure

_NAME_LENGTH = 64


def authorize(allow: Iterable[str] = ("*",), deny: Iterable[str] = ()) -> Middleware:
    """Refuse tools that are denied or not allowed, with the code `not_allowed`; `deny` wins.

    Patterns are names or globs of tools, such as `read_*`, or of groups, such as `group:maps`.
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


def _patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    if isinstance(patterns, str):
        raise DefinitionError(
            f"{patterns!r} is one pattern, not several", fix=f"write ({patterns!r},)"
        )
    return tuple(patterns)


def _matches(patterns: tuple[str, ...], name: str, groups: tuple[str, ...]) -> bool:
    group_texts = [f"group:{group}" for group in groups]
    return any(
        fits(text, (pattern,))
        for pattern in patterns
        for text in (group_texts if pattern.startswith("group:") else [name])
    )
