"""Installing a plugin: read and checked first, then put in place, configured, set up, enabled."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources
from satchel.cli.commands.validate_command import check
from satchel.cli.console import Console
from satchel.cli.package_fields import declared_by
from satchel.cli.plugin_config import as_texts
from satchel.cli.rendering import count, diagnostic_line
from satchel.cli.selection_editor import (
    change_selection,
    enable_name,
    require_valid_selection,
    shown_path,
)
from satchel.cli.serializer import KINDS, entries_of
from satchel.cli.terminal import Terminal
from satchel.diagnostics import Severity, has_error
from satchel.errors import DefinitionError, SatchelError
from satchel.plugins.manifest_contribution import is_isolated
from satchel.settings import MIB, Limits
from satchel.setup.field_values import as_text
from satchel.setup.folder_placement import Placement, removed, staged_copy, staged_link
from satchel.setup.install_lock import ending_in_order, exclusive_change
from satchel.setup.pip_packages import PipPackage, file, installed, project, requirement, uninstall
from satchel.setup.setup_hook import SetupHook, find_setup_hook
from satchel.sources import (
    DistributionFinding,
    PluginFinding,
    RootKind,
    format_of,
    normalized,
    own_plugins,
    scan_packages,
    scan_plugins,
    search_root,
)
from satchel.sources.configuration import configuration_path, read_configuration
from satchel.sources.env_file import change_env
from satchel.sources.file_reader import UnreadableFileError, is_inside, read_regular
from satchel.text import one_line

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.catalog import Catalog, Entry, PluginEntry
    from satchel.formats import ConfigField, PluginManifest

_BY_ADDRESS = re.compile(r"[A-Za-z0-9._-]+\s*(?:\[[^\]]*\])?\s*@\s*\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One plugin that was installed; `kind` is folder, link or package."""

    name: str
    version: str
    kind: str
    path: str
    entry: "PluginEntry | None"
    missing: tuple["ConfigField", ...]
    skills: int = 0
    """How many skills it brings."""
    shadowed: tuple["Entry", ...] = ()
    """What it brings and others of the same name are used for."""
    is_new: bool = True

    @property
    def is_enabled(self) -> bool:
        """Tell whether it is used."""
        return self.entry is not None and self.entry.is_served


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """Installs what the user named, with the values that they gave."""

    console: Console
    terminal: Terminal
    values: Mapping[str, str]
    editable: bool = False

    def install(self, word: str) -> list[Installed]:
        """Install a folder, a project, a file or a distribution. Raises `SatchelError`."""
        require_valid_selection()
        wanted = self._meant(word)
        return self._package(wanted) if isinstance(wanted, PipPackage) else [self._folder(wanted)]

    def _meant(self, word: str) -> str | PipPackage:
        """Return the plugin's folder that a word means, or what pip is to be asked for."""
        path = os.path.expanduser(word)
        by_path = self.editable or os.sep in word or word.startswith((".", "~"))
        if "://" in word and not _BY_ADDRESS.fullmatch(word):
            # Not quoted: an address may hold a password.
            fault = "pip is told of an address with the name of its distribution"
            raise SatchelError(fault, fix="say 'NAME @ git+https://...'")
        if os.path.isdir(path) and (there := self._in_folder(word, path, by_path=by_path)):
            return there
        if self.editable:
            raise click.UsageError("-e takes a folder: a plugin's, or a pip project's")
        if os.path.isfile(path) and (found := file(path)):
            return found
        found = requirement(word) if not by_path or _BY_ADDRESS.fullmatch(word) else None
        if found is None:
            fault = "is no plugin" if os.path.lexists(path) else "does not exist"
            raise SatchelError(
                fault, where=word, fix="name a plugin's folder, a wheel, or a distribution"
            )
        self._say(f"{word!r} is taken as a distribution: no folder ./{word} is a plugin")
        return found

    def _in_folder(self, word: str, path: str, *, by_path: bool) -> str | PipPackage | None:
        """Return what the folder of that name holds, `None` if the word means something else."""
        if format_of(path) is not None:
            if not by_path:
                self._say(f"{word!r} is taken as the folder ./{word}")
            return path
        if by_path:
            if found := project(path, editable=self.editable):
                return found
            fault = "holds neither the manifest of a plugin nor a pyproject.toml"
            raise SatchelError(fault, where=word)
        if os.path.isfile(os.path.join(path, "pyproject.toml")):
            fix = f"say ./{word} for the project here, '{word}>=0' for the distribution"
            raise SatchelError("may mean two things", where=word, fix=fix)
        return None

    def _folder(self, path: str) -> Installed:
        found, manifest = self._sound(path)
        name, target = manifest.name, os.path.join(own_plugins(), manifest.name)
        _require_apart(path, target)
        hook = self._hook(found)
        texts = self._gathered(name, manifest.config)
        if hook:
            # A copy is set up where it will stay.
            base = os.path.realpath(path) if self.editable else target
            code = os.path.relpath(found.code_path, found.path)
            hook = replace(hook, folder=os.path.normpath(os.path.join(base, code)))
        with exclusive_change(target, self._say), self._telling_what_is_kept([name]):
            is_new = self._place(path, target, manifest, texts, hook)
        kind = "link" if self.editable else "folder"
        return _outcome(catalog(), name, manifest.version, kind, target, is_new)

    def _place(
        self,
        path: str,
        target: str,
        manifest: "PluginManifest",
        texts: Mapping[str, str],
        hook: SetupHook | None,
    ) -> bool:
        """Put a plugin in its place, configure it, set it up and enable it; or none of that.

        Tells whether it is new there.
        """
        is_new = not os.path.lexists(target)
        staged = staged_link(path, target) if self.editable else staged_copy(path, target)
        try:
            with Placement(staged, target) as placing:
                self._configure(manifest.name, texts)
                if hook:
                    self._set_up(hook, manifest)
                change_selection(self.console, [manifest.name], Sources(), enable_name)
                placing.keep()
        except BaseException:
            self._say("nothing was installed" if is_new else "what was installed before is back")
            raise
        finally:
            removed(staged)
        return is_new

    def _sound(self, path: str) -> "tuple[PluginFinding, PluginManifest]":
        """Read a plugin's folder. Raises `SatchelError` if it has errors, which are told."""
        problems = check(path).problems
        for item in dict.fromkeys(problems):
            if item.severity is not Severity.INFO:
                self.console.say(diagnostic_line(item))
        found = scan_plugins(search_root(path, RootKind.PLUGINS), Limits()).findings.get("")
        if found is None or found.manifest is None or has_error(problems):
            raise SatchelError("has errors; nothing was installed", where=path)
        return found, found.manifest

    def _hook(self, found: PluginFinding) -> SetupHook | None:
        hook = find_setup_hook(found)
        if hook and is_isolated(found):
            self._say(f"{hook.file} is not run: the plugin asks for a process of its own")
            return None
        if hook and not hook.is_one:
            self._say(f"{hook.file} is not run: it defines no function setup(ctx)")
            return None
        return hook

    def _set_up(self, hook: SetupHook, manifest: "PluginManifest") -> None:
        self._say(f"running {hook.file} of {manifest.name}")
        hook.run(manifest.name, manifest.config, self.terminal, Limits().plugin_import)

    def _package(self, package: PipPackage) -> list[Installed]:
        coming = declared_by(package)
        self._require_one(coming, package.distribution or package.wanted)
        gathered = {name: self._gathered(name, fields) for name, fields in coming.items()}
        before, there = installed(), _distributions()
        package.install()
        found = package.plugins(before)
        owner = package.distribution or (found[0].distribution if found else package.wanted)
        if not found:
            fault = f"{owner!r} offers no plugin; it stays installed"
            raise SatchelError(fault, fix=f"to remove it: pip uninstall {owner}")
        names = list(dict.fromkeys(item.name for item in found))
        try:
            with ending_in_order(), self._telling_what_is_kept(names):
                self._require_one(names, owner)
                self._prepare(found, gathered)
                change_selection(self.console, names, Sources(), enable_name)
        except BaseException:
            self._after_failure(found, is_new=normalized(owner) not in there)
            raise
        known = {(item.path, item.digest) for item in before}
        if not os.path.isdir(package.wanted) and all((i.path, i.digest) in known for i in found):
            told = f"{owner} {found[0].version} was there already, and pip keeps such a version"
            self._say(f"{told}; to replace it say 'satchel uninstall {names[0]}' first")
        paths = {item.path for item in before}
        app = catalog()
        return [
            _outcome(app, item.name, item.version, "package", item.path, item.path not in paths)
            for item in found
        ]

    def _require_one(self, names: Collection[str], owner: str) -> None:
        """Refuse values for several plugins at once: each key is meant for one of them."""
        if self.values and len(names) > 1:
            fix = f"say 'satchel config set NAME KEY=VALUE', then install {owner} without --set"
            raise SatchelError(f"{owner!r} brings the plugins {', '.join(names)}", fix=fix)

    def _prepare(
        self, found: Sequence[DistributionFinding], gathered: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Write the values of the plugins of a package, and run their setups."""
        parts = _parts(found)
        for name in dict.fromkeys(item.name for item in found):
            manifest = parts[name].manifest if name in parts else None
            known = gathered.get(name)
            fields = manifest.config if manifest else ()
            self._configure(name, self._gathered(name, fields) if known is None else known)
        for part in parts.values():
            if part.manifest and (hook := self._hook(part)):
                self._set_up(hook, part.manifest)

    def _after_failure(self, found: Sequence[DistributionFinding], *, is_new: bool) -> None:
        """Take out a package that is new, or say how an earlier one was left."""
        item = found[0]
        if is_new:
            try:
                uninstall(item.distribution)
            except SatchelError as problem:
                self._say(f"{item.distribution} stays installed: {problem}")
            else:
                self._say("nothing was installed")
            return
        used = {entry.name for entry in catalog().all_plugins if entry.is_served}
        names = dict.fromkeys(other.name for other in found)
        states = [f"{name} is {'enabled' if name in used else 'not enabled'}" for name in names]
        told = f"{item.distribution} {item.version} is installed now, and stays"
        self._say(f"{told}; {', '.join(states)}")

    @contextmanager
    def _telling_what_is_kept(self, names: Iterable[str]) -> Iterator[None]:
        """Say which files of values were changed, if it fails."""
        before = {path: _content(path) for path in map(configuration_path, names)}
        try:
            yield
        except BaseException:
            for path, text in before.items():
                if _content(path) != text:
                    self._say(f"the values are kept in {shown_path(path)}")
            raise

    def _gathered(self, name: str, fields: "tuple[ConfigField, ...]") -> dict[str, str]:
        """Return the values that were given, and the answers for what is missing."""
        texts = as_texts(name, fields, self.values)
        given = {key.lower() for key in texts}
        missing = read_configuration(name, {}, fields=fields).missing
        for item in missing if self.terminal.is_there else ():
            if item.key not in given and (text := self._answer(item, fields)):
                texts[item.name] = text
        return texts

    def _answer(self, item: "ConfigField", fields: "tuple[ConfigField, ...]") -> str:
        """Ask for the value of a field until it is allowed; `""` leaves it for later."""
        if item.description:
            self._say(f"{item.name}: {item.description}")
        question = f"{item.name} ({item.type}: {item.allowed}; empty for later)"
        while given := self.terminal.answer(question, secret=item.is_secret):
            try:
                return as_text(fields, item.name, given)
            except DefinitionError as problem:
                self._say(str(problem))
        return ""

    def _configure(self, name: str, texts: Mapping[str, str]) -> None:
        if texts:
            change_env(configuration_path(name), texts)

    def _say(self, text: str) -> None:
        self.console.say(one_line(text))


def catalog() -> "Catalog":
    """Return what the user has, read and not run."""
    return Sources().open(run_code=False).catalog


def _outcome(  # noqa: PLR0917
    app: "Catalog", name: str, version: str, kind: str, path: str, is_new: bool
) -> Installed:
    plugins = app.all_plugins
    entry = next((item for item in plugins if (item.name, item.path) == (name, path)), None)
    missing = read_configuration(name, {}, fields=entry.supply.config).missing if entry else ()
    skills = sum(item.source == name for item in app.all_skills)
    shadowed = tuple(
        item
        for part in KINDS
        for item in entries_of(app, part)
        if part != "plugin" and item.source == name and item.state == "shadowed"
    )
    return Installed(
        name=name,
        version=version,
        kind=kind,
        path=path,
        entry=entry,
        missing=missing,
        skills=skills,
        shadowed=shadowed,
        is_new=is_new,
    )


def _content(path: str) -> bytes | None:
    try:
        return read_regular(path, MIB)[0]
    except UnreadableFileError:
        return None


def _distributions() -> frozenset[str]:
    """Return the names of all that is installed, also of what offers no plugin."""
    # Lazy: most plugins are folders.
    from importlib.metadata import distributions

    names = (item.metadata["Name"] for item in distributions())
    return frozenset(normalized(name) for name in names if name)


def print_installed(console: Console, done: Installed, *, as_json: bool) -> None:
    """Say what was installed, what it brings, what is missing, and what comes next."""
    if not as_json:
        word = "installed" if done.is_new else "installed anew"
        title = " ".join(part for part in (word, done.name, done.version) if part)
        console.out(one_line(f"{title} ({shown_path(done.path)}){_brings(done)}"))
    config = read_configuration(done.name, {}, fields=done.missing)
    for item in done.missing:
        console.say(one_line(f"{item.name!r} has no value; say: {config.command(item.name)}"))
    if not done.is_enabled:
        state = done.entry.state if done.entry else "not found"
        console.say(one_line(f"it is not used: {state}"))
        for problem in done.entry.diagnostics if done.entry else ():
            console.say(diagnostic_line(problem))
    for entry in done.shadowed:
        for problem in entry.diagnostics:
            console.say(diagnostic_line(problem))
    console.say(one_line(f"next: satchel show {done.name} --kind plugin"))


def _parts(found: Sequence[DistributionFinding]) -> dict[str, PluginFinding]:
    """Return what packages say of themselves, by the plugin's name, of those that do."""
    packages = scan_packages(found, Limits(), lambda _: False, {}).values()
    return {package.installed.name: package.part for package in packages if package.part}


def _brings(done: Installed) -> str:
    if done.entry is None:
        return ""
    supply = done.entry.supply
    amounts = ((len(supply.tools), "tool"), (done.skills, "skill"), (len(supply.groups), "group"))
    parts = [count(amount, what) for amount, what in amounts if amount]
    return f": {', '.join(parts)}" if parts else ""


def _require_apart(path: str, target: str) -> None:
    """Refuse to install what lies in the folder of the installed plugins, or over what is none."""
    home = os.path.realpath(os.path.dirname(target))
    if is_inside(os.path.realpath(path), home):
        raise SatchelError("lies in the folder of the installed plugins already", where=path)
    is_plugin = os.path.islink(target) or format_of(target) is not None
    if os.path.lexists(target) and not is_plugin:
        raise SatchelError("is there and is no plugin; nothing was installed", where=target)
