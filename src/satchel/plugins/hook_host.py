"""Call the hooks of a plugin through pluggy, and check their answers."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from satchel.catalog.catalog_entries import Group
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.formats.config_fields import ConfigField, field_fault
from satchel.lazy_dataclass import dataclass
from satchel.names import plugin_name_fault
from satchel.plugins import hookspecs
from satchel.plugins.lifecycle import Lifecycle
from satchel.providers.provider import Provider, provider_fault
from satchel.runtime.middleware_chain import ScopedMiddleware
from satchel.settings import KIB
from satchel.tools import McpPrompt, McpResource

if TYPE_CHECKING:
    from satchel.catalog.catalog_entries import PluginContribution
    from satchel.settings import Limits

T = TypeVar("T")

_MAX_ITEMS = 10_000
_MAX_TEXT = 256 * KIB


class HookError(Exception):
    """A plugin has an unknown hook, or a hook returned an invalid answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswers:
    """The checked answers of a plugin's hooks, and the hooks themselves."""

    hooks: pluggy.HookRelay = field(repr=False, compare=False)
    tools: tuple[Any, ...]
    """`Tool`s and functions, not checked yet: an invalid one must not affect the others."""
    contracts: tuple[ToolContract, ...]
    groups: tuple[Group, ...]
    skill_folders: tuple[str, ...]
    config: tuple[ConfigField, ...]
    middleware: tuple[ScopedMiddleware, ...]
    sections: tuple[str, ...]
    providers: tuple[Provider, ...]
    commands: tuple[Any, ...]
    offers: tuple[McpPrompt | McpResource, ...]


def merge_answers(
    contribution: PluginContribution, answers: HookAnswers, limits: Limits
) -> PluginContribution:
    """Add the hooks' answers to a contribution; config fields of the manifest take precedence."""
    keys = {item.key for item in contribution.config}
    lifecycle = Lifecycle(contribution.name, answers.hooks, limits.hook)
    return replace(
        contribution,
        skills=tuple(dict.fromkeys((*contribution.skills, *answers.skill_folders))),
        config=(*contribution.config, *(item for item in answers.config if item.key not in keys)),
        middleware=answers.middleware,
        sections=answers.sections,
        providers=answers.providers,
        commands=answers.commands,
        offers=answers.offers,
        lifecycle=lifecycle if lifecycle.is_needed else None,
    )


def call_hooks(*modules: Any) -> HookAnswers:
    """Call the hooks of one plugin that return its parts.

    Raises `HookError`, and whatever the plugin raises. Each plugin has its own manager: an old
    version can be freed, and an error of one plugin does not affect another.
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
        middleware=tuple(
            map(_middleware, _all(hook.satchel_middleware, (ScopedMiddleware, Callable)))
        ),
        sections=tuple(map(_section, _all(hook.satchel_prompt_sections, (str,)))),
        providers=_providers(_all(hook.satchel_providers)),
        commands=tuple(map(_command, _all(hook.satchel_commands))),
        offers=tuple(_all(hook.satchel_mcp, (McpPrompt, McpResource))),
    )


class _Manager(pluggy.PluginManager):
    """Registers a function once, even if several modules of a plugin contain it."""

    def __init__(self, project: str) -> None:
        super().__init__(project)
        self._functions: list[object] = []

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> pluggy.HookimplOpts | None:
        """Return the hook options of a function, or `None` if it implements no hook."""
        options = super().parse_hookimpl_opts(plugin, name)
        if options is not None:
            function = getattr(plugin, name)
            if any(function is other for other in self._functions):
                return None
            self._functions.append(function)
        return options


def _require_marked(module: Any) -> None:
    """Refuse a function with the name of a hook that lacks the marker: it would not be called."""
    for name in vars(hookspecs):
        function = vars(module).get(name) if name.startswith("satchel_") else None
        if inspect.isfunction(function) and not hasattr(function, f"{hookspecs.PROJECT}_impl"):
            raise HookError(f"{name} is not marked with satchel.hookimpl")


def _folder(path: str | os.PathLike[str]) -> str:
    folder = os.fspath(path)
    if not isinstance(folder, str) or not os.path.isabs(folder):
        raise HookError(f"satchel_skill_folders returned a path that is not absolute: {folder!r}")
    return folder


def _group(group: Group) -> Group:
    """Check the fields of a group: its dataclass does not."""
    lists = (group.tools, group.skills, group.requires)
    if any(isinstance(items, str) for items in lists):
        raise HookError(f"satchel_groups returned a string instead of a list of names: {group!r}")
    tools, skills, requires = map(tuple, lists)
    texts = (group.name, group.description, group.notes, *tools, *skills, *requires)
    if not all(isinstance(text, str) for text in texts):
        raise HookError(
            f"satchel_groups returned a group with a field that is not a string: {group!r}"
        )
    if fault := plugin_name_fault(group.name):
        raise HookError(f"satchel_groups returned the name {group.name!r}, which {fault}")
    # A plain `Group`: a subclass could change its fields later.
    return Group(
        name=group.name,
        description=group.description,
        notes=group.notes,
        active=bool(group.active),
        tools=tools,
        skills=skills,
        requires=requires,
    )


def _fields(fields: Iterable[ConfigField]) -> tuple[ConfigField, ...]:
    fields = tuple(fields)
    for item in fields:
        if fault := field_fault(item):
            raise HookError(f"satchel_config_fields returned a field that {fault}: {item!r}")
    return _unique(fields, "key", "satchel_config_fields")


def _middleware(item: Any) -> ScopedMiddleware:
    try:
        return item if isinstance(item, ScopedMiddleware) else ScopedMiddleware(item)
    except DefinitionError as problem:
        raise HookError(f"satchel_middleware: {problem.message}; {problem.fix}") from None


def _section(text: str) -> str:
    if len(text) > _MAX_TEXT:
        raise HookError(f"satchel_prompt_sections returned a text of {len(text):,} characters")
    return text


def _providers(items: Iterable[Any]) -> tuple[Provider, ...]:
    providers = tuple(items)
    for item in providers:
        if fault := provider_fault(item):
            raise HookError(f"satchel_providers returned an invalid provider: {fault}")
    return _unique(providers, "name", "satchel_providers")


def _unique(items: Iterable[T], attribute: str, hook: str) -> tuple[T, ...]:
    """Return the items once each. Raises `HookError` for two that differ and have one name."""
    first: dict[str, T] = {}
    for item in items:
        name = getattr(item, attribute)
        if first.setdefault(name, item) is not item:
            raise HookError(f"{hook} returned two items named {name!r}")
    return tuple(first.values())


def _command(item: Any) -> Any:
    # Lazy: the library works without the command line.
    import click

    if not isinstance(item, click.Command) or not isinstance(item.name, str) or not item.name:
        raise HookError(
            "satchel_commands returned an object that is not a click command with a name"
        )
    return item


def _all(hook: pluggy.HookCaller, kinds: tuple[Any, ...] = (object,)) -> list[Any]:
    """Call a hook, and join the lists that its implementations return."""
    items: list[Any] = []
    for answer in hook():
        if inspect.iscoroutine(answer):
            answer.close()
            raise HookError(f"{hook.name} must not be a coroutine function")
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise HookError(f"{hook.name} must return a list, not {type(answer).__name__}")
        items += islice(answer, _MAX_ITEMS - len(items) + 1)
    if len(items) > _MAX_ITEMS:
        raise HookError(f"{hook.name} returned more than {_MAX_ITEMS:,} items")
    for item in items:
        if not isinstance(item, kinds):
            raise HookError(f"{hook.name} returned {type(item).__name__} among its items")
    return items
