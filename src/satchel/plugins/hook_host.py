"""The typed host: asks a plugin what it brings, through pluggy and nothing else."""

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pluggy

from satchel.catalog import Group, PluginContribution
from satchel.contracts import ToolContract
from satchel.errors import DefinitionError
from satchel.formats import ConfigField, field_fault
from satchel.names import plugin_name_fault
from satchel.plugins import hookspecs
from satchel.plugins.lifecycle import Lifecycle
from satchel.runtime import ScopedMiddleware
from satchel.settings import KIB, Limits
from satchel.tools import McpPrompt, McpResource

_MOST_ITEMS = 10_000
_MOST_TEXT = 256 * KIB


class HookError(Exception):
    """A plugin's hooks are unknown, or answer with something else than they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswers:
    """What a plugin's hooks returned, checked, and its hooks."""

    hooks: pluggy.HookRelay = field(repr=False, compare=False)
    tools: tuple[Any, ...]
    """`Tool`s and functions, as they came: one that is no tool costs no other."""
    contracts: tuple[ToolContract, ...]
    groups: tuple[Group, ...]
    skill_folders: tuple[str, ...]
    config: tuple[ConfigField, ...]
    layers: tuple[ScopedMiddleware, ...]
    sections: tuple[str, ...]
    commands: tuple[Any, ...]
    offers: tuple[McpPrompt | McpResource, ...]


def merge_answers(
    supply: PluginContribution, answers: HookAnswers, limits: Limits
) -> PluginContribution:
    """Add what the hooks of a plugin tell to what is known of it without them.

    What its manifest says of a field counts.
    """
    known = {item.key for item in supply.config}
    life = Lifecycle(supply.name, answers.hooks, limits.hook)
    return replace(
        supply,
        skills=tuple(dict.fromkeys((*supply.skills, *answers.skill_folders))),
        config=(*supply.config, *(item for item in answers.config if item.key not in known)),
        layers=answers.layers,
        sections=answers.sections,
        commands=answers.commands,
        offers=answers.offers,
        life=life if life.is_needed else None,
    )


def call_hooks(*modules: Any) -> HookAnswers:
    """Call every hook of one plugin that tells what it brings.

    Raises what the plugin raises, and `HookError`. Each plugin has a manager of its own: an old
    version that nobody uses any more is then held by nothing, and one plugin's fault is never
    another's.
    """
    manager = _Manager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        for module in modules:
            _require_marked(module)
            manager.register(module)
        manager.check_pending()
    except pluggy.PluginValidationError as problem:
        raise HookError(str(problem)) from None
    hook = manager.hook
    return HookAnswers(
        hooks=hook,
        tools=tuple(_all(hook.satchel_tools)),
        contracts=tuple(_all(hook.satchel_contracts, (ToolContract,))),
        groups=tuple(map(_group, _all(hook.satchel_groups, (Group,)))),
        skill_folders=tuple(map(_folder, _all(hook.satchel_skill_folders, (str, os.PathLike)))),
        config=_fields(_all(hook.satchel_config_fields, (ConfigField,))),
        layers=tuple(map(_layer, _all(hook.satchel_middleware, (ScopedMiddleware, Callable)))),
        sections=tuple(map(_section, _all(hook.satchel_prompt_sections, (str,)))),
        commands=tuple(map(_command, _all(hook.satchel_commands))),
        offers=tuple(_all(hook.satchel_mcp, (McpPrompt, McpResource))),
    )


class _Manager(pluggy.PluginManager):
    """Knows a function once, in however many modules of a plugin it stands."""

    def __init__(self, project: str) -> None:
        super().__init__(project)
        self._functions: list[object] = []

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
        """Return how a function implements a hook, `None` if it does not."""
        options = super().parse_hookimpl_opts(plugin, name)
        if options is not None:
            function = getattr(plugin, name)
            if any(function is known for known in self._functions):
                return None
            self._functions.append(function)
        return options


def _require_marked(module: Any) -> None:
    """Refuse a function with the name of a hook that nobody would call."""
    for name in vars(hookspecs):
        function = vars(module).get(name) if name.startswith("satchel_") else None
        if inspect.isfunction(function) and not hasattr(function, f"{hookspecs.PROJECT}_impl"):
            raise HookError(f"{name} is not marked with satchel.hookimpl")


def _folder(given: str | os.PathLike[str]) -> str:
    folder = os.fspath(given)
    if not isinstance(folder, str) or not os.path.isabs(folder):
        raise HookError(f"satchel_skill_folders returned no absolute path: {folder!r}")
    return folder


def _group(group: Group) -> Group:
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
    return Group(
        name=group.name,
        description=group.description,
        notes=group.notes,
        active=active,
        tools=tools,
        skills=skills,
        requires=requires,
    )


def _fields(fields: Iterable[ConfigField]) -> tuple[ConfigField, ...]:
    first: dict[str, ConfigField] = {}
    for item in fields:
        if fault := field_fault(item):
            raise HookError(f"satchel_config_fields returned a field that {fault}: {item!r}")
        if first.setdefault(item.key, item) is not item:
            raise HookError(f"satchel_config_fields returned two fields named {item.name!r}")
    return tuple(first.values())


def _layer(given: Any) -> ScopedMiddleware:
    try:
        return given if isinstance(given, ScopedMiddleware) else ScopedMiddleware(given)
    except DefinitionError as problem:
        raise HookError(f"satchel_middleware: {problem.message}; {problem.fix}") from None


def _section(text: str) -> str:
    if len(text) > _MOST_TEXT:
        raise HookError(f"satchel_prompt_sections returned a text of {len(text):,} characters")
    return text


def _command(given: Any) -> Any:
    # Lazy: the library works without the command line.
    import click

    if not isinstance(given, click.Command) or not isinstance(given.name, str) or not given.name:
        raise HookError("satchel_commands returned what is no click command with a name")
    return given


def _all(hook: pluggy.HookCaller, kinds: tuple[Any, ...] = (object,)) -> list[Any]:
    """Call a hook, and flatten the lists that its implementations return."""
    found: list[Any] = []
    for answer in hook():
        if inspect.iscoroutine(answer):
            answer.close()
            raise HookError(f"{hook.name} must not be a coroutine function")
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise HookError(f"{hook.name} must return a list, not {type(answer).__name__}")
        found += islice(answer, _MOST_ITEMS - len(found) + 1)
    if len(found) > _MOST_ITEMS:
        raise HookError(f"{hook.name} returned more than {_MOST_ITEMS:,} items")
    for item in found:
        if not isinstance(item, kinds):
            raise HookError(f"{hook.name} returned {type(item).__name__} among its items")
    return found
