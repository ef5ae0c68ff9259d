"""Satchel manages an agent's skills and tools, and keeps them current while they change.

Each name below is imported on first use, so that the command line starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from satchel.catalog import Catalog, Change, Event, Group, Status
    from satchel.contracts import (
        DROP_STEP,
        ContractError,
        Contracts,
        Filled,
        Plan,
        PlanPolicy,
        ToolConfigParam,
        ToolContract,
        ToolInvariant,
        ToolStateEffect,
        ToolStateRead,
        Validation,
        Verdict,
    )
    from satchel.diagnostics import Diagnostic, Severity
    from satchel.errors import (
        ConflictError,
        DefinitionError,
        NotFoundError,
        SatchelError,
        ToolError,
    )
    from satchel.formats import ConfigField
    from satchel.formats.skill_handler import SkillHandler
    from satchel.mcp_servers import HttpServer, RemoteClient, SseServer, StdioServer
    from satchel.plugins import hookimpl
    from satchel.prompt import SkillPrompt, about_tokens
    from satchel.providers import Contribution, Provider, Skill
    from satchel.runtime import ScopedMiddleware
    from satchel.satchel import Satchel
    from satchel.session import Session, SkillContent, Step, StepChanges
    from satchel.settings import Limits, Settings, WatchTimings
    from satchel.sources import Precedence, SearchRoot, conventional_roots
    from satchel.tool_registry import ToolRegistry
    from satchel.tools import (
        Audio,
        FunctionTool,
        Image,
        McpPrompt,
        McpResource,
        Resource,
        ResourceLink,
        Text,
        Tool,
        ToolCall,
        ToolChunk,
        ToolContext,
        ToolResult,
        pydantic_to_json_schema,
        set_extended_model,
        tool,
    )

_PACKAGES = {
    "Catalog": "satchel.catalog",
    "Change": "satchel.catalog",
    "Event": "satchel.catalog",
    "Group": "satchel.catalog",
    "Status": "satchel.catalog",
    "DROP_STEP": "satchel.contracts",
    "ContractError": "satchel.contracts",
    "Contracts": "satchel.contracts",
    "Filled": "satchel.contracts",
    "Plan": "satchel.contracts",
    "PlanPolicy": "satchel.contracts",
    "ToolConfigParam": "satchel.contracts",
    "ToolContract": "satchel.contracts",
    "ToolInvariant": "satchel.contracts",
    "ToolStateEffect": "satchel.contracts",
    "ToolStateRead": "satchel.contracts",
    "Validation": "satchel.contracts",
    "Verdict": "satchel.contracts",
    "Diagnostic": "satchel.diagnostics",
    "Severity": "satchel.diagnostics",
    "ConflictError": "satchel.errors",
    "DefinitionError": "satchel.errors",
    "NotFoundError": "satchel.errors",
    "SatchelError": "satchel.errors",
    "ToolError": "satchel.errors",
    "ConfigField": "satchel.formats",
    "SkillHandler": "satchel.formats.skill_handler",
    "hookimpl": "satchel.plugins",
    "Contribution": "satchel.providers",
    "Provider": "satchel.providers",
    "Skill": "satchel.providers",
    "SkillPrompt": "satchel.prompt",
    "about_tokens": "satchel.prompt",
    "ToolRegistry": "satchel.tool_registry",
    "HttpServer": "satchel.mcp_servers",
    "RemoteClient": "satchel.mcp_servers",
    "SseServer": "satchel.mcp_servers",
    "StdioServer": "satchel.mcp_servers",
    "ScopedMiddleware": "satchel.runtime",
    "Satchel": "satchel.satchel",
    "Session": "satchel.session",
    "SkillContent": "satchel.session",
    "Step": "satchel.session",
    "StepChanges": "satchel.session",
    "Limits": "satchel.settings",
    "WatchTimings": "satchel.settings",
    "Settings": "satchel.settings",
    "Precedence": "satchel.sources",
    "SearchRoot": "satchel.sources",
    "conventional_roots": "satchel.sources",
    "Audio": "satchel.tools",
    "FunctionTool": "satchel.tools",
    "Image": "satchel.tools",
    "McpPrompt": "satchel.tools",
    "McpResource": "satchel.tools",
    "Resource": "satchel.tools",
    "ResourceLink": "satchel.tools",
    "Text": "satchel.tools",
    "Tool": "satchel.tools",
    "ToolCall": "satchel.tools",
    "ToolChunk": "satchel.tools",
    "ToolContext": "satchel.tools",
    "ToolResult": "satchel.tools",
    "pydantic_to_json_schema": "satchel.tools",
    "set_extended_model": "satchel.tools",
    "tool": "satchel.tools",
}

__all__ = [
    "DROP_STEP",
    "Audio",
    "Catalog",
    "Change",
    "ConfigField",
    "ConflictError",
    "ContractError",
    "Contracts",
    "Contribution",
    "DefinitionError",
    "Diagnostic",
    "Event",
    "Filled",
    "FunctionTool",
    "Group",
    "HttpServer",
    "Image",
    "Limits",
    "McpPrompt",
    "McpResource",
    "NotFoundError",
    "Plan",
    "PlanPolicy",
    "Precedence",
    "Provider",
    "RemoteClient",
    "Resource",
    "ResourceLink",
    "Satchel",
    "SatchelError",
    "ScopedMiddleware",
    "SearchRoot",
    "Session",
    "Settings",
    "Severity",
    "Skill",
    "SkillContent",
    "SkillHandler",
    "SkillPrompt",
    "SseServer",
    "Status",
    "StdioServer",
    "Step",
    "StepChanges",
    "Text",
    "Tool",
    "ToolCall",
    "ToolChunk",
    "ToolConfigParam",
    "ToolContext",
    "ToolContract",
    "ToolError",
    "ToolInvariant",
    "ToolRegistry",
    "ToolResult",
    "ToolStateEffect",
    "ToolStateRead",
    "Validation",
    "Verdict",
    "WatchTimings",
    "about_tokens",
    "conventional_roots",
    "hookimpl",
    "pydantic_to_json_schema",
    "set_extended_model",
    "tool",
]

if not TYPE_CHECKING:  # A type checker would accept every name.

    def __getattr__(name: str) -> Any:
        """Import a public name from its package."""
        if name not in _PACKAGES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_PACKAGES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
