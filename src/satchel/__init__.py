"""Satchel carries an agent's skills and tools, and keeps them current while they change."""

from satchel.catalog import Catalog, Change, Event, Group, State
from satchel.diagnostics import Diagnostic, Severity
from satchel.errors import (
    ConflictError,
    DefinitionError,
    NotFoundError,
    SatchelError,
    ToolError,
)
from satchel.plugins import hookimpl
from satchel.prompt import SkillPrompt
from satchel.satchel import Satchel
from satchel.session import Session
from satchel.settings import Limits, Pace, Settings
from satchel.sources import well_known_places
from satchel.tools import FunctionTool, Tool, ToolCall, ToolResult, tool

__all__ = [
    "Catalog",
    "Change",
    "ConflictError",
    "DefinitionError",
    "Diagnostic",
    "Event",
    "FunctionTool",
    "Group",
    "Limits",
    "NotFoundError",
    "Pace",
    "Satchel",
    "SatchelError",
    "Session",
    "Settings",
    "Severity",
    "SkillPrompt",
    "State",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "hookimpl",
    "tool",
    "well_known_places",
]
