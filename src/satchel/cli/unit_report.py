"""Show what a skill or plugin of a source contains, before it is used."""

import os
from collections.abc import Iterable, Iterator
from functools import cache

from satchel.cli.terminal import Terminal
from satchel.cli.trust_report import shown_text
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.runtime.skill_scripts import scripts_of
from satchel.scan.file_scanner import ScanFinding, scan_path
from satchel.scan.scan_rules import SCAN_RULES
from satchel.settings import MIB
from satchel.setup.artefact_signatures import signature_note
from satchel.setup.setup_hook import find_setup_hook
from satchel.setup.source_fetch import FetchedSource
from satchel.setup.source_units import SourceUnit
from satchel.sources.folder_reader import list_folder
from satchel.text import one_line, spell_hidden
from satchel.trust.project_inventory import servers_of_plugin
from satchel.trust.tree_digest import read_digests
from satchel.unified_diff import unified_lines


def say_units(units: Iterable[SourceUnit], source: FetchedSource, terminal: Terminal) -> None:
    """Say where units come from, who signed them, and what they contain."""
    address, version = source.address, source.version
    is_archive = address.kind == "archive"
    kind = {"git": "commit ", "archive": "archive ", "folder": ""}[address.kind]
    at = f", {kind}{version}" if version else ""
    note = signature_note(address.location, source.signers)
    shown_note = note if is_archive else "no signature was checked"
    terminal.say(one_line(f"from {address.text}{at} ({shown_note})"))
    for note in source.notes:
        terminal.say(f"  {one_line(note)}")
    scan = cache(lambda path: list(scan_path(path)))  # plugins of a marketplace share folders
    for unit in units:
        paths = [os.path.join(unit.folder, path) for path in unit.chosen] or [unit.folder]
        with terminal.working(f"scanning {unit.kind} {unit.name} for lures"):
            lures = [item for path in filter(os.path.lexists, paths) for item in scan(path)]
        for line in _unit_lines(unit, source.folder, lures):
            terminal.say(line, as_is=True)


def _unit_lines(unit: SourceUnit, top: str, lures: Iterable[ScanFinding]) -> Iterator[str]:
    """Yield what a unit contains: its text in short, its code, its commands and its lures."""
    version = unit.plugin.manifest.version if unit.plugin and unit.plugin.manifest else ""
    title = " ".join(part for part in (unit.kind, unit.name, version) if part)
    yield shown_text(f"{title}: {unit.description}")
    parts = {
        "in": [os.path.relpath(unit.folder, top)],
        "skills": [] if unit.kind == "skill" else [skill.name for skill in unit.skills],
        "code": list(_code(unit)),
        "scripts": [
            name for skill in unit.skills for name in scripts_of(file.name for file in skill.files)
        ],
        "commands": [os.path.basename(path) for path in _commands(unit)],
    }
    for label, names in parts.items():
        if names:
            yield f"  {label}: {shown_text(', '.join(names))}"
    yield from _servers(unit)
    for item in lures:
        path = os.path.relpath(item.path, unit.folder)
        meaning = SCAN_RULES[item.rule].meaning
        yield f"  {one_line(path)}:{item.line}: {item.rule}: {one_line(item.text)} ({meaning})"


def diff_lines(before: str, after: str) -> Iterator[str]:
    """Yield what changes between two folders, with invisible characters as escapes.

    What is no text has its digest.
    """
    old, new = read_digests(before), read_digests(after)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        text, text_now = _text_of(before, name, old), _text_of(after, name, new)
        names, lines = (f"before/{name}", f"after/{name}"), list[str]()
        if text is not None and text_now is not None:
            lines = list(unified_lines(text, text_now, names, context=2))
        digests = " -> ".join(digest[:12] for digest in (old.get(name), new.get(name)) if digest)
        yield from lines or [spell_hidden(f"changed {name}: not shown as text; digest {digests}")]


def _text_of(folder: str, name: str, digests: dict[str, str]) -> str | None:
    """Return the text of a file, `""` if it does not exist, `None` if it is no text."""
    if name not in digests:
        return ""
    try:
        data, _ = read_regular(os.path.join(folder, *name.split("/")), MIB)
        text = data.decode()
    except (UnreadableFileError, UnicodeDecodeError):
        return None
    return None if len(data) > MIB or "\0" in text else text


def _code(unit: SourceUnit) -> Iterator[str]:
    """Yield the Python files of a plugin, and which of them runs when it is added."""
    if unit.plugin is None:
        return
    hook = find_setup_hook(unit.plugin)
    for name in sorted(unit.plugin.sources):
        runs = hook is not None and hook.has_setup and hook.file == name
        yield f"{name} (run when it is installed)" if runs else name


def _commands(unit: SourceUnit) -> Iterable[str]:
    paths = unit.plugin.command_paths if unit.plugin else ()
    for path in filter(os.path.exists, paths):
        yield from (
            (entry.name for entry in list_folder(path, [])) if os.path.isdir(path) else [path]
        )


def _servers(unit: SourceUnit) -> Iterator[str]:
    for server in servers_of_plugin(unit.plugin) if unit.plugin else ():
        verb = "starts" if server.declared.get("command") else "connects to"
        yield f"  {shown_text(f'server {server.name} {verb}: {server.text}')}"
