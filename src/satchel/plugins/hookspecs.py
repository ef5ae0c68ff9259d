"""Every hook that a plugin can implement, on one page.

A package names a module or an object as its entry point in the group `satchel.plugins`; of a plugin
folder the modules that hold its tools count. Their functions that are marked with
`satchel.hookimpl` are called when the plugin is enabled, within the limit `hook`, and take only
those of the arguments that they name.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from satchel.catalog import Catalog, Group
from satchel.contracts import ToolContract
from satchel.formats import ConfigField
from satchel.runtime import Middleware, ScopedMiddleware
from satchel.tools import McpPrompt, McpResource, Tool

if TYPE_CHECKING:  # The library works without the command line.
    import click

PROJECT = "satchel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of a hook."""


# ---- what it brings: asked once for each version ------------------------------------------


@hookspec
def satchel_tools() -> Iterable[Tool | Callable[..., Any]]:  # type: ignore[empty-body]
    """Return the tools that the plugin brings: `Tool`s, or functions with `@tool` or without."""


@hookspec
def satchel_contracts() -> Iterable[ToolContract]:  # type: ignore[empty-body]
    """Return what the calls of the plugin's tools are held to, by the tools' names."""


@hookspec
def satchel_groups() -> Iterable[Group]:  # type: ignore[empty-body]
    """Return the tool groups that the plugin describes; without any, one bears its name."""


@hookspec
def satchel_skill_folders() -> Iterable[str | os.PathLike[str]]:  # type: ignore[empty-body]
    """Return absolute paths of folders to search for the skills that the plugin brings."""


@hookspec
def satchel_config_fields() -> Iterable[ConfigField]:  # type: ignore[empty-body]
    """Return fields of the configuration beside those of the manifest, whose names are taken."""


@hookspec
def satchel_middleware() -> Iterable[Middleware | ScopedMiddleware]:  # type: ignore[empty-body]
    """Return middleware for all tools; a `ScopedMiddleware` is for one group or tool."""


@hookspec
def satchel_prompt_sections() -> Iterable[str]:  # type: ignore[empty-body]
    """Return texts that end the system prompt, whichever groups are active."""


@hookspec
def satchel_commands() -> Iterable["click.Command"]:  # type: ignore[empty-body]
    """Return commands for `satchel NAME`; those of Satchel itself cannot be replaced."""


@hookspec
def satchel_mcp() -> Iterable[McpPrompt | McpResource]:  # type: ignore[empty-body]
    """Return prompts and resources for MCP clients, there while a group of the plugin is active."""


# ---- its life: each may be a coroutine function -------------------------------------------


@hookspec
def satchel_startup(config: Mapping[str, Any]) -> Awaitable[None] | None:
    """Open what this version needs, before any of its tools is called.

    `config` are its values by field. What raises fails the plugin. Coroutines run on an event
    loop of their version's own, which goes on until the shutdown.
    """


@hookspec
def satchel_shutdown() -> Awaitable[None] | None:
    """Close what the startup opened, after the last call that began on this version."""


@hookspec
def satchel_catalog_built(catalog: Catalog) -> None:
    """Look at a generation that was just published and that serves this version."""
