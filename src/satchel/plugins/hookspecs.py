"""Every hook that a plugin package can implement, on one page.

A package names a module or an object as its entry point in the group `satchel.plugins`. Its
functions that are marked with `satchel.hookimpl` are called once for each version of the
package, when it is enabled.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

import pluggy

from satchel.catalog import Group
from satchel.tools import Tool

PROJECT = "satchel"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin package as the implementation of a hook."""


@hookspec
def satchel_tools() -> Iterable[Tool | Callable[..., Any]]:  # type: ignore[empty-body]
    """Return the tools that the package brings: `Tool`s, or functions with `@tool` or without."""


@hookspec
def satchel_groups() -> Iterable[Group]:  # type: ignore[empty-body]
    """Return the tool groups that the package describes; without any, one bears its name."""


@hookspec
def satchel_skill_folders() -> Iterable[str | os.PathLike[str]]:  # type: ignore[empty-body]
    """Return absolute paths of folders to search for the skills that the package brings."""
