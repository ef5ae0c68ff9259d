"""Read the tool list of a server, and check what changed since the last time."""

from functools import partial
from typing import TYPE_CHECKING, Any

from satchel.diagnostics import Where
from satchel.errors import DefinitionError, SatchelError
from satchel.mcp_servers.list_reader import ListedItems, read_list
from satchel.mcp_servers.protocol_fields import FieldReader
from satchel.mcp_servers.server_addresses import RemoteServer, WorkerServer
from satchel.mcp_servers.tool_definitions import ServerSnapshot, ToolDefinition, check_definition
from satchel.settings import Limits
from satchel.tools.empty_mapping import NOTHING

if TYPE_CHECKING:
    from mcp import Client

ABOUT = "dev.satchel/plugin"
"""The `_meta` key of a tool list in which a plugin's process describes the plugin."""

WAIT = "dev.satchel/wait"
"""The `_meta` key of a list request: the seconds that it may wait for what is still starting.

A satchel that connects to a satchel asks for it, because the first list is what is pinned.
"""

_TASK_ONLY = "it can only be called as a task of the protocol, which Satchel does not do"

_Checked = ToolDefinition | DefinitionError
"""A checked definition, or why it is invalid."""

_Memo = dict[str, tuple[ToolDefinition, _Checked]]
"""Names -> definitions as they were received, and checked."""


class ToolLister:
    """Lists the tools of a server; checks only those that changed since the last time."""

    def __init__(self, client: "Client", server: RemoteServer, limits: Limits) -> None:
        self._client, self._server, self._limits = client, server, limits
        self._memo: _Memo = {}

    async def listing(self) -> ServerSnapshot:
        """Return all tools that the server offers. Raises an error if they cannot be listed."""
        if self._client.server_capabilities.tools is None:
            return ServerSnapshot()
        limits, memo = self._limits, _Memo()
        items = ListedItems(
            "tool",
            Where(str(self._server)),
            partial(self._check, FieldReader(limits), memo),
            count_limit=(limits.mcp_tools, "mcp_tools"),
            size_limit=(limits.mcp_listing, "mcp_listing"),
        )
        meta: Any = {WAIT: limits.mcp_connect / 2}
        fetch = partial(self._client.list_tools, meta=meta)
        if message := await read_list(fetch, "tools", items, limits.mcp_connect):
            raise SatchelError(message)
        self._memo = memo
        is_plugin = isinstance(self._server, WorkerServer)
        return ServerSnapshot(
            tools=items.values,
            diagnostics=items.diagnostics,
            ttl=items.ttl,
            about=items.meta.get(ABOUT, NOTHING) if is_plugin else NOTHING,
        )

    def _check(
        self, fields: FieldReader, memo: _Memo, tool: Any
    ) -> tuple[str, ToolDefinition, int]:
        if tool.execution is not None and tool.execution.task_support == "required":
            raise DefinitionError(_TASK_ONLY)
        received = _definition(tool, fields)
        checked = self._checked(received)
        memo[received.name] = received, checked
        if isinstance(checked, DefinitionError):
            raise checked
        return checked.name, checked, len(checked.text)

    def _checked(self, received: ToolDefinition) -> _Checked:
        previous = self._memo.get(received.name)
        try:
            if previous is not None and previous[0] == received:
                return previous[1]
        except RecursionError:  # nested too deep to compare
            pass
        try:
            return check_definition(received, self._limits)
        except DefinitionError as problem:
            return problem


def _definition(tool: Any, fields: FieldReader) -> ToolDefinition:
    hints = tool.annotations
    annotations = hints.model_dump(by_alias=True, exclude_none=True) if hints else {}
    if tool.title:  # as the protocol has it, it wins over that of the annotations
        annotations["title"] = tool.title
    return ToolDefinition(
        name=tool.name,
        description=tool.description or "",
        parameters=tool.input_schema,
        output=tool.output_schema,
        annotations=annotations or None,
        mcp_fields=fields.read(
            type(tool), tool, used=("name", "description", "inputSchema", "outputSchema")
        ),
    )
