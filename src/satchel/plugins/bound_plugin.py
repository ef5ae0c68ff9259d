"""What binding the configuration of a plugin gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from satchel.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution, ToolContribution
    from satchel.contracts.tool_contract import ToolContract
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import StampedPath


@dataclass(frozen=True, slots=True)
class HostContract:
    """A contract that the host registered, with a version that is new for each registration."""

    contract: ToolContract
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """One tool of a plugin, the values, model and contract bound to it, and the result."""

    tool: ToolContribution
    values: Mapping[str, Any] = field(repr=False)
    model: Any
    contract: HostContract | None
    """The host's contract; it replaces that of the plugin."""
    served: ToolContribution | None
    """The tool that is served; `None` if it is left out."""
    diagnostic: Diagnostic | None = None
    invalid: tuple[str, ...] = ()
    """State fields whose values the manifest does not allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPlugin:
    """A plugin's contribution after binding."""

    contribution: PluginContribution
    bound_tools: Mapping[str, BoundTool] = field(default_factory=dict)
    """The results by tool name; empty if nothing had to be bound."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """The diagnostics of the binding; the contribution has them, too."""
    config_stamps: tuple[StampedPath, ...] = ()
    """The stamps of the configuration files, taken before they were read."""


def needs_no_binding(contribution: PluginContribution) -> bool:
    """Return whether a plugin declares nothing that could be configured."""
    declared = (contribution.tools, contribution.groups, contribution.config)
    return not any(declared) and not contribution.started_with
