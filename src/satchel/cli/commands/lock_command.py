"""`satchel lock`: write down what is loaded, and find what differs later."""

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources, SourcesCommand, require_at_most_one
from satchel.cli.console import Console
from satchel.errors import SatchelError
from satchel.files.atomic_write import require_no_link_out, write_atomic
from satchel.formats.lock_file import LOCK_FILE, SERVER_OFFERS, Lock, LockDifference
from satchel.loader.lock_entries import offers_place
from satchel.loader.lock_guard import lock_at, why_not_locked
from satchel.reports.short_texts import count

if TYPE_CHECKING:
    from satchel import Satchel

_ELSE = f"name the folders that {LOCK_FILE} was made with, or delete it"


class LockCommand(SourcesCommand):
    """A command with sources, but without those options that read the lock file."""

    def options(self) -> list[click.Option]:
        """Return the options that select sources."""
        return [item for item in super().options() if item.name not in {"locked", "frozen"}]


@click.command("lock", cls=LockCommand)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if something differs.")
@click.option("--diff", is_flag=True, help="Write nothing; print what differs.")
@click.option(
    "--no-connect", is_flag=True,
    help="Import and start nothing; the tools of MCP servers stay as they are in the file.",
)  # fmt: skip
def command(
    console: Console, *, sources: Sources, check: bool, diff: bool, no_connect: bool
) -> int:
    """Write what is loaded to satchel.lock in the current folder.

    The file has the digest of each skill and plugin, the MCP servers with their tools, and the
    notes of groups. MCP servers are connected to list their tools. Other commands compare with the
    file: --locked fails if anything differs, --frozen serves nothing else.
    """
    require_at_most_one({"check": check, "diff": diff})
    is_reading = check or diff
    if not is_reading:
        require_no_link_out(LOCK_FILE)
    before = lock_at(LOCK_FILE) if os.path.lexists(LOCK_FILE) else None
    if is_reading and before is None:
        raise SatchelError("does not exist", where=LOCK_FILE, fix="run 'satchel lock'")
    app = sources.open(run_code=not no_connect, servers=not no_connect, writes_lock=True)
    now = app.lock_contents(LOCK_FILE)
    if no_connect:
        now = _with_offers_of(before, now)
    differences = before.differences(now) if before else ()
    _require_trusted(app, differences)
    if not no_connect:
        _require_connected(app)
    _require_readable(now)
    if is_reading:
        for item in differences:
            console.out(str(item))
        advice = "; after a review, run 'satchel lock'" if differences else ""
        console.say(count(len(differences), "difference") + advice)
        return 1 if check and differences else 0
    if before is not None:
        _require_something(before, now)
        for item in differences:
            console.say(str(item))
    write_atomic(os.path.abspath(LOCK_FILE), now.text.encode())
    console.out(f"wrote {LOCK_FILE}: {_contents(now) or 'nothing is loaded'}")
    return 0


def _contents(lock: Lock) -> str:
    kinds = Counter(entry.kind for entry in lock.entries.values())
    return ", ".join(count(number, kind) for kind, number in kinds.items())


def _require_something(before: Lock, now: Lock) -> None:
    """Raise `SatchelError` if an empty lock would replace a reviewed one."""
    if before.entries and not now.entries:
        message = f"has {_contents(before)}, but nothing is loaded now; nothing was written"
        raise SatchelError(message, where=LOCK_FILE, fix=_ELSE)


def _with_offers_of(before: Lock | None, now: Lock) -> Lock:
    """Return `now` with what the lock file has of the offers of its servers."""
    servers = {offers_place(entry) for entry in now.entries.values() if entry.kind == "server"}
    entries = before.entries.values() if before else ()
    kept = (entry for entry in entries if entry.kind in SERVER_OFFERS and entry.place in servers)
    return Lock([*now.entries.values(), *kept])


def _require_trusted(app: "Satchel", differences: Iterable[LockDifference]) -> None:
    """Raise `SatchelError` if a lock without something not trusted is not what was reviewed."""
    if (item := why_not_locked(app.catalog.diagnostics, differences)) is None:
        return
    message, fix = "cannot be locked while it is held", item.fix  # why was printed
    if item.code != "code-held":
        gone = Lock(it.before for it in differences if it.before and it.now is None)
        lost = f"{LOCK_FILE} would lose {_contents(gone)}"
        is_untrusted = item.code in {"project-untrusted", "code-untrusted"}
        if is_untrusted:  # which was printed
            message, fix = f"cannot be locked while it is not trusted: {lost}", f"{fix}; or {_ELSE}"
        else:
            message = f"{item.message}; so {lost}, and nothing is written"
    raise SatchelError(message, where=item.where.path, fix=fix)


def _require_connected(app: "Satchel") -> None:
    """Raise `SatchelError` for a server whose tools are unknown, because it is down."""
    for plugin in app.catalog.all_plugins:
        if plugin.is_server and not plugin.is_served:
            reasons = "; ".join(item.message for item in plugin.diagnostics)
            raise SatchelError(
                f"the tools of {plugin.name} cannot be listed: {reasons}",
                fix="start it, disable it, or use --no-connect",
            )


def _require_readable(now: Lock) -> None:
    for entry in now.entries.values():
        if not all(entry.served.values()):
            raise SatchelError(
                f"{entry} cannot be locked: {entry.problem or 'it cannot be read'}",
                fix="take what cannot be read out of its folder, or try again",
            )
