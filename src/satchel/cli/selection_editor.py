"""Writing down what the user switches on and off; comments and order stay as they are."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.base_command import Sources
from satchel.cli.console import Console
from satchel.cli.rendering import location_text, relative
from satchel.cli.serializer import KINDS, entries_of
from satchel.errors import SatchelError
from satchel.names import BASIC_GROUP, near_misses
from satchel.sources.atomic_write import file_lock, write_atomic
from satchel.sources.distributions import normalized
from satchel.sources.file_reader import UnreadableFileError, read_regular
from satchel.sources.search_roots import Precedence
from satchel.sources.selection import (
    CHOICES_LIMIT,
    Selection,
    SelectionFile,
    SelectionPatterns,
    parse_selection,
    project_selection_path,
    read_selection,
    selection_path,
)
from satchel.text import one_line

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.catalog import Entry

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectableEntry:
    """An entry with the names that a pattern may call it by."""

    kind: str
    name: str
    others: tuple[str, ...]
    entry: "Entry | None" = None
    is_optional: bool = False
    """Whether it is an installed plugin, which is off until somebody enables it."""

    def is_off(self, choices: Selection) -> bool:
        """Tell whether these choices leave it off."""
        if choices.disabled(self.kind, self.name, self.others) is not None:
            return True
        return self.is_optional and choices.verdict(self.kind, (self.name, *self.others)) is None


Step = Callable[[SelectionFile, Selection, str, Sequence[SelectableEntry]], SelectionFile]
"""Chooses one name: what the file says then, knowing the farther files and what has the name."""


def disable_name(
    file: SelectionFile, _farther: Selection, name: str, _things: Sequence[SelectableEntry]
) -> SelectionFile:
    """Take a name out of `enable`, and put it into `disable`."""
    return replace(file, enable=_without(file.enable, name), disable=_with(file.disable, name))


def enable_name(
    file: SelectionFile, farther: Selection, name: str, things: Sequence[SelectableEntry]
) -> SelectionFile:
    """Take a name out of `disable`, and put it into `enable` if that alone leaves it off."""
    taken_out = replace(file, disable=_without(file.disable, name))
    choices = Selection((taken_out, *farther.files))
    if any(thing.is_off(choices) for thing in things or _imagined(name)):
        return replace(taken_out, enable=_with(file.enable, name))
    return taken_out


def change_and_print(
    console: Console, names: Sequence[str], sources: Sources, step: Step, *, as_json: bool
) -> None:
    """Write a choice into the file that the options mean, and tell what came of it."""
    told = change_selection(console, names, sources, step)
    for item in () if as_json else told:
        word = "enabled" if item["enabled"] else "disabled"
        done = f"{word} {item['name']}" if item["changed"] else f"{item['name']} is {word} already"
        console.out(one_line(f"{done} ({shown_path(item['path'])})"))
    if as_json:
        console.json(told)


def change_selection(
    console: Console, names: Sequence[str], sources: Sources, step: Step
) -> list[dict[str, Any]]:
    """Write a choice into the file that the options mean, and return what came of each name."""
    is_on = step is enable_name
    for name in names:
        _require(name, is_on=is_on)
    path = project_selection_path(".") if sources.project else selection_path()
    known = _things(sources)
    for name in names:
        if not any(_is_called(thing, name) for thing in known):
            _warn(console, name, known)
    told = []
    _require_own(path, sources)
    with file_lock(path):
        data, before = _read(path, sources)
        read = read_selection(selection_path(), path if sources.project else "")
        farther, after = Selection(read.files[1:]), before
        for name in names:
            things = [thing for thing in known if _is_called(thing, name)]
            wanted = step(after, farther, name, things)
            told.append({"name": name, "enabled": is_on, "path": path, "changed": wanted != after})
            after = wanted
        if after != before:
            write_atomic(path, _edited(data, before, after))
    _tell_what_differs(console, names, sources, Selection((after, *farther.files)), is_on=is_on)
    return told


def require_valid_selection() -> None:
    """Raise `SatchelError` if the user's own file cannot be read, before anything is done."""
    _read(selection_path(), Sources())


def forget(names: Iterable[str]) -> None:
    """Take plugins out of `enable` of the user's own file."""
    path = selection_path()
    if not os.path.exists(path):
        return
    gone = {text for name in names for text in (name, f"plugin:{name}")}
    with file_lock(path):
        data, before = _read(path, Sources())
        kept = tuple(item for item in before.enable.written if item not in gone)
        after = replace(before, enable=SelectionPatterns(kept))
        if after != before:
            write_atomic(path, _edited(data, before, after))


def shown_path(path: str) -> str:
    """Return a path as short as it can be typed."""
    shown, home = relative(path), os.path.expanduser("~")
    return f"~{shown.removeprefix(home)}" if shown.startswith(f"{home}{os.sep}") else shown


def _require(name: str, *, is_on: bool) -> None:
    if not name or one_line(name) != name:
        raise click.BadParameter(
            "a name is one line without invisible characters", param_hint="NAME"
        )
    if not is_on and name in {BASIC_GROUP, f"group:{BASIC_GROUP}"}:
        raise SatchelError(f"group {BASIC_GROUP!r} is always active")


def _read(path: str, sources: Sources) -> tuple[bytes, SelectionFile]:
    """Return what a file holds. Raises `SatchelError` for one that nobody could read."""
    data = b""
    if os.path.lexists(path) and not _dangles(path):
        try:
            data, _ = read_regular(path, CHOICES_LIMIT)
        except UnreadableFileError as problem:
            raise SatchelError(f"cannot be read: {problem}", where=path) from None
    file = parse_selection(path, Precedence.PROJECT if sources.project else Precedence.USER, data)
    _require_readable(file)
    return data, file


def _require_own(path: str, sources: Sources) -> None:
    """Refuse to write what a link in somebody's project leads to."""
    folder = os.path.realpath(os.path.dirname(path))
    if sources.project and os.path.dirname(os.path.realpath(path)) != folder:
        raise SatchelError("is a link that leaves the project; nothing was written", where=path)


def _dangles(path: str) -> bool:
    """Tell whether a path is a link to what is not there yet."""
    return os.path.islink(path) and not os.path.exists(path)


def _require_readable(file: SelectionFile) -> None:
    for item in file.diagnostics:
        if item.code == "choices-unreadable":
            raise SatchelError(f"{item.message}; nothing was written", where=location_text(item))


def _things(sources: Sources) -> list[SelectableEntry]:
    catalog = sources.open(run_code=False).catalog
    return [_thing(kind, entry, sources) for kind in KINDS for entry in entries_of(catalog, kind)]


def _thing(kind: str, entry: "Entry", sources: Sources) -> SelectableEntry:
    others: tuple[str, ...] = (*entry.addresses, entry.source)
    if kind != "plugin" or entry.scope is not Precedence.PLUGIN:
        return SelectableEntry(kind=kind, name=entry.name, others=others, entry=entry)
    others = (*others, normalized(entry.source))
    is_asked_for = not {"all", entry.name, *others}.isdisjoint(sources.entry_points)
    return SelectableEntry(
        kind=kind, name=entry.name, others=others, entry=entry, is_optional=not is_asked_for
    )


def _imagined(name: str) -> list[SelectableEntry]:
    """Return what a name would mean that nothing has yet."""
    kind, _, rest = name.partition(":")
    return (
        [SelectableEntry(kind=kind, name=rest, others=())]
        if kind in KINDS
        else [SelectableEntry(kind=kind, name=name, others=()) for kind in KINDS]
    )


def _is_called(thing: SelectableEntry, name: str) -> bool:
    return SelectionPatterns((name,)).match(thing.kind, (thing.name, *thing.others)) is not None


def _warn(console: Console, name: str, known: Sequence[SelectableEntry]) -> None:
    words = {word for thing in known for word in (thing.name, *thing.others)}
    kind, colon, rest = name.partition(":")
    near = near_misses(rest if colon and kind in KINDS else name, words)
    console.warn(f"nothing that is known is called {name!r}", near)


def _tell_what_differs(
    console: Console, names: Sequence[str], sources: Sources, choices: Selection, *, is_on: bool
) -> None:
    """Say on stderr what is not as the user chose, and why: other patterns may say otherwise."""
    for thing in _things(sources):
        if thing.entry is None or not any(_is_called(thing, name) for name in names):
            continue
        if is_on and thing.entry.state == "disabled":
            for item in thing.entry.diagnostics:
                console.say(one_line(f"still off: {item.message} ({location_text(item)})"))
        elif not is_on and thing.entry.is_served:
            verdict = choices.verdict(thing.kind, (thing.name, *thing.others))
            if verdict is not None and verdict.is_on:
                why = f"enable = [{verdict.pattern!r}] ({shown_path(verdict.file.path)})"
                console.say(one_line(f"still on: {thing.kind} {thing.name!r} is kept by {why}"))


def _without(patterns: SelectionPatterns, name: str) -> SelectionPatterns:
    return SelectionPatterns(tuple(item for item in patterns.written if item != name))


def _with(patterns: SelectionPatterns, name: str) -> SelectionPatterns:
    return patterns if name in patterns.written else SelectionPatterns((*patterns.written, name))


def _edited(data: bytes, before: SelectionFile, after: SelectionFile) -> bytes:
    """Return the content of a file with the choices changed, and nothing else."""
    # Lazy: it is needed to change something only.
    import tomlkit

    try:
        document = tomlkit.parse(data.decode("utf-8-sig"))
        _edit(document, "enable", before.enable, after.enable)
        _edit(document, "disable", before.disable, after.disable)
        written = document.as_string().encode()
    except (tomlkit.exceptions.TOMLKitError, ValueError) as problem:
        raise SatchelError(f"cannot be edited: {problem}", where=before.path) from problem
    written = (_BOM if data.startswith(_BOM) else b"") + written
    found = parse_selection(before.path, before.scope, written)
    _require_readable(found)
    if (found.enable, found.disable) != (after.enable, after.disable):
        raise SatchelError("cannot be edited by a program; edit it by hand", where=before.path)
    return written


def _edit(document: Any, key: str, before: SelectionPatterns, after: SelectionPatterns) -> None:
    from tomlkit import array

    if key not in document and after.written:
        document[key] = array().multiline(True)
    for item in before.written:
        if item not in after.written:
            document[key].remove(item)
    for item in after.written:
        if item not in before.written:
            document[key].append(item)
    if before.written and not after.written:
        _forget_if_bare(document, key)


def _forget_if_bare(document: Any, key: str) -> None:
    """Take out a list that became empty, unless somebody's comment would go with it."""
    item = document[key]
    if "#" not in item.as_string() + item.trivia.comment:
        del document[key]
