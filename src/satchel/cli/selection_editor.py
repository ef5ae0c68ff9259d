"""Edit the `enable` and `disable` lists of `satchel.toml`; comments and order are kept."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from satchel.catalog.catalog_entries import ToolEntry
from satchel.catalog.name_holds import owner_key
from satchel.cli.base_command import Sources
from satchel.cli.console import Console
from satchel.configuration.projects import TrustLevel
from satchel.configuration.selection import (
    Selection,
    SelectionFile,
    SelectionPatterns,
    is_glob,
    project_selection_path,
    selection_path,
)
from satchel.configuration.selection_reader import SELECTION_LIMIT, parse_selection, read_selection
from satchel.diagnostics import left_out_server
from satchel.errors import SatchelError
from satchel.files.atomic_write import file_lock, require_no_link_out, write_atomic
from satchel.files.file_reader import UnreadableFileError, read_regular
from satchel.importing.distributions import normalized
from satchel.lazy_dataclass import dataclass
from satchel.mcp_servers.server_addresses import as_name
from satchel.names import BASIC_GROUP, near_misses
from satchel.reports.serializer import KINDS, entries_of
from satchel.reports.short_texts import count, location_text, short_path
from satchel.sources.search_roots import Precedence
from satchel.text import one_line
from satchel.trust.name_owners import NameOwners

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog
    from satchel.catalog.catalog_entries import Entry

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectableEntry:
    """An entry with all names that a pattern can match."""

    kind: str
    names: tuple[str, ...]
    """Its name, its addresses and its source."""
    entry: "Entry | None" = None
    """`None` for a server, which may not be connected."""
    is_optional: bool = False
    """Whether it is an installed plugin, which is disabled by default."""

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern matches the entry."""
        return SelectionPatterns((pattern,)).match(self.kind, self.names) is not None

    def is_disabled(self, selection: Selection) -> bool:
        """Return whether a selection leaves the entry disabled."""
        if selection.disabled(self.kind, self.names[0], self.names[1:]) is not None:
            return True
        return self.is_optional and selection.verdict(self.kind, self.names) is None

    def is_held_by(self, name: str) -> bool:
        """Return whether the entry waits for the user to enable it by this whole address."""
        if self.entry is None:
            return False
        address = self.entry.addresses[-1]
        if name not in {address, f"{self.kind}:{address}"}:
            return False
        if isinstance(self.entry, ToolEntry):
            # No server was asked, so the record says whether one has the name.
            owners = NameOwners().of("tool", self.entry.name)
            if owners and owners[0] != owner_key(self.entry):
                return True
        return any(item.code in _NAME_HELD for item in self.entry.diagnostics)


_NAME_HELD = {"tool-name-held", "plugin-name-held", "skill-name-held"}

Change = Callable[[SelectionFile, Selection, str, Sequence[SelectableEntry]], SelectionFile]
"""Returns the changed file, from the file, the other files, a name, and the matching entries."""


def disable_name(
    file: SelectionFile, _others: Selection, name: str, _entries: Sequence[SelectableEntry]
) -> SelectionFile:
    """Remove a name from `enable`, and add it to `disable`."""
    return replace(file, enable=_without(file.enable, name), disable=_with(file.disable, name))


def enable_name(
    file: SelectionFile, others: Selection, name: str, entries: Sequence[SelectableEntry]
) -> SelectionFile:
    """Remove a name from `disable`; add it to `enable` if it would still be disabled or held.

    A name that nothing has is added if it was not in `disable`.
    """
    changed = replace(file, disable=_without(file.disable, name))
    selection = Selection((changed, *others.files))
    if any(entry.is_held_by(name) or entry.is_disabled(selection) for entry in entries) or (
        not entries and changed == file
    ):
        return replace(changed, enable=_with(file.enable, name))
    return changed


def change_and_print(
    console: Console,
    names: Sequence[str],
    sources: Sources,
    change: Change,
    *,
    as_json: bool,
    force: bool,
) -> None:
    """Change the file that the options select, and print the result for each name."""
    results = change_selection(console, names, sources, change, force=force)
    if as_json:
        console.json(results)
        return
    for item in results:
        state = "enabled" if item["enabled"] else "disabled"
        text = f"{state} {item['name']}"
        if not item["changed"]:
            text = f"{item['name']} is already {state}"
        console.out(one_line(f"{text} ({short_path(item['path'])})"))


def change_selection(
    console: Console, names: Sequence[str], sources: Sources, change: Change, *, force: bool = False
) -> list[dict[str, Any]]:
    """Change the file that the options select, and return the result for each name as JSON.

    Raises `SatchelError` for a name that nothing has, unless a file mentions it or with `force`.
    """
    enables = change is enable_name
    for name in names:
        _require_valid(name, enables=enables)
    path = project_selection_path(".") if sources.project else selection_path()
    entries = _read_entries(sources)
    for name in names:
        if not any(entry.matches(name) for entry in entries):
            _refuse_unknown(console, name, entries, force=force or _is_mentioned(name, path))
    _report_twins(console, [item for item in entries if any(map(item.matches, names))])
    results = []
    if sources.project:
        require_no_link_out(path)
    with file_lock(path):
        data, before = _read(path, sources)
        current = read_selection(selection_path(), path if sources.project else "")
        others, after = Selection(current.files[1:]), before
        for name in names:
            matching = [entry for entry in entries if entry.matches(name)]
            last, after = after, change(after, others, name, matching)
            results.append(
                {"name": name, "enabled": enables, "path": path, "changed": after != last}
            )
        if after != before:
            content = _edited(data, before, after)
            write_atomic(path, content)
            if sources.project:
                _keep_trust(before, parse_selection(path, before.scope, content))
    _report_exceptions(console, names, sources, Selection((after, *others.files)), enables=enables)
    if sources.project and sources.project_level is TrustLevel.NONE:
        console.say("this project is not trusted, so the file has no effect yet: satchel trust")
    return results


def _keep_trust(before: SelectionFile, after: SelectionFile) -> None:
    """Trust this edit of a project's file if its content before the edit was trusted."""
    # Lazy: only needed if a project's file changes.
    from satchel.trust.code_units import settings_unit
    from satchel.trust.runnable_files import CodeReader
    from satchel.trust.trust_record import TrustRecord, TrustStore

    folder, key = os.path.dirname(before.path), os.path.basename(before.path)
    old, new = (settings_unit(it, CodeReader(with_text=True)) for it in (before, after))

    def change(record: TrustRecord) -> TrustRecord:
        trusted = record.units.get(key)
        if (trusted and trusted.digest) != (old and old.digest):
            return record
        units = {name: unit for name, unit in record.units.items() if name != key}
        return replace(record, units={**units, key: new} if new else units)

    TrustStore().update(folder, change)


def require_valid_selection() -> None:
    """Raise `SatchelError` if the user's own file cannot be read."""
    _read(selection_path(), Sources())


def forget(names: Iterable[str]) -> None:
    """Remove plugins from `enable` of the user's own file."""
    path = selection_path()
    if not os.path.exists(path):
        return
    removed = {text for name in names for text in (name, f"plugin:{name}")}
    with file_lock(path):
        data, before = _read(path, Sources())
        kept = tuple(item for item in before.enable.texts if item not in removed)
        after = replace(before, enable=SelectionPatterns(kept))
        if after != before:
            write_atomic(path, _edited(data, before, after))


def _require_valid(name: str, *, enables: bool) -> None:
    if not name or one_line(name) != name:
        message = "a name is one line without invisible characters"
        raise click.BadParameter(message, param_hint="NAME")
    if not enables and name in {BASIC_GROUP, f"group:{BASIC_GROUP}"}:
        raise SatchelError(f"group {BASIC_GROUP!r} is always active")


def _read(path: str, sources: Sources) -> tuple[bytes, SelectionFile]:
    """Return the content of a file, also parsed. Raises `SatchelError` if it is unreadable."""
    data = b""
    is_dangling = os.path.islink(path) and not os.path.exists(path)
    if os.path.lexists(path) and not is_dangling:
        try:
            data, _ = read_regular(path, SELECTION_LIMIT)
        except UnreadableFileError as problem:
            raise SatchelError(f"cannot read: {problem}", where=path) from None
    file = parse_selection(path, Precedence.PROJECT if sources.project else Precedence.USER, data)
    _require_readable(file)
    return data, file


def _require_readable(file: SelectionFile) -> None:
    for item in file.diagnostics:
        if item.code == "choices-unreadable":
            raise SatchelError(f"{item.message}; nothing was written", where=location_text(item))


def _read_entries(sources: Sources) -> list[SelectableEntry]:
    if sources.project and sources.trust is None and sources.project_level is TrustLevel.NONE:
        # Names can be read without trust, so that the user can edit the file first.
        sources = replace(sources, trust="data")
    catalog = sources.open(run_code=False).catalog
    entries = (
        _selectable(kind, entry, sources) for kind in KINDS for entry in entries_of(catalog, kind)
    )
    return [*entries, *_servers(catalog, sources)]


def _servers(catalog: "Catalog", sources: Sources) -> list[SelectableEntry]:
    """Return the MCP servers that files and plugins declare, also those that cannot be used."""
    has_project = sources.project or sources.project_here is not None
    selection = read_selection(selection_path(), project_selection_path(".") if has_project else "")
    diagnostics = (*selection.diagnostics, *catalog.diagnostics)
    names = {*selection.servers, *filter(None, map(left_out_server, diagnostics))}
    of_plugins = [(it.name, server.name) for it in catalog.all_plugins for server in it.servers]
    names |= {as_name(server) for _, server in of_plugins}
    names |= {as_name(f"{plugin}-{server}") for plugin, server in of_plugins}
    return [SelectableEntry(kind="plugin", names=(f"mcp:{name}",)) for name in sorted(names)]


def _selectable(kind: str, entry: "Entry", sources: Sources) -> SelectableEntry:
    names: tuple[str, ...] = (entry.name, *entry.addresses, entry.source)
    if kind != "plugin" or entry.scope is not Precedence.PLUGIN:
        return SelectableEntry(kind=kind, names=names, entry=entry)
    names = (*names, normalized(entry.source))
    is_optional = {"all", *names}.isdisjoint(sources.enabled_entry_points)
    return SelectableEntry(kind=kind, names=names, entry=entry, is_optional=is_optional)


def _is_mentioned(name: str, path: str) -> bool:
    """Return whether a file has the name already, so that it can be removed from there."""
    file = read_selection(path).files[0]
    return name in file.enable.texts or name in file.disable.texts


def _refuse_unknown(
    console: Console, name: str, entries: Sequence[SelectableEntry], *, force: bool
) -> None:
    """Refuse a name that nothing has and a pattern that matches nothing; warn with `force`."""
    names = {name for entry in entries for name in entry.names}
    kind, colon, rest = name.partition(":")
    near = near_misses(rest if colon and kind in KINDS else name, names)
    if colon and kind not in KINDS:
        near = (*(f"{it}:{rest}" for it in near_misses(kind, KINDS)), *near)
    message = f"nothing matches {name!r}" if is_glob(name) else f"nothing is named {name!r}"
    if force:
        console.warn(message, near)
        return
    hint = f"did you mean {', '.join(near)}? " if near else ""
    raise SatchelError(f"{message}; nothing was written", fix=f"{hint}--force writes it")


def _report_twins(console: Console, entries: Iterable[SelectableEntry]) -> None:
    """Print to stderr which plugins have all names in common, so that no pattern chooses one."""
    twins = defaultdict[tuple[str, ...], list[str]](list)
    for item in entries:
        if item.kind == "plugin" and item.entry:
            twins[item.names].append(short_path(item.entry.path))
    for names, paths in twins.items():
        if len(paths) > 1:
            text = f"{names[0]!r} is the name of {count(len(paths), 'plugin')}: {', '.join(paths)}"
            console.say(one_line(f"{text}; to choose one, change the name in a manifest"))


def _report_exceptions(
    console: Console, names: Sequence[str], sources: Sources, selection: Selection, *, enables: bool
) -> None:
    """Print to stderr which entries did not change, because another pattern has precedence."""
    for item in _read_entries(sources):
        entry = item.entry
        if entry is None or not any(item.matches(name) for name in names):
            continue
        if enables and entry.state == "disabled":
            for diagnostic in entry.diagnostics:
                text = f"still disabled: {diagnostic.message} ({location_text(diagnostic)})"
                console.say(one_line(text))
        elif not enables and entry.is_served:
            verdict = selection.verdict(item.kind, item.names)
            if verdict is not None and verdict.is_on:
                reason = f"enable = [{verdict.pattern!r}] ({short_path(verdict.file.path)})"
                text = f"still enabled: {item.kind} {entry.name!r}, because of {reason}"
                console.say(one_line(text))


def _without(patterns: SelectionPatterns, name: str) -> SelectionPatterns:
    return SelectionPatterns(tuple(item for item in patterns.texts if item != name))


def _with(patterns: SelectionPatterns, name: str) -> SelectionPatterns:
    return patterns if name in patterns.texts else SelectionPatterns((*patterns.texts, name))


def _edited(data: bytes, before: SelectionFile, after: SelectionFile) -> bytes:
    """Return the content of a file with only the two lists changed."""
    # Lazy: only needed if something changes.
    import tomlkit

    try:
        document = tomlkit.parse(data.decode("utf-8-sig"))
        _edit(document, "enable", before.enable, after.enable)
        _edit(document, "disable", before.disable, after.disable)
        content = document.as_string().encode()
    except (tomlkit.exceptions.TOMLKitError, ValueError) as problem:
        raise SatchelError(f"cannot edit: {problem}", where=before.path) from problem
    content = (_BOM if data.startswith(_BOM) else b"") + content
    # Check the result: an unusual layout may have confused the editor.
    result = parse_selection(before.path, before.scope, content)
    _require_readable(result)
    if (result.enable, result.disable) != (after.enable, after.disable):
        raise SatchelError("cannot be edited by a program; edit it by hand", where=before.path)
    return content


def _edit(document: Any, key: str, before: SelectionPatterns, after: SelectionPatterns) -> None:
    from tomlkit import array

    if key not in document and after.texts:
        document[key] = array().multiline(True)
    for item in before.texts:
        if item not in after.texts:
            document[key].remove(item)
    for item in after.texts:
        if item not in before.texts:
            document[key].append(item)
    if before.texts and not after.texts:
        # Remove the empty list, unless it has a comment.
        empty = document[key]
        if "#" not in empty.as_string() + empty.trivia.comment:
            del document[key]
