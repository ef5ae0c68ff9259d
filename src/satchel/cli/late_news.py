"""Write the problems that appear while a command runs to stderr."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from satchel.cli.console import Console
from satchel.cli.rendering import diagnostic_line
from satchel.cli.served_report import hidden_groups, is_left_out
from satchel.diagnostics import Severity
from satchel.reports.doctor_cases import known_problems
from satchel.reports.short_texts import count, worst_first
from satchel.watch_thread import calling_on_catalog

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.diagnostics import Diagnostic
    from satchel.mcp.served_selection import ServedSelection
    from satchel.satchel import Satchel


class ProblemWriter:
    """Writes the new problems of each catalog to stderr: errors in full, then alike warnings."""

    def __init__(
        self,
        console: Console,
        is_reported: "Callable[[Diagnostic], bool]",
        earlier: "Mapping[Diagnostic, str]",
    ) -> None:
        self._console, self._is_reported, self._known = console, is_reported, earlier

    def write(self, catalog: "Catalog") -> None:
        """Write the problems that the catalog before did not have."""
        known = {(item.code, item.where.path, item.message) for item in self._known}
        groups: dict[tuple[str, ...], list[Diagnostic]] = {}
        for item in worst_first(catalog.diagnostics):
            problem = (item.code, item.where.path, item.message)
            if problem in known or not self._is_reported(item):
                continue
            known.add(problem)
            is_error = item.severity is Severity.ERROR
            groups.setdefault(problem if is_error else (item.code,), []).append(item)
        self._known = known_problems(self._known, catalog)
        for first, *others in groups.values():
            self._console.say(diagnostic_line(first))
            if others:
                places = {item.where.path for item in others} - {first.where.path}
                at = f" at {count(len(places), 'other place')}" if places else " of this place"
                self._console.say(f"  and {count(len(others), 'more warning')} [{first.code}]{at}")


class LateNews:
    """Writes the problems since a catalog to stderr, each once while it stays.

    With a selection, also the groups that are not served.
    """

    def __init__(
        self,
        app: "Satchel",
        reported: "Catalog",
        console: Console,
        selection: "ServedSelection | None" = None,
    ) -> None:
        self._app, self._selection, self._console = app, selection, console
        self._catalog = reported
        self._problems = ProblemWriter(console, is_left_out, known_problems({}, reported))
        self._groups = set(self._hidden_groups())

    async def follow(self) -> None:
        """Write the news of each catalog, until it is cancelled."""
        has_news = asyncio.Event()
        with calling_on_catalog(self._app.subscribe_catalogs, has_news.set):
            while True:
                await asyncio.to_thread(self.write)
                await has_news.wait()
                has_news.clear()

    def write(self) -> None:
        """Write the news of the newest catalog."""
        catalog = self._app.catalog
        if catalog is self._catalog:
            return
        self._catalog = catalog
        self._problems.write(catalog)
        for name, line in self._hidden_groups().items():
            if name not in self._groups:
                self._groups.add(name)
                self._console.say(line)

    def _hidden_groups(self) -> dict[str, str]:
        return hidden_groups(self._catalog, self._selection) if self._selection else {}
