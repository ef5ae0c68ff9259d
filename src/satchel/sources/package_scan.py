"""Read installed plugins: their manifest, and the code of editable installs.

An installed package is described by its RECORD, so it is read once per version. An editable
install is somewhere else and may change at any time, like a plugin folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from satchel.files.file_reader import (
    digest_of,
    is_inside,
    read_or_none,
    real_path,
    stamped,
    touches,
)
from satchel.importing.module_paths import ModuleBase, edited_bases, locate, parents
from satchel.importing.shipped_skills import SHIPPED_SKILLS
from satchel.lazy_dataclass import dataclass
from satchel.sources.folder_reader import FolderReader, is_folder, list_folder
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import StampedPath
    from satchel.importing.distributions import DistributionFinding
    from satchel.importing.module_paths import LocatedModule
    from satchel.settings import Limits
    from satchel.sources.folder_reader import FolderContent

_HOOKS = rb"hookimpl|\bsatchel_[a-z]|^\s*from\s+(?:\.|%s\b)[\w.]*\s+import\s*\*"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFinding:
    """One installed plugin as it was read, not imported."""

    installed: DistributionFinding
    part: PluginFinding | None = None
    """Its toolkit.yaml and what that names, if it has one."""
    home: str = ""
    """The full name of the package with the toolkit.yaml."""
    entry: str = ""
    """The file of the entry point's module, `""` if it is unknown."""
    edited: LocatedModule | None = None
    """The package or single module of an editable install."""
    code: FolderContent | None = None
    """The code of that package, if the plugin is used."""
    shipped: tuple[str, ...] = ()
    """Skill folders in the packages that contain the entry point's module."""
    stamps: tuple[StampedPath, ...] = ()
    """The single module of an editable install, with its stamp when it was read."""
    has_code: ClassVar[bool] = True

    @property
    def path(self) -> str:
        """Return the `.dist-info` folder."""
        return self.installed.path

    @property
    def unit(self) -> str:
        """Return its unique key."""
        return f"{self.installed.distribution}:{self.installed.name}"

    @property
    def digest(self) -> str:
        """Return a digest of the metadata and of everything that was read."""
        part, code = self.part, self.code
        texts = (
            self.installed.digest,
            *self.skills,
            *((part.path, part.digest) if part else ()),
            *((code.digest, *map(str, code.diagnostics)) if code else ()),
        )
        return digest_of("\0".join(texts).encode("utf-8", "surrogatepass"))

    @property
    def installed_with_code(self) -> DistributionFinding:
        """Return the distribution with a digest that changes with its edited code.

        It is equal for all plugins of the distribution with this code.
        """
        if self.code is None:
            return self.installed
        both = f"{self.installed.digest}\0{self.code.digest}"
        return replace(self.installed, digest=digest_of(both.encode()))

    @property
    def code_paths(self) -> tuple[str, ...]:
        """Return the folders and single modules with its Python code."""
        if edited := self.edited:
            return (edited.path if os.path.isdir(edited.path) else edited.file,)
        names = (name for name in self.installed.files if name.endswith(".py"))
        tops = {name.split("/")[0] for name in names} - {".."}
        return tuple(os.path.join(self.installed.site, top) for top in sorted(tops))

    @property
    def skills(self) -> tuple[str, ...]:
        """Return the folders to search for its skills."""
        part = self.part.skills if self.part else ()
        folders = map(os.path.normpath, (*part, *self.installed.skills, *self.shipped))
        return tuple(dict.fromkeys(folders))

    @property
    def modules(self) -> Mapping[str, str]:
        """Return the full names of the modules with its tools, by their names in the manifest."""
        return self._full_names(self.part.modules) if self.part else {}

    @property
    def contract_modules(self) -> Mapping[str, str]:
        """Return the full names of the modules with its contracts, as in `modules`."""
        return self._full_names(self.part.contract_modules) if self.part else {}

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of all files."""
        part = (*self.part.diagnostics, *self.part.folder.diagnostics) if self.part else ()
        return (*part, *(self.code.diagnostics if self.code else ()))

    @property
    def links(self) -> frozenset[tuple[str, str]]:
        """Return the links among its edited files, with their targets."""
        part = self.part.folder.links if self.part and self.edited else frozenset()
        return part | (self.code.links if self.code else frozenset())

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the folder of an editable package, if it is a folder."""
        return (self.edited.path,) if self.edited and os.path.isdir(self.edited.path) else ()

    def may_have_hooks(self, limits: Limits) -> bool:
        """Return whether the entry point's module must be imported because it may have hooks."""
        if not self.installed.value:
            return not self.installed.skills
        if self.part is None or self.installed.attribute or not self.entry:
            return True
        source = read_or_none(self.entry, limits.plugin_source)
        return source is None or len(source) > limits.plugin_source or self._mentions_hooks(source)

    def hook_modules(self) -> tuple[str, ...]:
        """Return the full names of the manifest's modules that may have hooks."""
        part = self.part
        if part is None:
            return ()
        sources = {full: part.sources[part.file_of(name)] for name, full in self.modules.items()}
        return tuple(full for full, source in sources.items() if self._mentions_hooks(source))

    def _full_names(self, modules: Iterable[str]) -> Mapping[str, str]:
        existing = (name for name in modules if self.part and self.part.file_of(name))
        return {name: f"{self.home}.{name}" for name in existing}

    def _mentions_hooks(self, source: bytes) -> bool:
        """Return whether a source may define hooks, or import them by a star import."""
        top = re.escape(self.installed.module.partition(".")[0].encode())
        return re.search(_HOOKS % top, source, re.MULTILINE) is not None


PackageKey = tuple[str, str]
"""The identity of an installed plugin across scans: its metadata folder and its name."""


def scan_packages(
    installed: Iterable[DistributionFinding],
    limits: Limits,
    is_used: Callable[[DistributionFinding], bool],
    before: Mapping[PackageKey, PackageFinding],
    dirty: Iterable[str] | None = None,
) -> Mapping[PackageKey, PackageFinding]:
    """Read the manifests of installed plugins, and the edited code of those that are used.

    Results in `before` are reused. With `dirty`, an editable install is read again only if one of
    these paths is in it; `None` means everything may have changed.
    """
    changed = None if dirty is None else tuple(dirty)
    packages = {}
    for item in installed:
        key = (item.path, item.name)
        package, is_code_read = before.get(key), is_used(item)
        if package is None or not _is_current(package, item, changed, is_code_read=is_code_read):
            package = _package(item, limits, package, is_code_read=is_code_read)
        packages[key] = package
    return packages


def _is_current(
    before: PackageFinding,
    installed: DistributionFinding,
    dirty: tuple[str, ...] | None,
    *,
    is_code_read: bool,
) -> bool:
    if before.installed != installed:
        return False
    if before.edited is None:
        return True
    if dirty is None or before.links or is_code_read != (before.code is not None):
        return False
    own_paths = (before.installed.path, *before.roots, *(path for path, _ in before.stamps))
    return not any(touches(dirty, path) for path in own_paths)


def _package(
    installed: DistributionFinding,
    limits: Limits,
    before: PackageFinding | None,
    *,
    is_code_read: bool,
) -> PackageFinding:
    modules, is_edited = _locate_entry(installed)
    finding = PackageFinding(installed=installed, entry=modules[0].file if modules else "")
    homes = [it for it in modules if _has_manifest(it, installed, is_edited=is_edited)]
    is_code_read = is_code_read and is_edited and bool(modules)
    if is_edited and modules:
        finding = replace(finding, edited=_outermost(modules, homes))
    finding = replace(finding, shipped=tuple(_shipped(modules, finding)))
    if is_code_read and finding.edited and not finding.roots:
        # Stamped first: a file that changes while it is read is read again.
        finding = replace(finding, stamps=stamped([finding.edited.file]))
    if homes:
        from satchel.sources.plugin_scan import read_toolkit  # lazy: needed only with a manifest

        root = SearchRoot(
            path=homes[0].path,
            holds=RootKind.PLUGINS,
            scope=Precedence.PLUGIN,
            source=installed.distribution,
        )
        empty = PluginFinding(root=root, key="", entry_point=installed.name, is_edited=is_code_read)
        previous = before.part if before else None
        if previous is not None and (previous.root, previous.is_edited) != (root, is_code_read):
            previous = None
        part = read_toolkit(empty, real_path(homes[0].path), limits, previous)
        finding = replace(finding, part=part, home=homes[0].name)
    if is_code_read and finding.edited:
        finding = replace(finding, code=_code(finding.edited, finding.skills, limits, before))
    return finding


def _locate_entry(installed: DistributionFinding) -> tuple[tuple[LocatedModule, ...], bool]:
    """Return the entry point's module with its packages, and whether it is edited."""
    module, files = installed.module, installed.files
    top = module.partition(".")[0]
    # A path file may have the name of the package whose folder it adds.
    names = (file for file in files if not file.endswith(".pth"))
    is_recorded = any(file.startswith((f"{top}/", f"{top}.")) for file in names)
    # Satchel itself is never reloaded.
    if is_recorded or not files or top == "satchel":
        return parents(module, ModuleBase("", installed.site)), False
    return locate(module, edited_bases(installed.site, files)), True


def _has_manifest(
    module: LocatedModule, installed: DistributionFinding, *, is_edited: bool
) -> bool:
    path = os.path.join(module.path, MANIFEST_FILE)
    if module.file and not module.is_regular_package:
        return False  # a module hides a folder of the same name
    if is_edited or not installed.files:
        return os.path.lexists(path)
    # In a namespace package it may belong to another distribution.
    return os.path.relpath(path, installed.site).replace(os.sep, "/") in installed.files


def _shipped(modules: tuple[LocatedModule, ...], finding: PackageFinding) -> Iterator[str]:
    """Yield the skill folders in these packages; for edited ones also folders not yet created."""
    for module in modules:
        folder = os.path.join(module.path, *SHIPPED_SKILLS)
        if finding.edited:
            # The first skill may be created later, while the folder is watched.
            if is_inside(module.path, finding.edited.path) and os.path.isdir(module.path):
                yield folder
        else:
            prefix = os.path.relpath(folder, finding.installed.site).replace(os.sep, "/") + "/"
            if any(file.startswith(prefix) for file in finding.installed.files):
                yield folder


def _outermost(modules: tuple[LocatedModule, ...], homes: list[LocatedModule]) -> LocatedModule:
    """Return the outermost package that no other distribution can share."""
    unshared = [it for it in modules if it.is_regular_package or it in homes]
    if unshared:
        return unshared[-1]
    # A package without `__init__.py`, or a single module at the top level.
    return modules[1] if modules[0].file and len(modules) > 1 else modules[0]


def _code(
    edited: LocatedModule, skills: Iterable[str], limits: Limits, before: PackageFinding | None
) -> FolderContent:
    """Read the code of an editable package or single module, without its skill folders."""
    is_package = os.path.isdir(edited.path)
    folder = edited.path if is_package else os.path.dirname(edited.file)
    name = os.path.basename(edited.file)

    def wanted(file: str) -> bool:
        return file.endswith(".py") if is_package else file == name

    if is_package:
        exclude = {os.path.relpath(path, folder).replace(os.sep, "/") for path in skills}
    else:
        exclude = {entry.name for entry in list_folder(folder, []) if is_folder(entry)}
    reader = FolderReader(
        root=real_path(folder),
        most_files=limits.files_per_skill,
        largest=limits.plugin_source,
        wanted=wanted,
        exclude=frozenset(exclude),
    )
    same = before is not None and before.edited == edited
    return reader.read(folder, before.code if before and same else None)
