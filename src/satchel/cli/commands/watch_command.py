"""`satchel watch`: print what is loaded, then a line for every change until Ctrl-C."""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from satchel.catalog.catalog_entries import Status
from satchel.cli.base_command import CatalogCommand, Sources, is_said_once
from satchel.cli.console import Console
from satchel.cli.late_news import ProblemWriter
from satchel.diagnostics import Severity
from satchel.reports.listing_report import listing_report
from satchel.reports.serializer import KINDS, entries_of
from satchel.reports.short_texts import count, status_label, with_short_paths
from satchel.text import one_line

if TYPE_CHECKING:
    import satchel
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_changes import Change

    ChangeQueue = SimpleQueue["Change | None"]
    """The changes in their order; `None` ends the watch."""

# A catalog without a changed entry, such as for a missing folder, sends no change: poll for it.
_POLL_SECONDS = 0.5
_SETTLE_SECONDS = 0.2
_LONGEST_BATCH = 1.0
"""Seconds after which changes are written though more are coming."""


@click.command("watch", cls=CatalogCommand)
def command(console: Console, sources: Sources, as_json: bool) -> None:
    """Print what is loaded, then a line for every change, until Ctrl-C.

    Enabled plugins are imported, as in an application.
    """
    changes: ChangeQueue = SimpleQueue()
    # Before the signal handlers: Ctrl-C must work while a plugin hangs at its import.
    try:
        app = sources.open(run_code=True, servers=True)
    except KeyboardInterrupt:
        return
    with _stopped_by_signals(changes):
        # Subscribe first, so that no change is lost; earlier ones are skipped by their generation.
        app.subscribe(changes.put)
        first = app.catalog
        (_loaded_as_json if as_json else _loaded_as_text)(app, first, console)
        earlier = {item: "" for item in first.diagnostics if is_said_once(item)}
        problems = ProblemWriter(console, earlier)
        problems.write(first)
        form = _write_form(app, None, console)
        with app.watching():
            folders = one_line(", ".join((*sources.skills, *sources.plugins)))
            console.say(f"watching {folders or 'the conventional folders'}, press Ctrl-C to stop")
            write = _changes_as_json if as_json else _changes_as_text
            for batch, catalog in _batches(app, first.generation, changes, console):
                if batch:
                    write(batch, catalog, console)
                form = _write_form(app, form, console)
                problems.write(catalog)


@contextmanager
def _stopped_by_signals(changes: "ChangeQueue") -> Iterator[None]:
    """Let SIGINT and SIGTERM end the watch, even if the process was started with them ignored.

    Only a `SimpleQueue` is safe in a signal handler; other queues may deadlock.
    """

    def stop(_signal: int, _frame: Any) -> None:
        changes.put(None)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _batches(
    app: "satchel.Satchel", first: int, changes: "ChangeQueue", console: Console
) -> "Iterator[tuple[list[Change], Catalog]]":
    """Yield the changes after a generation that come together, with the newest catalog."""
    catalog = None
    while not console.is_gone and (batch := _next_batch(changes)) is not None:
        batch = [change for change in batch if change.generation > first]
        before, catalog = catalog, app.catalog
        if batch or catalog is not before:
            yield batch, catalog


def _next_batch(changes: "ChangeQueue") -> "list[Change] | None":
    """Wait for changes and return those that come together; `None` if the watch is to end."""
    batch: list[Change] = []
    try:
        change = changes.get(timeout=_POLL_SECONDS)
        latest = time.monotonic() + _LONGEST_BATCH
        while change is not None:
            batch.append(change)
            if time.monotonic() > latest:
                return batch
            # The changes of one catalog come one by one, but within microseconds.
            change = changes.get(timeout=_SETTLE_SECONDS)
    except Empty:
        return batch
    # What came before the end is still written.
    if batch:
        changes.put(None)
        return batch
    return None


def _without_reasons(batch: "Iterable[Change]", catalog: "Catalog") -> "list[Change]":
    """Leave the reason out of changes whose diagnostic is written in full below them."""
    messages = [item.message for item in catalog.diagnostics if item.severity is not Severity.INFO]
    return [
        replace(change, message=_without_state(change))
        if any(change.message.endswith(f": {message}") for message in messages)
        else change
        for change in batch
    ]


def _without_state(change: "Change") -> str:
    """Return the state at the start of a reason, unless the event has the same name."""
    state = change.message.partition(": ")[0]
    return "" if state == change.event else state


def _form(app: "satchel.Satchel") -> object:
    """Return the form of the skill listing in the prompt, `None` without skills."""
    listing = app.session().step().skill_listing
    return (listing.form, listing.cut_at) if listing.total else None


def _write_form(app: "satchel.Satchel", last: object, console: Console) -> object:
    """Say how skills are listed in the prompt, if that changed since `last`."""
    form = _form(app)
    if form not in {None, last}:
        console.say(listing_report(app.session()))
    return form


def _loaded_as_json(app: "satchel.Satchel", catalog: "Catalog", console: Console) -> None:
    # Lazy: not needed for `--help`.
    from satchel.catalog.catalog_changes import loaded_events

    _changes_as_json(loaded_events(catalog), catalog, console)
    console.say(_size(app, catalog))


def _loaded_as_text(app: "satchel.Satchel", catalog: "Catalog", console: Console) -> None:
    for kind in KINDS:
        entries = entries_of(catalog, kind)
        served = [entry.name for entry in entries if entry.is_served]
        unused = [
            f"{entry.name} ({status_label(entry)})" for entry in entries if not entry.is_served
        ]
        if not entries:
            continue
        title = f"loaded {count(len(served), kind)}"
        names = f": {', '.join(served)}" if served else ""
        names += f"; not loaded: {', '.join(unused)}" if unused else ""
        lines = console.fitting(title + one_line(names)).removeprefix(title)
        console.out(console.paint(title, bold=True) + lines)
    console.out(_size(app, catalog))


def _size(app: "satchel.Satchel", catalog: "Catalog") -> str:
    characters = count(len(app.session().prompt()), "character")
    return f"prompt {characters}, {count(len(catalog.tools), 'tool')}"


def _changes_as_json(changes: "Iterable[Change]", _catalog: "Catalog", console: Console) -> None:
    for change in changes:
        console.out(json.dumps(change.as_dict()))


_STATES = frozenset(map(str, Status))
_MOST_NAMES = 3
_COLOURS = {
    "added": "green",
    "changed": "cyan",
    "removed": "magenta",
    "stale": "yellow",
    "recovered": "green",
}


def _changes_as_text(changes: "Sequence[Change]", catalog: "Catalog", console: Console) -> None:
    """Write a line for each cause: a plugin's line names what happened to its parts as well."""
    changes = _without_reasons(changes, catalog)
    plugins = {change.name: change for change in changes if change.kind == "plugin"}
    causes = _causes(changes, plugins)
    parts: dict[str, list[Change]] = {}
    effects: dict[str, dict[str, list[Change]]] = {}
    alike: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        if change.kind != "plugin" and change.source in plugins:
            parts.setdefault(change.source, []).append(change)
        elif cause := causes.get((change.kind, change.name, change.source)):
            effects.setdefault(cause, {}).setdefault(change.source, []).append(change)
        else:
            key = (change.event, change.kind, change.source, change.message)
            alike.setdefault(key, []).append(change)
    for group in alike.values():
        names = [change.name for change in group if change.kind == "plugin"]
        own = [_as_part(part, group[0]) for name in names for part in parts.get(name, ())]
        rest = f" with {_listed(own, is_alone=len(group) == 1)}" if own else ""
        rest += "".join(_as_effect(it) for name in names for it in effects.get(name, {}).values())
        event = console.paint(group[0].event, fg=_COLOURS.get(group[0].event))
        text = with_short_paths(one_line(f"{_as_line(group)}{rest}"))
        console.out(f"{time.strftime('%H:%M:%S')} {event} {text}")


def _as_line(group: "Sequence[Change]") -> str:
    """Return what happened, without the event: several changes of one source are one line."""
    first, *others = group
    if not others:
        return f"{first.kind} {first.name} ({first.source}) {first.message}".rstrip()
    names = ", ".join(change.name for change in group[:_MOST_NAMES])
    if len(group) > _MOST_NAMES:
        names += f" and {len(group) - _MOST_NAMES} more"
    reason = f"; {first.message}" if first.message else ""
    return f"{count(len(group), first.kind)} ({first.source}): {names}{reason}"


def _listed(parts: "Iterable[tuple[str, str, str]]", *, is_alone: bool) -> str:
    """Return what happened to the parts of one plugin, or to how many parts of several."""
    if is_alone:
        return ", ".join(f"{kind} {name}{event}" for kind, name, event in parts)
    numbers = Counter((kind, event) for kind, _, event in parts)
    return ", ".join(f"{count(number, kind)}{event}" for (kind, event), number in numbers.items())


def _causes(
    changes: "Sequence[Change]", plugins: "Mapping[str, Change]"
) -> dict[tuple[str, str, str], str]:
    """Return the parts of other sources that changed only because a plugin did.

    They have the name of a part of the plugin, or are the group of such a part.
    """
    others = [change for change in changes if change.kind != "plugin"]
    owners = {(it.kind, it.name): it.source for it in others if it.source in plugins}
    others = [change for change in others if change.source not in plugins]
    by_source = {
        it.source: owners[it.kind, it.name] for it in others if (it.kind, it.name) in owners
    }
    return {
        (it.kind, it.name, it.source): by_source[it.source]
        for it in others
        if (it.kind, it.name) in owners or (it.kind == "group" and it.source in by_source)
    }


def _as_effect(changes: "Sequence[Change]") -> str:
    """Return what a change of a plugin did to the parts of another source."""
    parts: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        state = change.message.partition(":")[0]
        parts.setdefault((change.kind, state if state in _STATES else ""), []).append(change.name)
    texts = [
        f"{kind} {', '.join(names)}" + (f" ({state})" if state else "")
        for (kind, state), names in parts.items()
    ]
    return f"; so {changes[0].source} changed: {', '.join(texts)}"


def _as_part(change: "Change", plugin: "Change") -> tuple[str, str, str]:
    """Return a part's kind, name, and what happened to it, as far as it is not as its plugin."""
    state = change.message.partition(":")[0]
    event = state if state in _STATES else str(change.event)
    return change.kind, change.name, f" ({event})" if event != plugin.event else ""
