"""Install a plugin: check it, put it in place, configure it, run its setup, and enable it."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from satchel.cli.base_command import Sources
from satchel.cli.format_checks import check_path, check_plugins
from satchel.cli.install_consent import (
    code_of,
    lines_of_folder,
    require_consent,
    require_unchanged,
    text_of_code,
)
from satchel.cli.install_target import WHAT_TO_GIVE, require_no_typo
from satchel.cli.installed_plugin import Installed, installed_plugin, read_catalog
from satchel.cli.marketplace_choice import choose_plugin, files_of_choice
from satchel.cli.package_preview import declared_fields, lines_of_package
from satchel.cli.plugin_config import as_texts
from satchel.cli.rendering import problem_lines
from satchel.cli.selection_editor import change_selection, enable_name, require_valid_selection
from satchel.cli.terminal import NotAgreedError, Terminal
from satchel.configuration.configuration import configuration_path, read_configuration
from satchel.configuration.env_file import change_env
from satchel.diagnostics import Severity, has_error
from satchel.errors import DefinitionError, SatchelError
from satchel.files.file_reader import is_inside, read_or_none
from satchel.importing.distributions import DistributionFinding, normalized
from satchel.lazy_dataclass import dataclass
from satchel.plugins.plugin_reading import is_isolated
from satchel.reports.short_texts import short_path
from satchel.settings import MIB, Limits
from satchel.setup.artefact_signatures import (
    Signer,
    recorded,
    require_signer,
    signature_note,
    signers_of,
)
from satchel.setup.field_values import as_text
from satchel.setup.folder_placement import (
    ending_in_order,
    exclusive_change,
    placed,
    removed,
    staged_copy,
    staged_link,
)
from satchel.setup.pip_packages import (
    PACKAGE_FILES,
    PipPackage,
    installed,
    is_project,
    package_file,
    project,
    requirement,
    uninstall,
)
from satchel.setup.setup_hook import SetupHook, find_setup_hook
from satchel.setup.source_records import keep_signer
from satchel.sources.marketplaces import is_marketplace
from satchel.sources.package_scan import scan_packages
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import format_of
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, own_plugins, search_root
from satchel.text import one_line

if TYPE_CHECKING:
    from satchel.formats.config_fields import ConfigField
    from satchel.formats.toolkit_manifest import PluginManifest

_HOW_TO_READ = "read the code with --full, or look for lures with 'satchel scan'"
_URL_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+\s*(?:\[[^\]]*\])?\s*@\s*\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """Installs plugins, with configuration values from the user."""

    terminal: Terminal
    values: Mapping[str, str]
    editable: bool = False
    plugin: str = ""
    """The plugin to choose from a marketplace."""
    agrees: bool = False
    """Whether the user agreed already to run what is installed."""
    full: bool = False
    """Whether all code of a plugin's folder is printed before the question."""
    signer: Signer | None = None
    """Who must have signed it."""
    base: str = ""
    """A copy that is gone afterwards: messages show the paths in it from `place`."""
    place: str = ""
    """Where in its source that copy came from."""

    def install(self, target: str) -> list[Installed]:
        """Install a folder, a project, a file or a distribution. Raises `SatchelError`."""
        require_valid_selection()
        source = self._resolve(target)
        if self.plugin and not isinstance(source, PluginFinding):
            raise click.UsageError("--plugin is for the folder of a marketplace")
        if isinstance(source, PipPackage):
            if self.full:
                raise click.UsageError(
                    "--full is for the folder of a plugin, not for what pip installs"
                )
            return self._install_package(source)
        require_signer(self.signer, (), target)
        return [self.install_folder(source)]

    def _resolve(self, target: str) -> str | PluginFinding | PipPackage:
        """Return the folder of a plugin, a plugin of a marketplace, or a package for pip."""
        path = os.path.expanduser(target)
        is_path = self.editable or os.sep in target or target.startswith((".", "~"))
        is_path = is_path or target.endswith(PACKAGE_FILES)
        if "://" in target and not _URL_REQUIREMENT.fullmatch(target):
            # Not quoted: an address may contain a password.
            message = "an address needs the name of its distribution"
            raise SatchelError(message, fix="write 'NAME @ git+https://...'")
        if os.path.isdir(path) and (source := self._resolve_folder(target, path, is_path=is_path)):
            return source
        if os.path.isfile(path) and not self.editable and (package := package_file(path)):
            return package
        is_requirement = not is_path or _URL_REQUIREMENT.fullmatch(target)
        package = requirement(target) if is_requirement else None
        require_no_typo(target, package)
        if self.editable:
            raise click.UsageError("-e takes the folder of a plugin or of a pip project")
        if package is None:
            raise SatchelError("is not a plugin", where=target, fix=WHAT_TO_GIVE)
        shown = package.shown
        self._say(f"{shown!r} is treated as a distribution: no folder ./{shown} is a plugin")
        return package

    def _resolve_folder(
        self, source: str, path: str, *, is_path: bool
    ) -> str | PluginFinding | PipPackage | None:
        """Return the plugin or project in a folder; `None` if `source` means a distribution."""
        is_plugin = format_of(path) is not None
        if not is_path and (is_plugin or is_marketplace(path)):
            self._say(f"{source!r} is treated as the folder ./{source}")
        if is_plugin and self.editable and not self.plugin:
            return path  # a link to a plugin that lists others gives them, too
        if is_marketplace(path):
            if self.editable:
                raise SatchelError(
                    "is a marketplace; its plugins are copied, not linked",
                    where=source,
                    fix="leave out -e",
                )
            return choose_plugin(source, self.plugin, self.terminal)
        if is_plugin:
            return path
        if is_path:
            if package := project(path, editable=self.editable):
                return package
            message = "contains neither the manifest of a plugin nor a pyproject.toml"
            raise SatchelError(message, where=source)
        if is_project(path):
            fix = f"write ./{source} for the local project, '{source}>=0' for the distribution"
            raise SatchelError("is ambiguous", where=source, fix=fix)
        return None

    def install_folder(self, source: str | PluginFinding) -> Installed:
        """Install the plugin of a folder, or one of a marketplace. Raises `SatchelError`."""
        path = source if isinstance(source, str) else source.path
        plugin, manifest = self._read_valid(source)
        shown = self._shown(path)
        name, target = manifest.name, os.path.join(own_plugins(), manifest.name)
        home = os.path.realpath(os.path.dirname(target))
        if is_inside(os.path.realpath(path), home):
            raise SatchelError("is already in the folder of installed plugins", where=shown)
        is_known = format_of(target) is not None or is_marketplace(target)
        if os.path.lexists(target) and not (is_known or os.path.islink(target)):
            raise SatchelError("exists and is not a plugin; nothing was installed", where=target)
        hook, unit = self._find_hook(plugin), code_of(plugin)
        if unit is not None and unit.problem:
            message = f"cannot be compared completely: {unit.problem.text}; nothing was installed"
            raise SatchelError(message, where=shown)
        lines = lines_of_folder(plugin, unit, hook)
        for line in text_of_code(unit) if self.full else ():
            self.terminal.say(line, as_is=True)
        hint = "" if self.full or unit is None else _HOW_TO_READ
        require_consent(lines, self.terminal, agrees=self.agrees, hint=hint)
        texts = self._collect_values(name, manifest.config)
        if hook:
            # The setup of a copy runs in its final folder.
            base = os.path.realpath(path) if self.editable else target
            code = os.path.relpath(plugin.code_path, plugin.path)
            hook = replace(hook, folder=os.path.normpath(os.path.join(base, code)))
        with exclusive_change(target, self._say), self._report_kept_values([name]):
            if self.editable:
                staged = staged_link(path, target)
            else:
                # With the files that let its plugin be used alone.
                staged = staged_copy(path, target, files_of_choice(plugin), plugin.chosen)
                try:
                    require_unchanged(unit, staged)
                except SatchelError:
                    removed(staged)
                    raise
            is_new = self._place(staged, target, manifest, texts, hook)
        return installed_plugin(
            read_catalog(),
            name=name,
            version=manifest.version,
            kind="link" if self.editable else "folder",
            path=target,
            is_new=is_new,
        )

    def _place(
        self,
        staged: str,
        target: str,
        manifest: "PluginManifest",
        texts: Mapping[str, str],
        hook: SetupHook | None,
    ) -> bool:
        """Place, configure, set up and enable a staged plugin, or undo all of it on an error.

        Returns whether the plugin is new.
        """
        is_new = not os.path.lexists(target)
        try:
            with placed(staged, target):
                self._configure(manifest.name, texts)
                if hook:
                    self._run_hook(hook, manifest)
                self._enable([manifest.name])
        except BaseException:
            self._say("nothing was installed" if is_new else "the old version was restored")
            raise
        return is_new

    def _read_valid(self, source: str | PluginFinding) -> "tuple[PluginFinding, PluginManifest]":
        """Read a plugin, and print what is wrong. An invalid skill of it only is not served.

        Raises `SatchelError` if there is no plugin or it has other errors.
        """
        if isinstance(source, str):
            path, problems = source, check_path(source).problems
            findings = scan_plugins(search_root(path, RootKind.PLUGINS), Limits()).findings.values()
            # Without a key, it is in the folder itself; a marketplace may have others below.
            plugin = next((item for item in findings if not item.key), None)
        else:
            path, problems, plugin = source.path, check_plugins([source]).problems, source
        shown = (
            replace(item, where=replace(item.where, path=self._shown(item.where.path)))
            for item in dict.fromkeys(problems)
            if item.severity is not Severity.INFO
        )
        for line in problem_lines(shown):
            self.terminal.say(line)
        own = (*plugin.diagnostics, *plugin.folder.diagnostics) if plugin else ()
        if plugin is None or plugin.manifest is None or has_error(own):
            raise SatchelError("has errors; nothing was installed", where=self._shown(path))
        return plugin, plugin.manifest

    def _shown(self, path: str) -> str:
        is_below = self.base and is_inside(path, self.base)
        if not is_below:
            return path
        return os.path.normpath(os.path.join(self.place, os.path.relpath(path, self.base)))

    def _find_hook(self, plugin: PluginFinding) -> SetupHook | None:
        hook = find_setup_hook(plugin)
        if hook and is_isolated(plugin):
            self._say(f"{hook.file} is not run: the plugin runs in its own process")
            return None
        if hook and not hook.has_setup:
            self._say(f"{hook.file} is not run: it does not define setup(ctx)")
            return None
        return hook

    def _run_hook(self, hook: SetupHook, manifest: "PluginManifest") -> None:
        self._say(f"running {hook.file} of {manifest.name}")
        try:
            hook.run(manifest.name, manifest.config, self.terminal, Limits().plugin_import)
        except SatchelError as problem:
            if isinstance(problem.__cause__, NotAgreedError):
                raise problem.__cause__ from None
            raise

    def _install_package(self, package: PipPackage) -> list[Installed]:
        fields_by_plugin = declared_fields(package)
        self._require_one_plugin(fields_by_plugin, package.distribution or package.target)
        package, signers, signature = _signed(package)
        require_signer(self.signer, signers, package.shown)
        lines = lines_of_package(package, signature)
        require_consent(lines, self.terminal, agrees=self.agrees)
        values = {
            name: self._collect_values(name, fields) for name, fields in fields_by_plugin.items()
        }
        from importlib.metadata import distributions  # lazy: most plugins are folders

        before = installed()
        distributions_before = {normalized(item.metadata["Name"] or "") for item in distributions()}
        package.install()
        plugins = package.plugins(before)
        owner = package.distribution or (plugins[0].distribution if plugins else package.target)
        if not plugins:
            message = f"{owner!r} contains no plugin; it stays installed"
            raise SatchelError(message, fix=f"to remove it: pip uninstall {owner}")
        names = list(dict.fromkeys(item.name for item in plugins))
        try:
            with ending_in_order(), self._report_kept_values(names):
                self._require_one_plugin(names, owner)
                self._set_up_package(plugins, values)
                self._enable(names)
        except BaseException:
            self._clean_up(plugins, is_new=normalized(owner) not in distributions_before)
            raise
        versions = {(item.path, item.digest) for item in before}
        is_unchanged = all((item.path, item.digest) in versions for item in plugins)
        if is_unchanged and not os.path.isdir(package.target):
            text = f"{owner} {plugins[0].version} was already installed, so pip did not replace it"
            self._say(f"{text}; to replace it, run 'satchel uninstall {names[0]}' first")
        else:
            self._keep_signers(plugins, package, recorded(signers))
        paths = {item.path for item in before}
        catalog = read_catalog()
        return [
            installed_plugin(
                catalog,
                name=item.name,
                version=item.version,
                kind="package",
                path=item.path,
                is_new=item.path not in paths,
            )
            for item in plugins
        ]

    def _keep_signers(
        self, plugins: Iterable[DistributionFinding], package: PipPackage, signer: str
    ) -> None:
        source = os.path.basename(package.target) if package.is_file else package.target
        try:
            for path in dict.fromkeys(item.path for item in plugins):
                keep_signer(path, source, signer)
        except SatchelError as problem:
            self._say(f"who signed it is not recorded: {problem}")

    def _require_one_plugin(self, names: Collection[str], owner: str) -> None:
        """Refuse `--set` for a package with several plugins: a key does not name its plugin."""
        if self.values and len(names) > 1:
            fix = f"run 'satchel config set NAME KEY=VALUE', then install {owner} without --set"
            raise SatchelError(f"{owner!r} contains the plugins {', '.join(names)}", fix=fix)

    def _set_up_package(
        self, plugins: Sequence[DistributionFinding], values: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Write the values of all plugins of a package, and run their setups."""
        packages = scan_packages(plugins, Limits(), lambda _: False, {}).values()
        parts = {package.installed.name: package.part for package in packages if package.part}
        for name in dict.fromkeys(item.name for item in plugins):
            if (texts := values.get(name)) is None:
                manifest = parts[name].manifest if name in parts else None
                texts = self._collect_values(name, manifest.config if manifest else ())
            self._configure(name, texts)
        for part in parts.values():
            if part.manifest and (hook := self._find_hook(part)):
                self._run_hook(hook, part.manifest)

    def _clean_up(self, plugins: Sequence[DistributionFinding], *, is_new: bool) -> None:
        """Uninstall a new package after an error; for an upgraded one, print its state."""
        item = plugins[0]
        if is_new:
            try:
                uninstall(item.distribution)
            except SatchelError as problem:
                self._say(f"{item.distribution} stays installed: {problem}")
            else:
                self._say("nothing was installed")
            return
        served = {entry.name for entry in read_catalog().all_plugins if entry.is_served}
        names = dict.fromkeys(plugin.name for plugin in plugins)
        states = [f"{name} is {'enabled' if name in served else 'not enabled'}" for name in names]
        self._say(f"{item.distribution} {item.version} stays installed; {', '.join(states)}")

    @contextmanager
    def _report_kept_values(self, names: Iterable[str]) -> Iterator[None]:
        """On an error, print which configuration files keep their new values."""
        before = {path: read_or_none(path, MIB) for path in map(configuration_path, names)}
        try:
            yield
        except BaseException:
            for path, text in before.items():
                if read_or_none(path, MIB) != text:
                    self._say(f"the values are kept in {short_path(path)}")
            raise

    def _collect_values(self, name: str, fields: "tuple[ConfigField, ...]") -> dict[str, str]:
        """Return the values from `--set`, and ask the user for missing ones."""
        texts = as_texts(name, fields, self.values)
        keys = {key.lower() for key in texts}
        missing = read_configuration(name, {}, fields=fields).missing
        for item in missing if self.terminal.is_there else ():
            if item.key not in keys and (text := self._ask_for(item, fields)):
                texts[item.name] = text
        return texts

    def _ask_for(self, item: "ConfigField", fields: "tuple[ConfigField, ...]") -> str:
        """Ask for the value of a field until it is valid; return `""` for an empty answer."""
        if item.description:
            self._say(f"{item.name}: {item.description}")
        question = f"{item.name} ({item.type}: {item.allowed}; empty to set it later)"
        while answer := self.terminal.answer(question, secret=item.is_secret):
            try:
                return as_text(fields, item.name, answer)
            except DefinitionError as problem:
                self._say(str(problem))
        return ""

    def _configure(self, name: str, texts: Mapping[str, str]) -> None:
        if texts:
            change_env(configuration_path(name), texts)

    def _enable(self, names: Sequence[str]) -> None:
        change_selection(self.terminal.console, names, Sources(), enable_name, force=True)

    def _say(self, text: str) -> None:
        self.terminal.say(one_line(text))


def _signed(package: PipPackage) -> tuple[PipPackage, tuple[Signer, ...], str]:
    """Return a package, who signed it, and what to say about that. Raises `SatchelError`."""
    if package.is_file:
        signers = signers_of(package.target, package.sha256)
        return package, signers, signature_note(package.target, signers)
    if os.path.isdir(package.target):
        return package, (), "unsigned"
    from satchel.setup.index_attestations import attested  # lazy: most plugins are folders

    attestations = attested(package)
    return attestations.package, attestations.signers, attestations.note
