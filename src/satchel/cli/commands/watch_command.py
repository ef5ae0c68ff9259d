"""`satchel watch`: what is loaded, and a line for every change until Ctrl-C."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Sources, View
from satchel.cli.console import Console
from satchel.cli.rendering import count, diagnostic_line, summary
from satchel.cli.serializer import KINDS, entries_of
from satchel.diagnostics import Diagnostic, Severity
from satchel.text import one_line

if TYPE_CHECKING:
    import satchel
    from satchel.catalog import Catalog, Change

    News = SimpleQueue["Change | None"]
    """The changes as they come; `None` asks to stop."""

# A change that touches no entry, such as a folder that went missing, wakes nobody.
_LOOK_UP_SECONDS = 0.5


@click.command("watch", cls=View)
def command(console: Console, sources: Sources, as_json: bool) -> None:
    """Print what is loaded, then a line for every change, until Ctrl-C.

    Plugins are imported, as they are in an application.
    """
    news: News = SimpleQueue()
    # Before the signals are taken over: a plugin that hangs at its import must not hold Ctrl-C up.
    try:
        app = sources.open(run_code=True, servers=True)
    except KeyboardInterrupt:
        return
    with _stopped_by_signals(news):
        # First the subscription, then the catalog: what comes between is known by its generation.
        app.subscribe(news.put)
        first = app.catalog
        (_loaded_as_json if as_json else _loaded_as_text)(app, first, console)
        summary(first, console)
        with app.watching():
            console.say(f"watching {_places(sources)}, Ctrl-C ends")
            write = _change_as_json if as_json else _change_as_text
            _follow(app, first, news, console, write)


@contextmanager
def _stopped_by_signals(news: "News") -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the watch, even where they were ignored before.

    A `SimpleQueue` may be put to from a signal handler; other queues may deadlock.
    """

    def stop(_signal: int, _frame: Any) -> None:
        news.put(None)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _follow(
    app: "satchel.Satchel",
    seen: "Catalog",
    news: "News",
    console: Console,
    write: "Callable[[Change, Console], None]",
) -> None:
    """Write the changes as they come; each trouble is told once, when it begins."""
    first = seen.generation
    while not console.is_gone:
        try:
            change = news.get(timeout=_LOOK_UP_SECONDS)
            if change is None:
                return
            if change.generation > first:
                write(change, console)
        except Empty:
            pass
        if (now := app.catalog) is not seen:
            for item in _new_trouble(seen, now):
                console.say(diagnostic_line(item))
            seen = now


def _new_trouble(before: "Catalog", now: "Catalog") -> Iterable[Diagnostic]:
    known = set(before.diagnostics)
    return (
        item for item in now.diagnostics if item not in known and item.severity is not Severity.INFO
    )


def _loaded_as_json(app: "satchel.Satchel", catalog: "Catalog", console: Console) -> None:
    # Lazy: `--help` needs no catalog.
    from satchel.catalog import loaded_events

    for change in loaded_events(catalog):
        _change_as_json(change, console)
    console.say(_size(app, catalog))


def _loaded_as_text(app: "satchel.Satchel", catalog: "Catalog", console: Console) -> None:
    for kind in KINDS:
        entries = entries_of(catalog, kind)
        served = [entry.name for entry in entries if entry.is_served]
        others = [f"{entry.name} ({entry.state})" for entry in entries if not entry.is_served]
        if names := [*served, *others]:
            title = console.paint(f"loaded {count(len(served), kind)}:", bold=True)
            console.out(f"{title} {one_line(', '.join(names))}")
    console.out(_size(app, catalog))


def _size(app: "satchel.Satchel", catalog: "Catalog") -> str:
    characters = count(len(app.session().prompt()), "character")
    return f"prompt {characters}, {count(len(catalog.tools), 'tool')}"


def _change_as_json(change: "Change", console: Console) -> None:
    console.json_line(change.as_dict())


_COLOURS = {
    "added": "green",
    "changed": "cyan",
    "removed": "magenta",
    "stale": "yellow",
    "recovered": "green",
}


def _change_as_text(change: "Change", console: Console) -> None:
    event = console.paint(change.event, fg=_COLOURS.get(change.event))
    what = one_line(f"{change.kind} {change.name} ({change.source}) {change.message}")
    console.out(f"{time.strftime('%H:%M:%S')} {event} {what}")


def _places(sources: Sources) -> str:
    """Name the folders that are watched, as the user wrote them."""
    named = (*sources.skills, *sources.plugins)
    return one_line(", ".join(named)) if named else "the well-known places"
