"""`satchel lock`: write down what is loaded, and find what differs later."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources, SourcesCommand, require_at_most_one
from satchel.cli.console import Console
from satchel.cli.rendering import summary
from satchel.errors import SatchelError
from satchel.files.atomic_write import require_no_link_out, write_atomic
from satchel.formats.lock_file import (
    LOCK_FILE,
    SERVER_OFFERS,
    Lock,
    LockDifference,
    LockEntry,
    with_origins_of,
)
from satchel.loader.lock_entries import lock_places, offers_place
from satchel.loader.lock_guard import UNTRUSTED, lock_at, why_not_locked
from satchel.reports.short_texts import count

if TYPE_CHECKING:
    from satchel import Satchel

_PRUNE = "if that is meant, run 'satchel lock --prune'"
_PRUNE_UNCONNECTED = "if that is meant, run 'satchel lock --no-connect --prune'"


class LockCommand(SourcesCommand):
    """A command with sources, but without those options that read the lock file."""

    def options(self) -> list[click.Option]:
        """Return the options that select sources."""
        return [item for item in super().options() if item.name not in {"locked", "frozen"}]


@click.command("lock", cls=LockCommand)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something differs.")
@click.option("--diff", is_flag=True, help="Write nothing; print what differs.")
@click.option("--prune", is_flag=True, help="Also take out of the file what is not loaded now.")
@click.option(
    "--no-connect", is_flag=True,
    help="Import and start nothing; the tools of MCP servers stay as they are in the file.",
)  # fmt: skip
def command(
    console: Console, *, sources: Sources, check: bool, diff: bool, prune: bool, no_connect: bool
) -> int:
    """Write what is loaded to satchel.lock in the current folder.

    The file has the digest of each skill and plugin, the MCP servers with their tools, and the
    notes of groups. MCP servers are connected to list their tools. Nothing is taken out of a file
    that is there without --prune. Other commands compare with the file: --locked fails if anything
    differs, --frozen serves nothing else.
    """
    require_at_most_one({"check": check, "diff": diff, "prune": prune})
    is_reading = check or diff
    if not is_reading:
        require_no_link_out(LOCK_FILE)
    before = lock_at(LOCK_FILE) if os.path.lexists(LOCK_FILE) else None
    if is_reading and before is None:
        raise SatchelError("does not exist", where=LOCK_FILE, fix="run 'satchel lock'")
    app = sources.open(run_code=not no_connect, servers=not no_connect, writes_lock=True)
    now = app.lock_contents(LOCK_FILE)
    if before:
        now = _with_known(before, now, with_offers=no_connect)
    differences = before.differences(now) if before else ()
    origins = before.changed_origins(now) if before else ()
    _require_not_held(app)
    if not no_connect:
        _require_connected(app)
    _require_readable(now)
    loss = _loss(app, differences, _PRUNE_UNCONNECTED if no_connect else _PRUNE)
    _require_settings(app, unless=bool(loss) and not prune)
    for item in (*differences, *origins):
        (console.out if is_reading else console.say)(str(item))
    if is_reading:
        _say_number(console, differences, origins, is_written_next=not loss)
    if loss and diff:
        console.say(str(loss))
    elif loss and not prune:
        raise loss
    elif not is_reading:
        write_atomic(os.path.abspath(LOCK_FILE), now.text.encode())
        console.out(f"wrote {LOCK_FILE}: {_contents(now.entries.values()) or 'nothing is loaded'}")
        summary(app.catalog, console, ran_code=not no_connect)
    return 1 if check and differences else 0


def _say_number(
    console: Console,
    differences: Sequence[LockDifference],
    origins: Sequence[LockDifference],
    *,
    is_written_next: bool,
) -> None:
    text = count(len(differences), "difference")
    if origins:
        text += f" and {count(len(origins), 'changed source')}"
    if is_written_next and (differences or origins):
        text += "; after a review, run 'satchel lock'"
    console.say(text)


def _contents(entries: Iterable[LockEntry]) -> str:
    kinds = Counter(entry.kind for entry in entries)
    return ", ".join(count(number, kind) for kind, number in kinds.items())


def _with_known(before: Lock, now: Lock, *, with_offers: bool) -> Lock:
    """Return `now` with what the lock file has of the offers of its servers, and of origins."""
    if with_offers:
        servers = {offers_place(entry) for entry in now.entries.values() if entry.kind == "server"}
        offers = (entry for entry in before.entries.values() if entry.kind in SERVER_OFFERS)
        now = Lock([*now.entries.values(), *(it for it in offers if it.place in servers)])
    return with_origins_of(before, now)


def _require_not_held(app: "Satchel") -> None:
    """Raise `SatchelError` while code or a name is held: what would be locked is not what serves.

    Another machine has no record of names, so there the newcomer might have it.
    """
    for item in app.catalog.diagnostics:
        if item.code == "code-held":  # why was printed
            message = "cannot be locked while it is held"
        elif item.code in {"plugin-name-held", "tool-name-held"}:
            message = f"{item.message}, so nothing is locked until you choose"
        else:
            continue
        raise SatchelError(message, where=item.where.path, fix=item.fix)


def _require_settings(app: "Satchel", *, unless: bool) -> None:
    """Raise `SatchelError` while settings cannot be read, `unless` there is another error."""
    for item in () if unless else app.catalog.diagnostics:
        if item.code == "choices-unreadable":  # why was printed
            message = "cannot be read, so it is not known what to lock"
            raise SatchelError(message, where=item.where.path, fix="correct it")


def _loss(app: "Satchel", differences: Iterable[LockDifference], prune: str) -> SatchelError | None:
    """Return the error that the file would lose something, with the reason if it is known.

    `prune` says how to agree to it.
    """
    lost = [item for item in differences if item.is_loss]
    if not lost:
        return None
    gone = _contents(item.entry for item in lost if item.now is None)
    values = _contents(item.entry for item in lost if item.now is not None)
    parts = [gone, values and f"the configuration of {values}"]
    message = f"would lose {' and '.join(filter(None, parts))}; nothing is written"
    where, fix, places = LOCK_FILE, prune, lock_places(LOCK_FILE)
    if (reason := why_not_locked(app.catalog.diagnostics, differences, places)) is not None:
        where = reason.where.path
        fix = "; ".join(filter(None, (reason.fix.rstrip("."), prune)))
        because = "it is not trusted" if reason.code in UNTRUSTED else reason.message
        message = f"{because}, so {LOCK_FILE} {message}"  # want of trust was printed
    return SatchelError(message, where=where, fix=fix)


def _require_connected(app: "Satchel") -> None:
    """Raise `SatchelError` for a server whose tools are unknown, because it is down."""
    for plugin in app.catalog.all_plugins:
        if plugin.is_server and not plugin.is_served:
            reasons = "; ".join(item.message for item in plugin.diagnostics)
            fixes = dict.fromkeys(item.fix for item in plugin.diagnostics if item.fix)
            raise SatchelError(
                f"the tools of {plugin.name} cannot be listed: {reasons}",
                fix="; ".join((*fixes, "or disable it, or use --no-connect")),
            )


def _require_readable(now: Lock) -> None:
    for entry in now.entries.values():
        if not all(entry.served.values()):
            raise SatchelError(
                f"{entry} cannot be locked: {entry.problem or 'it cannot be read'}",
                fix="take what cannot be read out of its folder, or try again",
            )
