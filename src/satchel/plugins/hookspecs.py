"""Every hook that a plugin can implement, on one page.

A package names a module or an object as its entry point in the group `satchel.plugins`. In a plugin
folder, the modules with its tools are searched for hooks. A hook is a function marked with
`satchel.hookimpl`. It is called when the plugin is enabled, within the limit `hook`, and receives
only the arguments that it names.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:  # The library works without the command line.
    import click

    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Group
    from satchel.contracts.tool_contract import ToolContract
    from satchel.formats.config_fields import ConfigField
    from satchel.providers.provider import Provider
    from satchel.runtime.middleware_chain import Middleware, ScopedMiddleware
    from satchel.tools import McpPrompt, McpResource, Tool

PROJECT = "satchel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of a hook."""


# ---- parts of the plugin: called once a version ------------------------------------------


@hookspec
def satchel_tools() -> Iterable[Tool | Callable[..., Any]]:  # type: ignore[empty-body]
    """Return the plugin's tools: `Tool`s, or functions with or without `@tool`."""


@hookspec
def satchel_contracts() -> Iterable[ToolContract]:  # type: ignore[empty-body]
    """Return the contracts of the plugin's tools; they are matched by the tools' names."""


@hookspec
def satchel_groups() -> Iterable[Group]:  # type: ignore[empty-body]
    """Return the plugin's tool groups; without any, it has one group of its own name."""


@hookspec
def satchel_skill_folders() -> Iterable[str | os.PathLike[str]]:  # type: ignore[empty-body]
    """Return absolute paths of folders to search for the plugin's skills."""


@hookspec
def satchel_config_fields() -> Iterable[ConfigField]:  # type: ignore[empty-body]
    """Return configuration fields; those that the manifest declares take precedence."""


@hookspec
def satchel_middleware() -> Iterable[Middleware | ScopedMiddleware]:  # type: ignore[empty-body]
    """Return middleware for all tools, or `ScopedMiddleware` for one group or tool."""


@hookspec
def satchel_prompt_sections() -> Iterable[str]:  # type: ignore[empty-body]
    """Return sections for the end of the system prompt, whichever groups are active."""


@hookspec
def satchel_providers() -> Iterable[Provider]:  # type: ignore[empty-body]
    """Return providers; they are asked as long as this version of the plugin is served."""


@hookspec
def satchel_commands() -> Iterable[click.Command]:  # type: ignore[empty-body]
    """Return commands for `satchel NAME`; those of Satchel itself cannot be replaced."""


@hookspec
def satchel_mcp() -> Iterable[McpPrompt | McpResource]:  # type: ignore[empty-body]
    """Return prompts and resources for MCP clients, for while a group of the plugin is active."""


# ---- lifecycle: each may be a coroutine function -------------------------------------------


@hookspec
def satchel_startup(config: Mapping[str, Any]) -> Awaitable[None] | None:
    """Open what this version needs, before any of its tools is called.

    `config` holds the values by field. If it raises, the plugin fails. Coroutines run on an event
    loop of this version, which runs until the shutdown.
    """


@hookspec
def satchel_shutdown() -> Awaitable[None] | None:
    """Close what the startup opened, after the last call on this version has ended."""


@hookspec
def satchel_catalog_built(catalog: Catalog) -> None:
    """Receive a new catalog that serves this version, right after it was published."""
