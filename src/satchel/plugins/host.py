"""The typed host: asks a plugin package what it brings, through pluggy and nothing else."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pluggy

from satchel.catalog import Group
from satchel.names import plugin_name_fault
from satchel.plugins import hookspecs


class HookError(Exception):
    """A plugin's hooks are unknown, or answer with something else than they should."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a plugin's hooks returned, checked."""

    tools: tuple[Any, ...]
    """`Tool`s and functions, as they came: one that is no tool costs no other."""
    groups: tuple[Group, ...]
    skill_folders: tuple[str, ...]


def ask(plugin: Any) -> Answers:
    """Call every hook of one plugin. Raises what the plugin raises, and `HookError`.

    Each plugin has a manager of its own: an old version that nobody uses any more is then
    held by nothing, and one plugin's fault is never another's.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin)
        manager.check_pending()
    except pluggy.PluginValidationError as problem:
        raise HookError(str(problem)) from None
    hook = manager.hook
    folders = [os.fspath(item) for item in _all(hook.satchel_skill_folders, (str, os.PathLike))]
    for folder in folders:
        if not isinstance(folder, str) or not os.path.isabs(folder):
            raise HookError(f"satchel_skill_folders returned no absolute path: {folder!r}")
    return Answers(
        tools=tuple(_all(hook.satchel_tools)),
        groups=tuple(_sound(group) for group in _all(hook.satchel_groups, (Group,))),
        skill_folders=tuple(folders),
    )


def _sound(group: Group) -> Group:
    """Return a group whose fields are what they should be; a dataclass does not check."""
    lists = (group.tools, group.skills, group.requires)
    if any(isinstance(items, str) for items in lists):
        raise HookError(f"satchel_groups returned text where names are listed: {group!r}")
    tools, skills, requires = map(tuple, lists)
    texts = (group.name, group.description, group.notes, *tools, *skills, *requires)
    if not all(isinstance(text, str) for text in texts):
        raise HookError(f"satchel_groups returned a group with a field that is no text: {group!r}")
    if fault := plugin_name_fault(group.name):
        raise HookError(f"satchel_groups returned the name {group.name!r}, which {fault}")
    active = bool(group.active)
    return Group(group.name, group.description, group.notes, active, tools, skills, requires)


def _all(hook: pluggy.HookCaller, kinds: tuple[type, ...] = (object,)) -> list[Any]:
    """Call a hook, and flatten the lists that its implementations return."""
    found: list[Any] = []
    for answer in hook():
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise HookError(f"{hook.name} must return a list, not {type(answer).__name__}")
        found += answer
    for item in found:
        if not isinstance(item, kinds):
            raise HookError(f"{hook.name} returned {type(item).__name__} among its items")
    return found
