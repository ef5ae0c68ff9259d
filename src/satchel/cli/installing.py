"""Installing a plugin: read and checked first, then put in place, configured, set up, enabled."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.asking import Terminal
from satchel.cli.choosing import chosen, own_sources, shown_path, switch_on
from satchel.cli.commands.validate import check
from satchel.cli.configuring import from_stdin, open_plugin
from satchel.cli.console import Console
from satchel.cli.render import count, told
from satchel.diagnostics import Severity, has_error
from satchel.errors import DefinitionError, SatchelError
from satchel.plugins.declaring import is_isolated
from satchel.settings import Limits
from satchel.setup.packages import Package, file, installed, project, requirement
from satchel.setup.placing import Placing, removed, staged_copy, staged_link
from satchel.setup.running import Hook, hook_of
from satchel.setup.values import as_text
from satchel.sources import (
    DistributionFinding,
    Holds,
    PluginFinding,
    format_of,
    own_plugins,
    place,
    scan_packages,
    scan_plugins,
)
from satchel.sources.config import configuration_path, read_configuration
from satchel.sources.envfile import change_env
from satchel.sources.files import is_inside
from satchel.text import one_line

if TYPE_CHECKING:  # The command line stays light: whoever has an entry has loaded its room.
    from satchel.catalog import Catalog, PluginEntry
    from satchel.manifests import ConfigField, PluginManifest

_BY_ADDRESS = re.compile(r"[A-Za-z0-9._-]+\s*(?:\[[^\]]*\])?\s*@\s*\S+")


@dataclass(frozen=True, slots=True)
class Installed:
    """One plugin that was installed; `kind` is folder, link or package."""

    name: str
    version: str
    kind: str
    path: str
    entry: "PluginEntry | None"
    missing: tuple["ConfigField", ...]
    is_new: bool = True

    @property
    def is_enabled(self) -> bool:
        """Tell whether it is used."""
        return self.entry is not None and self.entry.is_served

    def as_dict(self) -> dict[str, Any]:
        """Return its JSON shape."""
        return {
            "name": self.name,
            "version": self.version,
            "kind": self.kind,
            "path": self.path,
            "enabled": self.is_enabled,
            "missing": [item.name for item in self.missing],
        }


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs what the user named, with the values that they gave."""

    console: Console
    terminal: Terminal
    values: Mapping[str, str]
    editable: bool = False

    def install(self, word: str) -> list[Installed]:
        """Install a folder, a project, a file or a distribution. Raises `SatchelError`."""
        wanted = self._meant(word)
        return self._package(wanted) if isinstance(wanted, Package) else [self._folder(wanted)]

    def _meant(self, word: str) -> str | Package:
        """Return the plugin's folder that a word means, or what pip is to be asked for."""
        path = os.path.expanduser(word)
        by_path = os.sep in word or word.startswith((".", "~"))
        if os.path.isdir(path):
            if format_of(path) is not None:
                if not by_path:
                    self._say(f"{word!r} is taken as the folder ./{word}")
                return path
            if by_path and (found := project(path, editable=self.editable)):
                return found
            if by_path:
                fault = "holds neither the manifest of a plugin nor a pyproject.toml"
                raise SatchelError(fault, where=word)
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

    def _folder(self, path: str) -> Installed:
        found, manifest = self._sound(path)
        name, target = manifest.name, os.path.join(own_plugins(), manifest.name)
        _require_apart(path, target)
        hook = self._hook(found)
        texts = self._gathered(name, manifest.config)
        is_new = not os.path.lexists(target)
        staged = staged_link(path, target) if self.editable else staged_copy(path, target)
        try:
            with Placing(staged, target) as placing:
                self._configure(name, texts)
                if hook:
                    # A copy is set up where it will stay.
                    base = os.path.realpath(path) if self.editable else target
                    code = os.path.relpath(found.code_path, found.path)
                    self._set_up(hook, os.path.normpath(os.path.join(base, code)), manifest)
                chosen(self.console, [name], own_sources(), switch_on)
                placing.keep()
        except BaseException:
            before = "nothing was installed" if is_new else "what was installed before is back"
            kept = f"; the values are kept in {shown_path(configuration_path(name))}"
            self._say(before + (kept if texts else ""))
            raise
        finally:
            removed(staged)
        kind = "link" if self.editable else "folder"
        return self._outcome(name, manifest.version, kind, target, is_new=is_new)

    def _sound(self, path: str) -> "tuple[PluginFinding, PluginManifest]":
        """Read a plugin's folder. Raises `SatchelError` if it has errors, which are told."""
        _, problems = check(path)
        for item in dict.fromkeys(problems):
            if item.severity is not Severity.INFO:
                self.console.say(told(item))
        found = scan_plugins(place(path, Holds.PLUGINS), Limits()).findings.get("")
        if found is None or found.manifest is None or has_error(problems):
            raise SatchelError("has errors; nothing was installed", where=path)
        return found, found.manifest

    def _hook(self, found: PluginFinding) -> Hook | None:
        hook = hook_of(found)
        if hook and is_isolated(found):
            self._say(f"{hook.file} is not run: the plugin asks for a process of its own")
            return None
        if hook and not hook.is_one:
            self._say(f"{hook.file} is not run: it defines no function setup(ctx)")
            return None
        return hook

    def _set_up(self, hook: Hook, folder: str, manifest: "PluginManifest") -> None:
        self._say(f"running {hook.file} of {manifest.name}")
        placed = replace(hook, folder=folder)
        placed.run(manifest.name, manifest.config, self.terminal, Limits().plugin_import)

    def _package(self, package: Package) -> list[Installed]:
        before = installed()
        package.install()
        found = package.plugins(before)
        owner = package.distribution or package.wanted
        if not found:
            fault = f"{owner!r} offers no plugin; it stays installed"
            raise SatchelError(fault, fix=f"to remove it: pip uninstall {owner}")
        names = list(dict.fromkeys(item.name for item in found))
        if self.values and len(names) > 1:
            fix = f"say 'satchel config set NAME KEY=VALUE', then install {owner} without --set"
            raise SatchelError(f"{owner!r} brings the plugins {', '.join(names)}", fix=fix)
        for name in names:
            fields = open_plugin(name, own_sources()).config.fields
            self._configure(name, self._gathered(name, fields))
        for part in _parts(found):
            if part.manifest and (hook := self._hook(part)):
                self._set_up(hook, hook.folder, part.manifest)
        chosen(self.console, names, own_sources(), switch_on)
        known = {item.path for item in before}
        return [
            self._outcome(
                item.name, item.version, "package", item.path, is_new=item.path not in known
            )
            for item in found
        ]

    def _gathered(self, name: str, fields: "tuple[ConfigField, ...]") -> dict[str, str]:
        """Return the values that were given, and the answers for what is missing."""
        texts, faults = {}, []
        for key, value in self.values.items():
            try:
                texts[key] = as_text(fields, key, value)
            except DefinitionError as problem:
                faults.append(str(problem))
        if faults:
            raise SatchelError("; ".join(faults), where=name)
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

    def _outcome(self, name: str, version: str, kind: str, path: str, *, is_new: bool) -> Installed:
        entry = next(
            (item for item in catalog().all_plugins if (item.name, item.path) == (name, path)), None
        )
        missing = read_configuration(name, {}, fields=entry.supply.config).missing if entry else ()
        return Installed(name, version, kind, path, entry, missing, is_new)

    def _say(self, text: str) -> None:
        self.console.say(one_line(text))


def catalog() -> "Catalog":
    """Return what the user has, read and not run."""
    return own_sources().open(run_code=False).catalog


def pairs(given: Sequence[str]) -> dict[str, str]:
    """Take `KEY=VALUE` apart; the value '-' is read from stdin."""
    found: dict[str, str] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.BadParameter("give KEY=VALUE", param_hint="--set")
        if key.lower() in {known.lower() for known in found}:
            raise click.BadParameter(f"{key!r} is given twice", param_hint="--set")
        found[key] = value
    if list(found.values()).count("-") > 1:
        raise click.UsageError("stdin holds one value; give '-' once")
    return {key: from_stdin() if value == "-" else value for key, value in found.items()}


def tell(console: Console, done: Installed, *, as_json: bool) -> None:
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
            console.say(told(problem))
    console.say(one_line(f"next: satchel show {done.name} --kind plugin"))


def _parts(found: Sequence[DistributionFinding]) -> list[PluginFinding]:
    """Return what packages say of themselves, of those that do."""
    packages = scan_packages(found, Limits(), lambda _: False, {}).values()
    return [package.part for package in packages if package.part]


def _brings(done: Installed) -> str:
    if done.entry is None:
        return ""
    supply = done.entry.supply
    skills = [item for item in catalog().all_skills if item.source == done.name]
    parts = [
        count(len(things), what)
        for things, what in ((supply.tools, "tool"), (skills, "skill"), (supply.groups, "group"))
        if things
    ]
    return f": {', '.join(parts)}" if parts else ""


def _require_apart(path: str, target: str) -> None:
    """Refuse to install what lies in the folder of the installed plugins, or over what is none."""
    home = os.path.realpath(os.path.dirname(target))
    if is_inside(os.path.realpath(path), home):
        raise SatchelError("lies in the folder of the installed plugins already", where=path)
    is_plugin = os.path.islink(target) or format_of(target) is not None
    if os.path.lexists(target) and not is_plugin:
        raise SatchelError("is there and is no plugin; nothing was installed", where=target)
