"""Write the problems that appear while a command runs to stderr."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from satchel.cli.console import Console
from satchel.cli.rendering import problem_lines
from satchel.cli.served_report import LEFT_OUT, hidden_groups, served_by_source
from satchel.diagnostics import Severity
from satchel.reports.doctor_cases import known_problems
from satchel.watch_thread import calling_on_catalog

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.diagnostics import Diagnostic
    from satchel.mcp.served_selection import ServedSelection
    from satchel.satchel import Satchel


class ProblemWriter:
    """Writes the new problems of each catalog to stderr.

    Warnings of one code are written as one, except for the codes `one_by_one`.
    """

    def __init__(
        self,
        console: Console,
        earlier: "Mapping[Diagnostic, str]",
        one_by_one: Collection[str] = (),
    ) -> None:
        self._console, self._earlier, self._one_by_one = console, earlier, one_by_one

    def write(self, catalog: "Catalog") -> None:
        """Write the problems that the catalog before did not have."""
        reported = set(map(_identity, self._earlier))
        new: dict[tuple[str, ...], Diagnostic] = {}
        for item in catalog.diagnostics:
            # Skip `last-good`: the problem that caused it is in the catalog, too.
            is_problem = item.severity is not Severity.INFO and item.code != "last-good"
            if is_problem and (identity := _identity(item)) not in reported:
                new.setdefault(identity, item)
        self._earlier = known_problems(self._earlier, catalog)
        for line in problem_lines(new.values(), self._one_by_one):
            self._console.say(line)


def _identity(item: "Diagnostic") -> tuple[str, ...]:
    return item.code, item.where.path, item.message


class LateProblems:
    """Writes the problems that are new since the catalog `reported` to stderr.

    With a `selection`, also writes which sources are served now and which groups are not.
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
        self._problems = ProblemWriter(console, known_problems({}, reported), LEFT_OUT)
        self._groups = set(self._hidden_groups())
        self._served = self._served_by_source()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write what is new in each catalog while the block runs."""
        following = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            following.cancel()

    async def _follow(self) -> None:
        is_new = asyncio.Event()
        with calling_on_catalog(self._app.subscribe_catalogs, is_new.set):
            while True:
                await asyncio.to_thread(self.write)
                await is_new.wait()
                is_new.clear()

    def write(self) -> None:
        """Write what is new in the newest catalog."""
        catalog = self._app.catalog
        if catalog is self._catalog:
            return
        self._catalog = catalog
        served, self._served = self._served, self._served_by_source()
        for source in self._served.keys() - served.keys():
            self._console.say(f"served now: {self._served[source]}")
        self._problems.write(catalog)
        for name, line in self._hidden_groups().items():
            if name not in self._groups:
                self._groups.add(name)
                self._console.say(line)

    def _served_by_source(self) -> dict[str, str]:
        return served_by_source(self._catalog, self._selection) if self._selection else {}

    def _hidden_groups(self) -> dict[str, str]:
        return hidden_groups(self._catalog, self._selection) if self._selection else {}
