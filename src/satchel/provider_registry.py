"""The providers of one satchel: ask each in a thread of its own, and keep its last contribution."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from satchel.catalog.catalog_entries import HOST
from satchel.errors import ConflictError, DefinitionError, SatchelError
from satchel.files.file_reader import StampedPath, stamped, touches
from satchel.importing.guarded_work import GuardedWork
from satchel.names import require_known
from satchel.settings import Limits
from satchel.sources.search_roots import full_path
from satchel.text import one_line, shorten

if TYPE_CHECKING:
    from satchel.providers.provided import Provided
    from satchel.providers.provider import Contribution, Provider

_RANK = 500_000_000
"""The rank of the first provider: after the host and all folders of equal precedence."""
_LONGEST_MESSAGE = 500


class ProviderRegistry:
    """The providers of the host and of its plugins, in the order in which they came.

    `on_change` is called in a thread when an answer came too late for the pass that asked. The
    satchel's lock protects it.
    """

    def __init__(self, limits: Limits, on_change: Callable[[], None]) -> None:
        self._limits, self._on_change = limits, on_change
        self._states: dict[tuple[str, str], _ProviderState] = {}
        self._ranks = count(_RANK)

    def add(self, provider: Provider) -> None:
        """Add a provider of the host.

        Raises `DefinitionError` if it is invalid, and `ConflictError` for a name that is taken.
        """
        from satchel.providers.provider import provider_fault  # lazy: needed only with providers

        if fault := provider_fault(provider):
            raise DefinitionError(f"this is not a provider: {fault}")
        if (HOST, provider.name) in self._states:
            raise ConflictError(
                f"a provider {provider.name!r} was added already",
                fix="remove it first, or use another name",
            )
        self._add(HOST, provider, {})

    def remove(self, names: Iterable[str]) -> None:
        """Remove providers of the host. Raises `NotFoundError`, and then removes none."""
        names, own = tuple(names), [name for owner, name in self._states if owner == HOST]
        for name in names:
            require_known("provider", name, own)
        for name in names:
            del self._states[HOST, name]

    def update(self, offered: Iterable[tuple[str, Provider, Mapping[str, Any]]]) -> bool:
        """Keep exactly the providers that plugins offer; return whether one is new or gone.

        Each comes with the name of its plugin, and with the values that no message may show. A new
        version of a provider begins with the last good contribution of the old one.
        """
        current = {
            (plugin, offered_provider.name): (offered_provider, values)
            for plugin, offered_provider, values in offered
        }
        gone = [key for key in self._states if key[0] != HOST and key not in current]
        for key in gone:
            del self._states[key]
        new = [
            key
            for key, (provider, _) in current.items()
            if key not in self._states or self._states[key].provider is not provider
        ]
        for key in new:
            before = self._states.pop(key, None)
            self._add(key[0], *current[key], before.good if before else None)
        return bool(gone or new)

    def _add(
        self,
        owner: str,
        provider: Provider,
        secrets: Mapping[str, Any],
        last: Provided | None = None,
    ) -> None:
        from satchel.providers.provided import nothing_provided  # lazy: only with providers

        last = last or nothing_provided(provider.name, owner, next(self._ranks))
        self._states[owner, provider.name] = _ProviderState(
            provider, secrets, last, self._limits, self._on_change
        )

    def require(self, names: Iterable[str]) -> None:
        """Raise `NotFoundError`, with the near misses, if there is no such provider."""
        for name in names:
            require_known("provider", name, [provider_name for _, provider_name in self._states])

    def ask(
        self, changed: frozenset[str] | None, names: Iterable[str], seconds: float
    ) -> tuple[Provided, ...]:
        """Ask the providers that a change concerns, all at once; return what each provides now.

        `changed` are paths, `None` for everything; `names` are asked in any case. Answers
        that take longer than `seconds` come with a later pass, which does not wait for them.
        """
        asked = set(names)
        for (_, name), state in self._states.items():
            is_concerned = name in names or state.is_concerned(changed)
            if is_concerned and state.begin(None if name in names else changed):
                asked.add(name)
        deadline = time.monotonic() + min(seconds, self._limits.provider)
        for (_, name), state in self._states.items():
            state.collect(deadline - time.monotonic() if name in asked else 0)
        return tuple(replace(it.now, watched=it.stamps) for it in self._states.values())


class _ProviderState:
    """One provider, and what it contributed last."""

    def __init__(
        self,
        provider: Provider,
        secrets: Mapping[str, Any],
        last: Provided,
        limits: Limits,
        on_change: Callable[[], None],
    ) -> None:
        self.provider, self._secrets, self._limits = provider, secrets, limits
        self._on_change = on_change
        self.good = self.now = last
        self.stamps: tuple[StampedPath, ...] = ()
        self._question: _Question | None = None
        self._missed: set[str] | None = set()
        self._is_new, self._answers = True, 0

    def is_concerned(self, changed: frozenset[str] | None) -> bool:
        """Return whether it must be asked because of a change."""
        return (
            self._is_new
            or changed is None
            or any(touches(changed, path) for path, _ in self.stamps)
        )

    def begin(self, changed: frozenset[str] | None) -> bool:
        """Ask it, unless it has not answered yet: then ask it after that, and return `False`."""
        if self._question is not None:
            self._missed = (
                None if changed is None or self._missed is None else self._missed | changed
            )
            return False
        if self._is_new:
            changed = None
        self._is_new, self._missed = False, set()
        self._answers += 1
        number = self._answers

        def contribute() -> Provided:
            from satchel.providers.provided import take  # lazy: needed only with providers

            # Stamped first, also if the answer fails: only a later change is a new one.
            self.stamps = ()
            watch = getattr(self.provider, "watch", ())
            paths = [watch] if isinstance(watch, str | os.PathLike) else watch
            self.stamps = stamped(map(full_path, paths))
            answer = self.provider.contribute(self.good.contribution, changed)
            if inspect.isawaitable(answer):
                import asyncio

                answer = asyncio.run(_awaited(answer))
            return take(answer, self.good, self._limits, number)

        self._question = _Question(contribute, self._on_change)
        return True

    def collect(self, seconds: float) -> None:
        """Take the answer if it comes within this time."""
        question = self._question
        if question is None:
            return
        seconds = min(seconds, self._limits.provider - question.age)
        if not question.is_answered_within(max(seconds, 0)):
            if question.age > self._limits.provider:
                self._fail(f"no answer within {self._limits.provider:g} s (limit provider)")
            return
        self._question = None
        try:
            self.good = self.now = question.result()
        except SatchelError as problem:
            self._fail(problem.message, problem.fix)
        except BaseException as problem:
            from satchel.importing.code_guard import describe_error  # lazy: needed only by an error

            self._fail(describe_error(problem).message)
        if self._missed is None or self._missed:
            self.begin(None if self._missed is None else frozenset(self._missed))
            self.collect(0)  # an answer that comes later is news

    def _fail(self, message: str, fix: str = "") -> None:
        # lazy: both are needed only by an error
        from satchel.providers.provided import failed
        from satchel.runtime.redaction import redacted

        message, fix = (
            shorten(one_line(redacted(text, self._secrets)), _LONGEST_MESSAGE)
            for text in (message, fix)
        )
        now = failed(self.good, message, fix)
        # The same object for the same failure: then nothing changed.
        self.now = self.now if self.now == now else now


class _Question:
    """A question to a provider, answered in a thread of its own."""

    def __init__(self, contribute: Callable[[], Provided], on_change: Callable[[], None]) -> None:
        self._started, self._is_late, self._on_change = time.monotonic(), False, on_change
        self._work = GuardedWork(contribute, self._on_end)
        self.result = self._work.result

    @property
    def age(self) -> float:
        """How long ago it was asked, in seconds."""
        return time.monotonic() - self._started

    def is_answered_within(self, seconds: float) -> bool:
        """Return whether the answer comes within this time; a later one calls `on_change`."""
        if self._work.is_done_within(seconds):
            return True
        self._is_late = True
        # It may have ended between the two lines above, and found that it was not late.
        return self._work.is_done_within(0)

    def _on_end(self) -> None:
        if self._is_late:
            self._on_change()


async def _awaited(answer: Awaitable[Contribution]) -> Contribution:
    return await answer
