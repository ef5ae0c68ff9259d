"""`satchel trust`: show what a project would run, ask, and record the answer."""

import os
from collections.abc import Mapping

import click

from satchel.cli.base_command import Command, as_json, require_at_most_one, variable_option
from satchel.cli.console import Console
from satchel.cli.rendering import diagnostic_line, table
from satchel.cli.terminal import NOT_AGREED, Terminal
from satchel.cli.trust_report import diff_lines, print_inventory, shown_text, unused_variables
from satchel.configuration.projects import Project, TrustLevel
from satchel.diagnostics import Diagnostic, has_error
from satchel.errors import SatchelError
from satchel.files.compiled_cache import forget_compiled
from satchel.files.file_reader import reason_of
from satchel.reports.short_texts import count
from satchel.sources.search_roots import home_path
from satchel.trust.code_units import CodeUnit
from satchel.trust.project_inventory import ProjectInventory, read_inventory
from satchel.trust.trust_record import TrustRecord, TrustStore

_DATA = "data only: its skills, notes and descriptions; nothing is imported, started or connected"
_CODE = "data and code: as it is shown here; changed code waits until you trust it"
_EXTENTS = {TrustLevel.DATA: "data", TrustLevel.CODE: "data and code"}
_NO = "no: nothing of it is used"


@click.command("trust", cls=Command)
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(file_okay=False))
@click.option("--data", is_flag=True, help="Trust its data, without a question.")
@click.option("--code", is_flag=True, help="Trust its data and code, likewise.")
@variable_option
@click.option("--claude", is_flag=True, help="Count .claude/skills as a conventional folder.")
@click.option("--full", is_flag=True, help="Print all of its code as well, before the question.")
@click.option("--diff", is_flag=True, help="Print how its code changed since then.")
@click.option("--revoke", is_flag=True, help="Forget that DIR is trusted.")
@click.option("--list", "list_", is_flag=True, help="List all trusted projects.")
@as_json
def command(
    console: Console,
    *,
    folder: str,
    data: bool,
    code: bool,
    variables: tuple[str, ...],
    claude: bool,
    full: bool,
    diff: bool,
    revoke: bool,
    list_: bool,
    as_json: bool,
) -> int:
    """Show what the project in DIR asks for, and ask how far to trust it.

    Nothing of DIR is run. It shows the skills, plugins, code, servers and environment variables,
    and records your answer in your own state folder. Code that changes later waits until you trust
    it again. --diff prints the changes, and --full all of the code, with what is hidden in it
    written out. Without a terminal, and without --data or --code, the answer is no, and the exit
    code 3.
    """
    tasks = {"diff": diff, "revoke": revoke, "list": list_}
    require_at_most_one({"data": data, "code": code, **tasks})
    require_at_most_one({"full": full, **tasks})
    require_at_most_one({"data": data, "variable": variables, **tasks})
    require_at_most_one({"json": as_json, "full": full, "diff": diff, "revoke": revoke})
    store = TrustStore()
    if list_:
        return _list(store, console, folder, as_json=as_json)
    if revoke:
        was_trusted = store.revoke(folder)
        console.out(f"{'no longer' if was_trusted else 'was not'} trusted: {_shown(folder)}")
        return 0
    _require_readable(folder)
    reading = store.read(folder)
    for item in reading.diagnostics:
        console.say(diagnostic_line(item))
    inventory = read_inventory(Project(folder, claude=claude))
    if diff:
        return _print_diff(inventory, reading.record, console)
    level = _chosen_level(data=data, code=code)
    if as_json:
        level = level or TrustLevel.NONE  # a script is not asked
    else:
        print_inventory(inventory, console, with_code=full)
    _require_content(inventory, folder)
    if warning := unused_variables(variables, inventory.variables):
        console.warn(warning)
    kept = reading.record.variables if reading.record else ()
    record = _decide(console, store, inventory, level, (*kept, *variables))
    if as_json:
        now = record or reading.record or inventory.record(TrustLevel.NONE)
        console.json({**_as_object(now), "requested": _requested(inventory)})
    elif record is not None:
        _say_trusted(record, inventory, console)
    return NOT_AGREED if record is None else 0


def _require_readable(folder: str) -> None:
    try:
        os.scandir(folder).close()
    except FileNotFoundError:
        raise SatchelError("does not exist", where=folder) from None
    except OSError as problem:
        raise SatchelError(f"cannot be read: {reason_of(problem)}", where=folder) from None


def _require_content(inventory: ProjectInventory, folder: str) -> None:
    if inventory.is_empty:
        message = "has no skills, plugins or settings to trust"
        if has_error(inventory.diagnostics):
            message = "has nothing that can be read; correct what is named above"
        raise SatchelError(message, where=folder)


def _say_trusted(record: TrustRecord, inventory: ProjectInventory, console: Console) -> None:
    console.out(f"trusted ({_EXTENTS[record.level]}): {_shown(inventory.project.folder)}")
    if any(item.code == "code-held" for item in inventory.diagnostics):
        console.say("what cannot be compared, as said above, is not used")


def _chosen_level(*, data: bool, code: bool) -> TrustLevel | None:
    if code:
        return TrustLevel.CODE
    return TrustLevel.DATA if data else None


def _decide(
    console: Console,
    store: TrustStore,
    inventory: ProjectInventory,
    level: TrustLevel | None,
    variables: tuple[str, ...],
) -> TrustRecord | None:
    """Ask how far to trust a project unless an option says it; return the record of a yes."""
    terminal = Terminal(console)
    answer = level or _ask(terminal, inventory)
    if answer is TrustLevel.NONE:
        _refuse(console, store, inventory.project.folder)
        return None
    allowed = {*variables} & {*inventory.variables}
    if answer is TrustLevel.CODE:
        for name in inventory.variables:
            is_asked = level is None and name not in allowed
            if is_asked and terminal.agrees(f"May it use the variable {shown_text(name)}?"):
                allowed.add(name)
    record = inventory.record(answer, sorted(allowed))
    store.write(record)
    # Code of an earlier version with the same size and time, which Python takes for this one.
    forget_compiled(record.path)
    if answer is not TrustLevel.CODE:
        return record
    if allowed:
        names = ", ".join(sorted(allowed))
        console.say(f"it may use {names}; 'satchel trust --revoke' takes that back")
    if refused := sorted({*inventory.variables} - allowed):
        console.say(
            f"servers that use {', '.join(refused)} are left out (those with a default, only while "
            "it is set); --variable allows it"
        )
    return record


def _refuse(console: Console, store: TrustStore, folder: str) -> None:
    """Say that a project is not trusted; a no of the user also ends the trust it had."""
    if Terminal(console).is_there:
        was_trusted = store.revoke(folder)
        console.say(f"{'no longer' if was_trusted else 'not'} trusted: {_shown(folder)}")
        return
    if (before := store.read(folder).record) is not None:
        console.say(f"still trusted as before ({_EXTENTS[before.level]}): {_shown(folder)}")
    else:
        console.say(f"not trusted: {_shown(folder)}")
    console.say("there is no terminal to ask on; --data or --code trusts it")


def _ask(terminal: Terminal, inventory: ProjectInventory) -> TrustLevel:
    """Ask how far to trust a project; without a terminal the answer is no."""
    if not terminal.is_there:
        return TrustLevel.NONE
    levels = [(TrustLevel.DATA, _DATA), (TrustLevel.CODE, _CODE), (TrustLevel.NONE, _NO)]
    if not inventory.units:
        levels = [item for item in levels if item[0] is not TrustLevel.CODE]
    else:
        terminal.say("read the code with 'satchel trust --full', or look for lures: satchel scan")
    number = terminal.choice("How far do you trust it?", [text for _, text in levels])
    return levels[number][0]


def _print_diff(inventory: ProjectInventory, record: TrustRecord | None, console: Console) -> int:
    """Print the changes of the code since it was trusted; return 1 if some cannot be compared."""
    base = inventory.project.folder
    lines = diff_lines(record.units if record else {}, inventory.units, base)
    is_trusted = record is not None and record.level is TrustLevel.CODE
    if not is_trusted:
        console.say("its code is not trusted, so all of it is shown")
    for line in lines:
        console.out(line)
    problems = [it for it in inventory.diagnostics if it.code == "code-held"]
    for item in problems:
        console.say(diagnostic_line(item))
    if is_trusted and not (lines or problems):
        console.say("its code has not changed since it was trusted")
    return 1 if problems else 0


def _list(store: TrustStore, console: Console, folder: str, *, as_json: bool) -> int:
    if folder != ".":
        raise click.UsageError("--list lists all projects; leave DIR out")
    items = list(store.all())
    records = [item for item in items if isinstance(item, TrustRecord)]
    used = [item for item in records if store.uses(item)]
    for item in items:
        if isinstance(item, Diagnostic):
            console.say(diagnostic_line(item))
    if as_json:
        console.json([{**_as_object(item), "used": item in used} for item in records])
        return 0
    rows = [
        (
            shown_text(home_path(item.path)),
            item.level,
            count(len(item.units), "unit"),
            " ".join(item.variables),
            "" if item in used else "not used: the folder is gone, or is another one",
        )
        for item in records
    ]
    table(rows, console)
    console.say(count(len(used), "trusted project"))
    return 0


def _as_object(record: TrustRecord) -> dict[str, object]:
    return {
        "path": record.path,
        "level": record.level,
        "variables": list(record.variables),
        "code": _digests(record.units),
    }


def _requested(inventory: ProjectInventory) -> dict[str, object]:
    """Return what a project asks for, as names."""
    return {
        "skills": [skill.name for skill in inventory.skills],
        "plugins": [plugin.folder_name for plugin in inventory.plugins],
        "servers": {item.name: item.text for item in inventory.servers},
        "variables": list(inventory.variables),
        "code": _digests(inventory.units),
    }


def _digests(units: Mapping[str, CodeUnit]) -> dict[str, str]:
    return {key: unit.digest for key, unit in sorted(units.items())}


def _shown(path: str) -> str:
    return shown_text(home_path(os.path.abspath(path)))
