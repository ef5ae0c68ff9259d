"""`satchel watch`: print what is loaded, then a line for every change until Ctrl-C."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from satchel.catalog.catalog_entries import Status
from satchel.cli.base_command import CatalogCommand, Sources, is_said_once
from satchel.cli.console import Console
from satchel.cli.new_problems import ProblemWriter
from satchel.cli.signal_handling import run_until_stopped
from satchel.diagnostics import Severity
from satchel.reports.listing_report import listing_report
from satchel.reports.serializer import KINDS, entries_of
from satchel.reports.short_texts import count, status_label, with_short_paths
from satchel.text import one_line
from satchel.watch_thread import calling_on_catalog

if TYPE_CHECKING:
    import satchel
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_changes import Change

_SETTLE_SECONDS = 0.2
"""How long changes are collected, so that those of one cause are one line."""
_STATES = frozenset(map(str, Status))
_MOST_NAMES = 3
_COLOURS = {
    "added": "green",
    "changed": "cyan",
    "removed": "magenta",
    "stale": "yellow",
    "recovered": "green",
}


@click.command("watch", cls=CatalogCommand)
def command(console: Console, sources: Sources, as_json: bool) -> None:
    """Print what is loaded, then a line for every change, until Ctrl-C.

    Enabled plugins are imported, as in an application.
    """
    # Before the signal handlers: Ctrl-C must work while a plugin hangs at its import.
    try:
        app = sources.open(run_code=True, servers=True)
    except KeyboardInterrupt:
        return
    folders = one_line(", ".join((*sources.skills, *sources.plugins)))
    verb = "serving what is locked of" if sources.frozen else "watching"
    text = f"{verb} {folders or 'the conventional folders'}, press Ctrl-C to stop"
    run_until_stopped(_watch(app, console, text, as_json=as_json))


async def _watch(app: "satchel.Satchel", console: Console, text: str, *, as_json: bool) -> None:
    changes: deque[Change] = deque()
    is_new = asyncio.Event()
    # Subscribe first, so that no change is lost; earlier ones are skipped by their generation.
    app.subscribe(changes.append)
    with calling_on_catalog(app.subscribe_catalogs, is_new.set):
        first = app.catalog
        _write_loaded(app, first, console, as_json=as_json)
        problems = ProblemWriter(console, {it: "" for it in first.diagnostics if is_said_once(it)})
        problems.write(first)
        listing = _write_listing(app, None, console)
        async with app.watch():
            console.say(text)
            while not console.is_gone:
                await is_new.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
                is_new.clear()
                batch = [changes.popleft() for _ in range(len(changes))]
                batch = [change for change in batch if change.generation > first.generation]
                catalog = app.catalog
                if as_json:
                    _write_as_json(batch, console)
                else:
                    _write_as_text(batch, catalog, console)
                listing = _write_listing(app, listing, console)
                problems.write(catalog)


def _write_listing(app: "satchel.Satchel", last: object, console: Console) -> object:
    """Write how the prompt lists skills if that differs from `last`. Return the current form."""
    listing = app.session().step().skill_listing
    form = (listing.form, listing.cut_at) if listing.total else None
    if form not in {None, last}:
        console.say(listing_report(app.session()))
    return form


def _write_loaded(
    app: "satchel.Satchel", catalog: "Catalog", console: Console, *, as_json: bool
) -> None:
    size = f"prompt {count(len(app.session().prompt()), 'character')}, "
    size += count(len(catalog.tools), "tool")
    if as_json:
        from satchel.catalog.catalog_changes import loaded_events  # lazy: not for `--help`

        _write_as_json(loaded_events(catalog), console)
        console.say(size)
        return
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
    console.out(size)


def _write_as_json(changes: "Iterable[Change]", console: Console) -> None:
    for change in changes:
        console.out(json.dumps(change.as_dict()))


def _write_as_text(changes: "Sequence[Change]", catalog: "Catalog", console: Console) -> None:
    """Write a line for each cause: a plugin's line names what happened to its parts as well."""
    changes = _without_reasons(changes, catalog)
    plugins = {change.name: change for change in changes if change.kind == "plugin"}
    causes = _causes(changes, plugins)
    parts: dict[str, list[Change]] = {}
    effects: dict[str, dict[str, list[Change]]] = {}
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        if change.kind != "plugin" and change.source in plugins:
            parts.setdefault(change.source, []).append(change)
        elif cause := causes.get((change.kind, change.name, change.source)):
            effects.setdefault(cause, {}).setdefault(change.source, []).append(change)
        else:
            key = (change.event, change.kind, change.source, change.message)
            groups.setdefault(key, []).append(change)
    for group in groups.values():
        event, names = group[0].event, [change.name for change in group if change.kind == "plugin"]
        own = [part for name in names for part in parts.get(name, ())]
        rest = f" with {_parts(own, event, with_names=len(group) == 1)}" if own else ""
        affected = [item for name in names for item in effects.get(name, {}).items()]
        for source, others in affected:
            rest += f"; so {source} changed: {_parts(others, '')}"
        label = console.paint(event, fg=_COLOURS.get(event))
        text = with_short_paths(one_line(f"{_as_line(group)}{rest}"))
        console.out(f"{time.strftime('%H:%M:%S')} {label} {text}")


def _without_reasons(batch: "Iterable[Change]", catalog: "Catalog") -> "list[Change]":
    """Leave the reason out of changes whose diagnostic is written in full below them."""
    messages = [item.message for item in catalog.diagnostics if item.severity is not Severity.INFO]
    return [
        replace(change, message=_state_only(change))
        if any(change.message.endswith(f": {message}") for message in messages)
        else change
        for change in batch
    ]


def _state_only(change: "Change") -> str:
    """Return the state at the start of a reason, unless the event has the same name."""
    state = change.message.partition(": ")[0]
    return "" if state == change.event else state


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


def _causes(
    changes: "Sequence[Change]", plugins: "Mapping[str, Change]"
) -> dict[tuple[str, str, str], str]:
    """Return the plugin that caused the change, for each part of another source.

    Such a part has the name of a part of the plugin, or is the group of one that has.
    """
    parts = [change for change in changes if change.kind != "plugin"]
    owners = {(it.kind, it.name): it.source for it in parts if it.source in plugins}
    others = [change for change in parts if change.source not in plugins]
    by_source = {
        it.source: owners[it.kind, it.name] for it in others if (it.kind, it.name) in owners
    }
    return {
        (it.kind, it.name, it.source): by_source[it.source]
        for it in others
        if (it.kind, it.name) in owners or (it.kind == "group" and it.source in by_source)
    }


def _parts(changes: "Iterable[Change]", event: str, *, with_names: bool = True) -> str:
    """Return the names or numbers of parts, each with what happened to it if that is not `event`.

    With an empty `event`, a part has only its state, such as `stale`.
    """
    parts: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        state = change.message.partition(":")[0]
        suffix = state if state in _STATES else str(change.event) if event else ""
        key = change.kind, "" if suffix == event else f" ({suffix})"
        names = parts.setdefault(key, [])
        if change.name not in names:
            names.append(change.name)
    texts: list[str] = []
    for (kind, suffix), names in parts.items():
        units = [f"{kind} {name}" for name in names] if with_names else [count(len(names), kind)]
        texts += [f"{unit}{suffix}" for unit in units]
    return ", ".join(texts)
