"""Prompts and resources that a plugin offers to MCP clients.

Each contains a tool that no model sees, so arguments, threads and time limits work as for tools.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from satchel.errors import DefinitionError
from satchel.text import has_hidden
from satchel.tools.base_tool import Tool
from satchel.tools.empty_mapping import NOTHING
from satchel.tools.function_tool import FunctionTool

Complete = Callable[[str, str], Iterable[str]]
"""Gets the name of an argument and the text typed so far, and returns completions."""

_SKILLS = "skill://"
_UPWARDS = {".", ".."}
_SLASHES = {"/", "\\"}
_VARIABLE = re.compile(r"\{(\w+)\}")


class McpPrompt:
    """A prompt that a user picks: `make` gets the arguments as text and returns the messages.

    Name, description and arguments come from the function. Blocks become messages of the user.
    """

    server = ""
    """The MCP server that offers it, or `""`."""
    groups: tuple[str, ...] = ()
    """Groups that it belongs to, beside those of its plugin."""
    mcp_fields: Mapping[str, Any] = NOTHING
    """Further fields of its description, as its server lists them."""

    def __init__(
        self,
        make: Tool | Callable[..., Any],
        *,
        name: str | None = None,
        complete: Complete | None = None,
    ) -> None:
        self.tool = make if isinstance(make, Tool) else FunctionTool(make, name=name)
        self.name, self.complete = _text(name or self.tool.name, "name of a prompt"), complete
        self.tool.to_schema("mcp")  # raises here if the schema is invalid


class McpResource:
    """A resource that clients read: `read` returns text, a `Resource`, or a JSON value.

    A URI with parts in braces, such as `notes://{day}`, is a template: `read` gets the parts as
    arguments.
    """

    server = ""
    """The MCP server that offers it, or `""`."""
    groups: tuple[str, ...] = ()
    """Groups that it belongs to, beside those of its plugin."""
    mcp_fields: Mapping[str, Any] = NOTHING
    """Further fields of its description, as its server lists them."""
    prefix = ""
    """What is in front of its URI, because the URI is taken."""

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
        self.uri = _text(uri, "URI of a resource")
        if uri.lower().startswith(_SKILLS):
            raise DefinitionError(
                f"the URI {uri!r} is reserved for skills", fix="use another scheme than skill://"
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
        """Return whether the URI is a template."""
        return bool(self.variables)

    def match(self, uri: str) -> Mapping[str, str] | None:
        """Return the parts of a URI by name; `None` if it is not a URI of this resource."""
        match = self._pattern.fullmatch(uri)
        parts = [unquote(part) for part in match.groups()] if match else []
        # A decoded part must not lead to another path.
        if match is None or any(part in _UPWARDS or _SLASHES & {*part} for part in parts):
            return None
        return dict(zip(self.variables, parts, strict=True))


def _text(value: Any, label: str) -> str:
    if not isinstance(value, str) or has_hidden(value):
        raise DefinitionError(
            f"the {label} must be a string without invisible characters, not {value!r}"
        )
    return value
