"""Satchel manages an agent's skills and tools, and keeps them current while they change.

Each name below is imported on first use, so that the command line starts quickly.
"""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_changes import Change, Event
    from satchel.catalog.catalog_entries import Group, Status
    from satchel.configuration.projects import Project
    from satchel.contracts.contract_parts import (
        DROP_STEP,
        ToolConfigParam,
        ToolInvariant,
        ToolStateEffect,
        ToolStateRead,
    )
    from satchel.contracts.contract_set import Contracts
    from satchel.contracts.plan import Plan, PlanPolicy, Validation, Verdict
    from satchel.contracts.prompt_variables import Filled
    from satchel.contracts.tool_contract import ToolContract
    from satchel.diagnostics import Diagnostic, Severity
    from satchel.errors import (
        ConflictError,
        ContractError,
        DefinitionError,
        IsolatedToolError,
        NotFoundError,
        SatchelError,
        ToolError,
    )
    from satchel.formats.config_fields import ConfigField
    from satchel.formats.skill_handler import SkillHandler
    from satchel.mcp_servers.oauth_client import OAuthClient
    from satchel.mcp_servers.remote_client import RemoteClient
    from satchel.mcp_servers.server_addresses import HttpServer, SseServer, StdioServer
    from satchel.mcp_servers.server_options import ServerOptions
    from satchel.plugins.hookspecs import hookimpl
    from satchel.prompt.listing_words import ListingForm
    from satchel.prompt.skill_listing import PromptListing
    from satchel.prompt.skill_prompt import SkillPrompt
    from satchel.prompt.token_estimate import about_tokens
    from satchel.provider_messages.message_formats import calls_in, result_messages
    from satchel.providers.provider import Contribution, Provider
    from satchel.providers.skill import Skill
    from satchel.runtime.middleware_chain import ScopedMiddleware
    from satchel.runtime.program_runner import Program, ProgramRunner
    from satchel.satchel import Satchel
    from satchel.session.conversation_replay import ReplayDifference, replay
    from satchel.session.recording import Recording
    from satchel.session.session import Session
    from satchel.session.session_state import SkillContent
    from satchel.session.step import Step, StepChanges
    from satchel.settings import Limits, Sandbox, Settings, WatchTimings
    from satchel.sources.search_roots import Precedence, SearchRoot, conventional_roots
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
            "catalog.catalog": "Catalog",
            "catalog.catalog_changes": "Change Event",
            "catalog.catalog_entries": "Group Status",
            "contracts.contract_parts": (
                "DROP_STEP ToolConfigParam ToolInvariant ToolStateEffect ToolStateRead"
            ),
            "contracts.contract_set": "Contracts",
            "contracts.plan": "Plan PlanPolicy Validation Verdict",
            "contracts.prompt_variables": "Filled",
            "contracts.tool_contract": "ToolContract",
            "diagnostics": "Diagnostic Severity",
            "errors": (
                "ConflictError ContractError DefinitionError IsolatedToolError NotFoundError "
                "SatchelError ToolError"
            ),
            "formats.config_fields": "ConfigField",
            "formats.skill_handler": "SkillHandler",
            "mcp_servers.oauth_client": "OAuthClient",
            "mcp_servers.remote_client": "RemoteClient",
            "mcp_servers.server_addresses": "HttpServer SseServer StdioServer",
            "mcp_servers.server_options": "ServerOptions",
            "plugins.hookspecs": "hookimpl",
            "prompt.listing_words": "ListingForm",
            "prompt.skill_listing": "PromptListing",
            "prompt.skill_prompt": "SkillPrompt",
            "prompt.token_estimate": "about_tokens",
            "provider_messages.message_formats": "calls_in result_messages",
            "providers.provider": "Contribution Provider",
            "providers.skill": "Skill",
            "runtime.middleware_chain": "ScopedMiddleware",
            "runtime.program_runner": "Program ProgramRunner",
            "satchel": "Satchel",
            "session.conversation_replay": "ReplayDifference replay",
            "session.recording": "Recording",
            "session.session": "Session",
            "session.session_state": "SkillContent",
            "session.step": "Step StepChanges",
            "settings": "Limits Sandbox Settings WatchTimings",
            "configuration.projects": "Project",
            "sources.search_roots": "Precedence SearchRoot conventional_roots",
            "tool_registry": "ToolRegistry",
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
    "IsolatedToolError",
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
