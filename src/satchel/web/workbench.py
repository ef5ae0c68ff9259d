"""The state of `satchel dev`, shared by its pages."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from threading import Lock
from typing import Any, TypeVar

from satchel.catalog.catalog import Catalog
from satchel.diagnostics import Diagnostic, Severity
from satchel.errors import NotFoundError
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses
from satchel.reports.short_texts import location_text
from satchel.satchel import Satchel
from satchel.search.search_documents import documents_of
from satchel.search.search_index import SearchHit, SearchIndex
from satchel.session.session import Session
from satchel.text import shorten
from satchel.watch_thread import calling_on_catalog
from satchel.web.call_records import CallRecords
from satchel.web.conversation import Conversation
from satchel.web.event_stream import EventStream
from satchel.web.server_logins import ServerLogins
from satchel.web.timeline import Timeline

T = TypeVar("T")

_SETTLE_SECONDS = 0.02
_MOST_CONVERSATIONS = 20
_MOST_PROMPTS = 50
_LONGEST_PROBLEM = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DevOptions:
    """What the user chose on the command line."""

    read_only: bool = False
    editor: str = "vscode://file{path}:{line}:{column}"
    """The address that opens an editor."""
    source_options: tuple[str, ...] = ()
    """The options that name the sources, for commands that a page shows."""
    sources: Mapping[str, Any] = field(default_factory=dict)
    """`Satchel`'s keyword arguments for these sources; empty values are omitted."""


class Workbench:
    """One `Satchel` with all that its pages show beside the catalog."""

    def __init__(self, app: Satchel, options: DevOptions) -> None:
        self.app, self.options = app, options
        self.prompts = deque([_prompt_of(app)], maxlen=_MOST_PROMPTS)
        """Prompts of new sessions, each after the generation that made it differ."""
        self.calls = CallRecords()
        self.stream = EventStream(self._state, on_reader=lambda: self._soon(self._begin_index))
        self.timeline = Timeline(self.wake)
        self.logins = ServerLogins(self.wake)
        self.conversations: dict[int, Conversation] = {}
        self.running: dict[str, Session] = {}
        """The sessions of running calls, by the id of the call."""
        self._index, self._index_lock = SearchIndex(), Lock()
        self._indexed: Catalog | None = None
        self._wants_index = False
        self._indexing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._last = app.catalog
        self._errors: tuple[Diagnostic, ...] = ()
        self._newest_error: Diagnostic | None = None
        self._judged: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The newest catalog."""
        return self.app.catalog

    def derived(self, key: str, make: Callable[[], T]) -> T:
        """Return what `make` makes of the newest catalog; it is made once for each catalog."""
        return self.app.catalog_cache.get_or_make(("web", key), make)

    def newest_problem(self) -> str:
        """Return where the error is that came last, and its message, or `""`."""
        catalog = self.catalog
        if catalog is not self._judged:
            errors = tuple(item for item in catalog.diagnostics if item.severity is Severity.ERROR)
            before = {*self._errors}
            new = [item for item in errors if item not in before]
            if new or self._newest_error not in errors:
                self._newest_error = next(iter(new or errors), None)
            self._judged, self._errors = catalog, errors
        item = self._newest_error
        return f"{location_text(item)}: {shorten(item.message, _LONGEST_PROBLEM)}" if item else ""

    def search(self, words: str, kind: str | None = None, limit: int = 10) -> list[SearchHit]:
        """Find tools and skills as a model does; any thread may call this."""
        with self._index_lock:
            catalog = self.catalog
            if self._indexed is not catalog:
                self._index.bring_up_to_date(documents_of(catalog))
                self._indexed = catalog
        return self._index.search(words, kind, limit)

    def search_now(self, words: str, limit: int = 10) -> list[SearchHit] | None:
        """Find as `search` does; `None` while the first index is made.

        The pages are notified when it is there.
        """
        if self._loop is None or self._indexed is not None:
            return self.search(words, limit=limit)
        self._wants_index = True
        self._soon(self._begin_index)
        return None

    def conversation(self, number: int) -> Conversation:
        """Return a conversation; the first one begins by itself. Raises `NotFoundError`."""
        if not self.conversations:
            self.new_conversation()
        if number not in self.conversations:
            numbers = [str(one) for one in self.conversations]
            raise NotFoundError("conversation", str(number), near_misses(str(number), numbers))
        return self.conversations[number]

    def new_conversation(self) -> Conversation:
        """Begin a conversation; the oldest is forgotten if there are many."""
        number = max(self.conversations, default=0) + 1
        while len(self.conversations) >= _MOST_CONVERSATIONS:
            del self.conversations[min(self.conversations)]
        conversation = Conversation(number, self.app.session())
        self.conversations[number] = conversation
        return conversation

    def wake(self) -> None:
        """Notify the pages soon that something changed; any thread may call this."""
        self._soon(self._woken.set)

    def _soon(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(function)

    async def follow(self) -> None:
        """Watch the sources, and notify the pages of each change, until it is cancelled."""
        self._loop = asyncio.get_running_loop()
        undo_record = self.app.register_middleware(self.timeline.record)
        undo_listener = self.app.subscribe(self.timeline.add_change)
        try:
            with calling_on_catalog(self.app.subscribe_catalogs, self._woken.set):
                async with self.app.watch():
                    while True:
                        await self._woken.wait()
                        # The changes of one catalog come one by one.
                        await asyncio.sleep(_SETTLE_SECONDS)
                        self._woken.clear()
                        await asyncio.to_thread(self._take)
                        self.stream.publish()
        finally:
            undo_listener()
            undo_record()
            if self._indexing is not None:
                self._indexing.cancel()
            self.logins.close()
            self.stream.close()

    def _begin_index(self) -> None:
        """Make the search index in the background, unless that has begun."""
        if self._indexing is None:
            self._indexing = asyncio.create_task(self._make_index())

    async def _make_index(self) -> None:
        await asyncio.to_thread(self.search, "a")
        if self._wants_index:  # a page shows that its search waits for it
            self.wake()

    def _take(self) -> None:
        catalog = self.catalog
        if catalog is not self._last:
            self._last = catalog
            prompt = _prompt_of(self.app)
            if self.prompts[-1][1] != prompt[1]:
                self.prompts.append(prompt)

    def _state(self) -> dict[str, Any]:
        catalog = self.catalog
        counts = self.derived("counts", lambda: problem_counts(catalog))
        return {"generation": catalog.generation, **counts}


def _prompt_of(app: Satchel) -> tuple[int, str]:
    step = app.session().step()
    return step.generation, step.prompt()


def problem_counts(catalog: Catalog) -> dict[str, int]:
    """Return how many errors and warnings a catalog has."""
    severities = [item.severity for item in catalog.diagnostics]
    return {
        "errors": severities.count(Severity.ERROR),
        "warnings": severities.count(Severity.WARNING),
    }
