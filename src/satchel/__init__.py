"""Satchel manages an agent's skills and tools, and keeps them current while they change.

Each name below is imported on first use, so that the command line starts quickly.
"""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

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
    from satchel.mcp_servers import (
        HttpServer,
        OAuthClient,
        RemoteClient,
        ServerOptions,
        SseServer,
        StdioServer,
    )
    from satchel.plugins import hookimpl
    from satchel.prompt import ListingForm, PromptListing, SkillPrompt, about_tokens
    from satchel.provider_messages import calls_in, result_messages
    from satchel.providers import Contribution, Provider, Skill
    from satchel.runtime import ScopedMiddleware
    from satchel.runtime.program_runner import Program, ProgramRunner
    from satchel.satchel import Satchel
    from satchel.session import (
        Recording,
        ReplayDifference,
        Session,
        SkillContent,
        Step,
        StepChanges,
        replay,
    )
    from satchel.settings import Limits, Sandbox, Settings, WatchTimings
    from satchel.sources import Precedence, SearchRoot, conventional_roots
    from satchel.sources.projects import Project
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
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "catalog": "Catalog Change Event Group Status",
            "contracts": (
                "DROP_STEP ContractError Contracts Filled Plan PlanPolicy ToolConfigParam "
                "ToolContract ToolInvariant ToolStateEffect ToolStateRead Validation Verdict"
            ),
            "diagnostics": "Diagnostic Severity",
            "errors": "ConflictError DefinitionError NotFoundError SatchelError ToolError",
            "formats": "ConfigField",
            "formats.skill_handler": "SkillHandler",
            "plugins": "hookimpl",
            "providers": "Contribution Provider Skill",
            "provider_messages": "calls_in result_messages",
            "prompt": "ListingForm PromptListing SkillPrompt about_tokens",
            "tool_registry": "ToolRegistry",
            "mcp_servers": (
                "HttpServer OAuthClient RemoteClient ServerOptions SseServer StdioServer"
            ),
            "runtime": "ScopedMiddleware",
            "satchel": "Satchel",
            "session": "Recording ReplayDifference Session SkillContent Step StepChanges replay",
            "runtime.program_runner": "Program ProgramRunner",
            "settings": "Limits Sandbox WatchTimings Settings",
            "sources": "Precedence SearchRoot conventional_roots",
            "sources.projects": "Project",
            "tools": (
                "Audio FunctionTool Image McpPrompt McpResource Resource ResourceLink Text Tool "
                "ToolCall ToolChunk ToolContext ToolResult pydantic_to_json_schema "
                "set_extended_model tool"
            ),
        },
    )

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
    "ListingForm",
    "McpPrompt",
    "McpResource",
    "NotFoundError",
    "OAuthClient",
    "Plan",
    "PlanPolicy",
    "Precedence",
    "Program",
    "ProgramRunner",
    "Project",
    "PromptListing",
    "Provider",
    "Recording",
    "RemoteClient",
    "ReplayDifference",
    "Resource",
    "ResourceLink",
    "Sandbox",
    "Satchel",
    "SatchelError",
    "ScopedMiddleware",
    "SearchRoot",
    "ServerOptions",
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
    "calls_in",
    "conventional_roots",
    "hookimpl",
    "pydantic_to_json_schema",
    "replay",
    "result_messages",
    "set_extended_model",
    "tool",
]


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
