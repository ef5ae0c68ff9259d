"""The steps of adding a unit of a source: show what it contains, put it in its place, record it."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

from satchel.cli.installed_plugin import print_installed
from satchel.cli.installer import Installer
from satchel.cli.marketplace_choice import files_of_choice
from satchel.cli.terminal import Terminal
from satchel.cli.trust_report import ShownFile, diff_files, file_lines, shown_text
from satchel.errors import SatchelError
from satchel.files.file_reader import real_path
from satchel.runtime.skill_scripts import scripts_of
from satchel.scan.file_scanner import ScanFinding, ScannedFiles, scan_path
from satchel.scan.scan_rules import SCAN_RULES
from satchel.setup.artefact_signatures import recorded, signature_note, time_of
from satchel.setup.folder_placement import (
    exclusive_change,
    replace_folder,
    staged_copy,
    write_files,
)
from satchel.setup.setup_hook import find_setup_hook
from satchel.setup.source_copies import CopyBudget, SourceCopy
from satchel.setup.source_fetch import FetchedSource
from satchel.setup.source_records import AddedFolder, SourceRecord
from satchel.setup.source_units import SourceUnit, find_units
from satchel.sources.folder_reader import list_folder
from satchel.text import one_line
from satchel.trust.code_units import declared_texts
from satchel.trust.project_inventory import servers_of_plugin
from satchel.trust.runnable_files import is_skill_code, read_code_file
from satchel.trust.tree_digest import folder_digest, read_digests

_MOST_NAMED = 20
"""How many files, links and notes of each kind are named before the question."""
_CODE_ENDINGS = (
    *(".py", ".pyw", ".pyc", ".pth", ".sh", ".bash", ".zsh", ".fish", ".js", ".mjs", ".cjs", ".ts"),
    *(".mts", ".cts", ".jsx", ".tsx", ".rb", ".pl", ".pm", ".php", ".lua", ".r", ".jl", ".go"),
    *(".rs", ".c", ".cpp", ".java", ".jar", ".class", ".ps1", ".psm1", ".bat", ".cmd", ".vbs"),
    *(".exe", ".dll", ".so", ".dylib", ".pyd", ".node", ".wasm", ".whl", ".zip", ".pyz"),
    *(".ksh", ".awk", ".tcl", ".command", ".desktop", ".ipynb", ".lnk", ".cs", ".swift", ".scpt"),
    *(".hta", ".wsf", ".msi", ".deb", ".rpm", ".apk", ".ex", ".exs", ".nu"),
    *("package.json", "makefile", "dockerfile", "rakefile", "justfile", "procfile", "gemfile"),
)


def say_units(units: Iterable[SourceUnit], source: FetchedSource, terminal: Terminal) -> None:
    """Say where units come from, who signed them, and what they contain."""
    address, version = source.address, source.version
    is_archive = address.kind == "archive"
    kind = {"git": "commit ", "archive": "archive ", "folder": ""}[address.kind]
    at = f", {kind}{version}" if version else ""
    note = signature_note(address.location, source.signers)
    shown_note = note if is_archive else "no signature was checked"
    terminal.say(one_line(f"from {address.text}{at} ({shown_note})"))
    for text in _some(source.notes):
        terminal.say(f"  in the source: {text}", as_is=True)
    scanned: ScannedFiles = {}  # plugins of a marketplace share files
    for unit in units:
        with terminal.working(f"scanning {unit.kind} {unit.name} for lures"):
            lures = list(scan_path(unit.folder, scanned))
        for line in _unit_lines(unit, lures):
            terminal.say(line, as_is=True)


def _unit_lines(unit: SourceUnit, lures: Iterable[ScanFinding]) -> Iterator[str]:
    """Yield what a unit contains: its text in short, its code, its commands and its lures."""
    version = unit.plugin.manifest.version if unit.plugin and unit.plugin.manifest else ""
    title = " ".join(part for part in (unit.kind, unit.name, version) if part)
    yield shown_text(f"{title}: {unit.description}")
    files, scripts = _files_in(unit.folder), list(_scripts(unit))
    parts = {
        "in": [unit.place],
        "skills": [] if unit.kind == "skill" else [skill.name for skill in unit.skills],
        "code": list(_code(unit, (name for name in files if name not in scripts))),
        "scripts": scripts,
        "commands": [os.path.basename(path) for path in _commands(unit)],
        "files": _some(files),
        "from elsewhere in the source": _some(unit.from_elsewhere),
    }
    parts |= {f"left out ({why})": _some(sorted(it)) for why, it in sorted(unit.left_out.items())}
    for label, names in parts.items():
        if names:
            yield f"  {label}: {shown_text(', '.join(names))}"
    yield from _servers(unit)
    for item in lures:
        path = os.path.relpath(item.path, unit.folder)
        meaning = SCAN_RULES[item.rule].meaning
        place = one_line(path) + (f":{item.line}" if item.line else "")
        yield f"  {place}: {item.rule}: {one_line(item.text)} ({meaning})"


def _some(names: Sequence[str]) -> list[str]:
    """Return names, or some and how many others there are."""
    others = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"and {others} more"] if others > 0 else [])]


def _files_in(folder: str) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, files in os.walk(folder)
        for name in files
    )


def unit_lines(unit: SourceUnit) -> list[str]:
    """Return all files that a unit would have when it is placed, in full."""
    digests = read_digests(unit.folder)
    files = _files(unit.folder, digests, {*digests})
    return file_lines((f"{unit.name}: {path}", file) for path, file in files.values())


def folder_diff(before: str, after: str) -> list[str]:
    """Return what changes between two folders, with invisible characters as escapes."""
    old, new = read_digests(before), read_digests(after)
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    return diff_files(_files(before, old, changed), _files(after, new, changed))


def mode_lines(before: str, after: str) -> list[str]:
    """Return which files of two folders only one of them can run."""
    names = {*_files_in(before)} & {*_files_in(after)}
    old, new = (
        {name for name in names if os.lstat(os.path.join(folder, name)).st_mode & stat.S_IXUSR}
        for folder in (before, after)
    )
    changed = [] if old == names else sorted(old ^ new)  # some disks have no modes
    states = {name: "now" if name in new else "no longer" for name in changed}
    return [shown_text(f"mode of {name}: {state} executable") for name, state in states.items()]


def link_lines(folder: str) -> list[str]:
    """Return which links of a placed folder are lost when it is replaced, as a copy has none."""
    paths = (
        os.path.join(at, name)
        for at, folders, files in os.walk(folder)
        for name in (*folders, *files)
    )
    links = sorted(path for path in paths if os.path.islink(path))
    return [
        shown_text(f"link {os.path.relpath(path, folder)} -> {os.readlink(path)}: removed")
        for path in links
    ]


def _files(folder: str, digests: dict[str, str], names: set[str]) -> dict[str, ShownFile]:
    """Return the files of a folder that have one of the names."""
    paths = {name: os.path.join(folder, *name.split("/")) for name in names if name in digests}
    root = real_path(folder)  # the home folder, or that of temporary files, may be a link
    return {name: (name, read_code_file(path, root)) for name, path in sorted(paths.items())}


def _scripts(unit: SourceUnit) -> Iterator[str]:
    for skill in unit.skills:
        below = os.path.relpath(skill.path, unit.folder)
        for name in scripts_of(file.name for file in skill.files):
            yield os.path.normpath(os.path.join(below, name))


def needs_trust(unit: SourceUnit) -> bool:
    """Return whether something of a unit could run, so that a project's trust must include it."""
    has_code = unit.plugin is not None and bool(unit.plugin.sources or unit.plugin.servers)
    return has_code or any(is_skill_code(it.name) for skill in unit.skills for it in skill.files)


def _code(unit: SourceUnit, files: Iterable[str]) -> Iterator[str]:
    """Yield the files that are code, or that a server names, and what runs when it is added."""
    hook = find_setup_hook(unit.plugin) if unit.plugin else None
    declared = declared_texts(unit.plugin.servers if unit.plugin else (), unit.folder)
    for name in files:
        path = os.path.join(unit.folder, name)
        if hook is not None and hook.has_setup and path == hook.path:
            yield f"{name} (run when it is installed)"
        elif os.path.basename(name) in declared or _is_code(path):
            yield name


def _is_code(path: str) -> bool:
    """Return whether a file is a program by its ending, its mode or its first bytes."""
    if path.lower().endswith(_CODE_ENDINGS) or os.stat(path).st_mode & stat.S_IXUSR:
        return True
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


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


def place_unit(
    unit: SourceUnit, source: FetchedSource, folder: AddedFolder, terminal: Terminal
) -> None:
    """Place a copy of a unit below a folder, and record it; an error leaves what was there before.

    Raises `SatchelError`.
    """
    folder.require_own()
    target = folder.target(unit.kind, unit.name)
    digest = folder_digest(unit.folder)  # a setup may write into the placed folder later
    if unit.plugin is not None and not folder.is_project:
        # It may need values, and have a setup: that is what the installer is for.
        installer = Installer(
            terminal=terminal, values={}, agrees=True, base=unit.folder, place=unit.place
        )
        print_installed(terminal.console, installer.install_folder(unit.plugin), as_json=False)
    else:
        verb = "updated" if os.path.lexists(target) else "added"
        with exclusive_change(target, terminal.say):
            replace_folder(staged_copy(unit.folder, target), target)
        shown = f"{folder.shown}/{unit.kind}s/{unit.name}"
        terminal.console.out(one_line(f"{verb} {unit.kind} {unit.name} ({shown})"))
    folder.keep(
        SourceRecord(
            kind=unit.kind,
            name=unit.name,
            source=folder.recorded(source.address),
            version=source.version,
            digest=digest,
            signer=recorded(source.signers),
            signed=time_of(source.signers),
        )
    )


def require_valid(unit: SourceUnit) -> None:
    """Raise `SatchelError` if a unit cannot be used."""
    if unit.fault:
        raise SatchelError(f"{unit.kind} {unit.name!r} is broken: {one_line(unit.fault)}")


@contextmanager
def as_placed(unit: SourceUnit, source: FetchedSource, budget: CopyBudget) -> Iterator[SourceUnit]:
    """Yield a unit as it would be placed, read from a copy of its own that has no links.

    Raises `SatchelError`, also if it cannot be used without what its links led to.
    """
    with TemporaryDirectory(prefix="satchel-copy-") as above:
        folder = os.path.join(above, unit.name)
        content = SourceCopy(unit.folder, folder, source.folder, budget)
        content.write(unit.chosen)
        files = files_of_choice(unit.plugin) if unit.plugin is not None else {}
        write_files(folder, files)
        units = find_units(folder).units
        copy = next((it for it in units if (it.kind, it.name) == (unit.kind, unit.name)), None)
        if copy is None:
            raise SatchelError(f"{unit.kind} {unit.name!r} is not complete without its source")
        require_valid(copy)
        yield replace(
            copy,
            place=os.path.relpath(unit.folder, source.folder),
            left_out=content.left_out,
            from_elsewhere=tuple(content.from_elsewhere),
        )
