"""Show what a project asks for, with everything hidden made visible."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from satchel.cli.rendering import diagnostic_line
from satchel.diagnostics import Severity
from satchel.errors import SatchelError
from satchel.files.file_reader import UnreadableFileError
from satchel.files.secret_files import is_secret_file
from satchel.mixed_scripts import mixes_scripts
from satchel.reports.short_texts import count
from satchel.setup.source_records import AddedFolder
from satchel.sources.search_roots import home_path
from satchel.text import lines_of, spell_hidden, unified_lines
from satchel.trust.runnable_files import read_code_file

if TYPE_CHECKING:
    from satchel.cli.console import Console
    from satchel.trust.code_units import CodeUnit
    from satchel.trust.project_inventory import ProjectInventory
    from satchel.trust.runnable_files import CodeFile

ShownFile: TypeAlias = "tuple[str, CodeFile]"
"""What is shown of the path of a file, and the file."""
_NO_FILE = "/dev/null"
_NOT_COMPARED = "not compared any more"
_OTHERS = re.compile(r"[^\0-\x7f]")


def shown_text(text: str) -> str:
    """Return a text as one line in which control and invisible characters are written out."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return spell_hidden(escaped)


def _shown_server(text: str) -> str:
    """Return a line in which also all but ASCII in addresses and mixed words is written out."""
    words = (
        _OTHERS.sub(lambda letter: ascii(letter[0])[1:-1], word)
        if "://" in word or mixes_scripts(word)
        else word
        for word in shown_text(text).split(" ")
    )
    return " ".join(words)


def unused_variables(names: Iterable[str], requested: Collection[str]) -> str:
    """Return a warning about named variables that no server of a project uses, or `""`."""
    unused = sorted({*names} - {*requested})
    if not unused:
        return ""
    uses = f"it uses {', '.join(requested)}" if requested else "it uses none"
    return shown_text(f"no server of the project uses {', '.join(unused)}; {uses}")


def print_inventory(
    inventory: ProjectInventory, console: Console, *, with_code: bool = False
) -> None:
    """Print everything that a project asks for."""
    console.out(f"project {shown_text(home_path(inventory.project.folder))}")
    base = inventory.project.folder
    _section(console, "skill", [_finding_line(item, base) for item in inventory.skills])
    _section(console, "plugin", [_finding_line(item, base) for item in inventory.plugins])
    _section(console, "source", _source_lines(base))
    _section(console, "compared file", _digest_lines(inventory.units))
    servers = [f"{item.name} ({item.owner}): {item.text}" for item in inventory.servers]
    _section(console, "server", servers, _shown_server)
    variables = [
        f"{name}: for {', '.join(f'{item.name} ({item.owner})' for item in users)}"
        for name, users in inventory.variables.items()
    ]
    _section(console, "variable", variables)
    _section(console, "enabling pattern", inventory.enabled)
    _section(console, "enabled installed plugin", inventory.enabled_packages)
    _section(console, "disabling pattern", inventory.disabled)
    values = [
        f"{plugin}.{key} = {json.dumps(value, default=str)}"
        for plugin, values in inventory.configured.items()
        for key, value in values.items()
    ]
    _section(console, "value", values)
    for item in dict.fromkeys(inventory.diagnostics):
        if item.severity is not Severity.INFO:
            console.say(diagnostic_line(item))
    for line in code_lines(inventory.units) if with_code else ():
        console.out(line)


def _source_lines(folder: str) -> list[str]:
    """Return where skills and plugins come from, as the project itself says."""
    record = AddedFolder(is_project=True, project=folder)
    try:
        record.require_own()
        records = record.records()
    except SatchelError as problem:
        return [str(problem)]
    return [
        f"{it.kind} {it.name}: from {it.source} {it.version}, "
        f"{f'signed by {it.signer}' if it.signer else 'unsigned'} "
        "(its own record says so, which is not verified)"
        for it in records
    ]


def _section(
    console: Console, noun: str, lines: Iterable[str], shown: Callable[[str], str] = shown_text
) -> None:
    lines = list(lines)
    if lines:
        console.out(f"{count(len(lines), noun)}:")
    for line in lines:
        console.out(f"  {shown(line)}")


def _finding_line(finding: Any, base: str) -> str:
    place, manifest = os.path.relpath(finding.path, base), finding.manifest
    if manifest is None:
        return f"{place}: cannot be read"
    return f"{manifest.name} ({place}): {manifest.description or '(no description)'}"


def _digest_lines(units: Mapping[str, CodeUnit]) -> list[str]:
    digests = ((path, *file.digest.rpartition(":")) for path, file in _contents(units))
    return [f"{path} ({kind and 'a link, '}digest {it[:12]})" for path, kind, _, it in digests]


def _contents(units: Mapping[str, CodeUnit]) -> list[ShownFile]:
    """Return what has a content: not the names of the servers for which files are compared."""
    files = _files(units).items()
    shown = [it for (place, _), it in files if it[1].text or not place.endswith("/")]
    return sorted(shown, key=lambda it: it[0])


def _shown_name(name: str) -> str:
    """Return a name in a unit as it is shown; a definition, whose name has a slash at its end."""
    if not name.endswith("/"):
        return name
    kind, _, server = name.removesuffix("/").partition("/")
    return f"MCP server {server}" if server else kind


def _files(units: Mapping[str, CodeUnit]) -> dict[tuple[str, str], ShownFile]:
    """Return what is shown of each code file, and the file, by its place and its digest.

    So what several units have is there once, and nothing hides what another unit has there. Units
    with files of the whole project come last: the others say better what a file is for.
    """
    files: dict[tuple[str, str], ShownFile] = {}
    for unit in sorted(units.values(), key=lambda unit: unit.is_of_project):
        folder = "" if unit.is_of_project else f"{unit.folder}/"
        for name, file in unit.files.items():
            path = name if unit.key == name else f"{unit.title}: {_shown_name(name)}"
            files.setdefault((f"{folder}{name}", file.digest), (path, file))
    return files


def code_lines(units: Mapping[str, CodeUnit]) -> list[str]:
    """Return all code, each file after its path; one that is no text has its digest."""
    return file_lines(_contents(units))


def file_lines(files: Iterable[ShownFile]) -> list[str]:
    """Return files in full, each after its path; one that is no text has its digest."""
    lines: list[str] = []
    for path, file in files:
        missing = _not_shown(path, file.digest[:12])
        text = lines_of(file.text) or [missing]
        lines += [f"=== {shown_text(path)}", *(f"  {line}" for line in text)]
    return [spell_hidden(line) for line in lines]


def diff_lines(
    trusted: Mapping[str, CodeUnit], now: Mapping[str, CodeUnit], base: str
) -> list[str]:
    """Return the changes of all code of the project `base` since it was trusted, line by line.

    What is new or gone is named first: its files may be known as those of something else.
    """
    new = [
        f"new: {_owner(unit)}"
        for key, unit in sorted(now.items())
        if trusted and key not in trusted
    ]
    gone = [f"gone: {_owner(unit)}" for key, unit in sorted(trusted.items()) if key not in now]
    before, after = _files(trusted), _files(now)
    after |= _not_compared(before, after, base)
    return [*map(shown_text, new + gone), *_diff(before, after)]


def _not_compared(
    before: Mapping[tuple[str, str], ShownFile],
    after: Mapping[tuple[str, str], ShownFile],
    base: str,
) -> dict[tuple[str, str], ShownFile]:
    """Return the files that were compared and are not any more, though they are still there."""
    files: dict[tuple[str, str], ShownFile] = {}
    places = {place for place, _ in after}
    for (place, _), (path, _) in before.items():
        target = os.path.join(base, place)
        if place not in places and os.path.isfile(target):
            with suppress(UnreadableFileError):
                file = read_code_file(target, base)
                files[place, _NOT_COMPARED] = (f"{path} ({_NOT_COMPARED})", file)
    return files


def _owner(unit: CodeUnit) -> str:
    return f"the scripts of skill {unit.folder}" if unit.is_skill else unit.title


def diff_files(before: Mapping[str, ShownFile], after: Mapping[str, ShownFile]) -> list[str]:
    """Return the changes of files, line by line; what is no text has its digest."""
    old, new = (
        {(name, file.digest): (path, file) for name, (path, file) in files.items()}
        for files in (before, after)
    )
    return _diff(old, new)


def _diff(
    before: Mapping[tuple[str, str], ShownFile], after: Mapping[tuple[str, str], ShownFile]
) -> list[str]:
    changes: dict[str, tuple[list[ShownFile], list[ShownFile]]] = {}
    for at, file in before.items():
        if at not in after:
            changes.setdefault(at[0], ([], []))[0].append(file)
    for at, file in after.items():
        if at not in before:
            changes.setdefault(at[0], ([], []))[1].append(file)
    pairs = [pair for files in changes.values() for pair in zip_longest(*files)]
    lines: list[str] = []
    for old, new in sorted(pairs, key=lambda pair: (pair[1] or pair[0])[0]):
        path, _ = new or old
        lines += _file_diff(path, old and old[1], new and new[1])
    return lines


def _file_diff(path: str, before: CodeFile | None, after: CodeFile | None) -> list[str]:
    old, new = (file.text if file else "" for file in (before, after))
    shown = shown_text(path)  # A line end in a name would forge lines.
    names = (shown if before else _NO_FILE, shown if after else _NO_FILE)
    changes = list(unified_lines(old, new, names))
    lines = changes or [f"--- {names[0]}", f"+++ {names[1]}"]
    hidden = [file for file in (before, after) if file and not (file.text and changes)]
    if hidden:
        lines.append(_not_shown(path, " -> ".join(file.digest[:12] for file in hidden)))
    return lines


def _not_shown(path: str, digests: str) -> str:
    if is_secret_file(path.rsplit(": ", maxsplit=1)[-1]):
        return f"(not shown: a .env file, digest {digests}; read it yourself, a command may run it)"
    return f"(not shown: empty, no text, or larger than 1 MiB; digest {digests})"
