"""The interface of providers, and what they contribute."""

import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from satchel.catalog.catalog_entries import HOST, Group
from satchel.diagnostics import Diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.names import plugin_name_fault
from satchel.providers.skill import Skill
from satchel.sources.search_roots import Precedence
from satchel.tools import Tool

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """All that a provider offers now; what is missing here is removed.

    `skills` are `Skill`s, or paths of skill folders or of folders of them. `plugins` are paths of
    plugin folders or of folders of them. Both are watched like folders that the application names.
    Return the same tool object as long as a tool does not change. `precedence` says who wins if
    another source has an equal name.
    """

    skills: Iterable[Skill | PathLike] = ()
    plugins: Iterable[PathLike] = ()
    tools: Iterable[Tool | Callable[..., Any]] = ()
    groups: Iterable[Group] = ()
    diagnostics: Iterable[Diagnostic] = ()
    precedence: Precedence = Precedence.EXPLICIT


class Provider(Protocol):
    """A source of skills, plugins, tools and groups; subclassing it is not necessary."""

    name: str
    """Unique; it is the source of what the provider contributes, as in `name:skill`."""

    @property
    def watch(self) -> PathLike | Iterable[PathLike]:
        """Return files and folders; a change of one means that the provider is asked again.

        A folder counts with all that is below it. Without any, it is asked by `refresh`, and when
        a watch compares everything.
        """
        return ()

    def contribute(self, last: Contribution | None, changed: frozenset[str] | None) -> Contribution:
        """Return what it offers now; it may be a coroutine function.

        `last` is what it contributed before, and `changed` the paths below `watch` that may have
        changed, `None` for everything. It is called in a thread of its own, and never twice at a
        time. If it raises, takes longer than `Limits.provider`, or returns something else, its
        last contribution stays. It must not call the `Satchel` that asks.
        """
        ...


def provider_fault(provider: Any) -> str:
    """Return why something cannot be a provider, or `""`."""
    name = getattr(provider, "name", None)
    if isinstance(provider, type):
        return f"{provider.__name__} is a class; make an instance of it"
    if not callable(getattr(provider, "contribute", None)):
        return f"{type(provider).__name__} has no method contribute"
    if not isinstance(name, str):
        return "its name is not a string"
    if name == HOST:
        return f"the name {HOST!r} stands for the application"
    return f"its name {name!r} {fault}" if (fault := plugin_name_fault(name)) else ""
