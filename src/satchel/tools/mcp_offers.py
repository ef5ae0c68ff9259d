"""What a plugin offers to MCP clients beside its tools: prompts and resources.

Both are made by a tool that no model sees, so arguments, threads and time limits are as in any.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from satchel.errors import DefinitionError
from satchel.text import has_hidden
from satchel.tools.function_tool import FunctionTool
from satchel.tools.tool import Tool

Complete = Callable[[str, str], Iterable[str]]
"""Gets the name of an argument and what was typed of it, and returns what may be meant."""

_SKILLS = "skill://"
_UPWARDS = {".", ".."}
_SLASHES = {"/", "\\"}
_VARIABLE = re.compile(r"\{(\w+)\}")


class McpPrompt:
    """A prompt that a user picks: `make` gets its arguments as text and returns what to say.

    Its name, description and arguments are those of the function; blocks are messages of the user.
    """

    def __init__(
        self,
        make: Tool | Callable[..., Any],
        *,
        name: str | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.tool = make if isinstance(make, Tool) else FunctionTool(make, name=name)
        self.name, self.complete = _text(name or self.tool.name, "name of a prompt"), complete
        self.tool.to_schema("mcp")  # what is wrong with it is told to whoever makes it


class McpResource:
    """A resource that clients read: `read` returns its text, a `Resource`, or anything JSON has.

    An address with parts in braces, such as `notes://{day}`, stands for many: `read` gets the parts
    as arguments.
    """

    def __init__(
        self,
        uri: str,
        read: Tool | Callable[..., Any],
        *,
        name: str | None = None,
        mime_type: str | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.tool = read if isinstance(read, Tool) else FunctionTool(read)
        self.uri = _text(uri, "address of a resource")
        if uri.lower().startswith(_SKILLS):
            raise DefinitionError(
                f"{uri!r} is the address of a skill", fix="let it begin with another word"
            )
        self.name = _text(name or self.tool.name, "name of a resource")
        self.mime_type = mime_type and _text(mime_type, "type of a resource")
        self.complete = complete
        self.tool.to_schema("mcp")
        self.variables = tuple(_VARIABLE.findall(uri))
        unknown = set(self.variables) - self.tool.parameters.get("properties", {}).keys()
        if unknown:
            raise DefinitionError(
                f"the resource {uri!r} has {', '.join(sorted(unknown))}, which its function lacks",
                fix="give the function a parameter for each part in braces",
            )
        pattern = "([^/?#]+)".join(map(re.escape, _VARIABLE.split(uri)[::2]))
        self._pattern = re.compile(pattern)

    @property
    def is_template(self) -> bool:
        """Whether it stands for many addresses."""
        return bool(self.variables)

    def match(self, uri: str) -> Mapping[str, str] | None:
        """Return the parts of an address, `None` if it is not of this resource."""
        found = self._pattern.fullmatch(uri)
        parts = [unquote(part) for part in found.groups()] if found else []
        # No part may become a way to somewhere else by being decoded.
        if found is None or any(part in _UPWARDS or _SLASHES & {*part} for part in parts):
            return None
        return dict(zip(self.variables, parts, strict=True))


def _text(given: Any, what: str) -> str:
    """Return what is text that everybody can see, and that can be sent."""
    if not isinstance(given, str) or has_hidden(given):
        raise DefinitionError(f"the {what} must be visible text, not {given!r}")
    return given
