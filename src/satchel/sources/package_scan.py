"""Installed plugins as they were read: what they say of themselves, and code that is edited.

An installed package is what its RECORD says, so it is read once for each version. One that is
installed editably lies somewhere else and may change at any time, like a plugin folder.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from satchel.diagnostics import Diagnostic
from satchel.settings import Limits
from satchel.sources.distributions import DistributionFinding
from satchel.sources.file_reader import (
    StampedPath,
    UnreadableFileError,
    digest_of,
    is_inside,
    read_regular,
    stamped,
)
from satchel.sources.folder_reader import FolderContent, FolderReader, is_folder, list_folder
from satchel.sources.module_paths import LocatedModule, ModuleBase, edited_bases, locate, parents
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import MANIFEST_FILE
from satchel.sources.plugin_scan import read_toolkit
from satchel.sources.search_roots import Precedence, RootKind, SearchRoot
from satchel.sources.shipped_skills import SHIPPED_SKILLS

_HOOKS = rb"hookimpl|\bsatchel_[a-z]|^\s*from\s+(?:\.|%s\b)[\w.]*\s+import\s*\*"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFinding:
    """One installed plugin as it was read, not imported."""

    installed: DistributionFinding
    part: PluginFinding | None = None
    """What its toolkit.yaml says, if it has one."""
    home: str = ""
    """The package that holds toolkit.yaml, by its full name."""
    entry: str = ""
    """The file of the module that the entry point names, `""` if it is not known."""
    edited: LocatedModule | None = None
    """The package, or the single module, that an editable install leaves where it is edited."""
    code: FolderContent | None = None
    """The code of that package, if somebody uses it."""
    shipped: tuple[str, ...] = ()
    """Folders of skills beside the module of the entry point, however deep that is."""
    stamps: tuple[StampedPath, ...] = ()
    """The single module that is edited, with the stamp that it had when it was read."""

    @property
    def digest(self) -> str:
        """Name the content: that of the metadata, and that of what is edited."""
        part, code = self.part, self.code
        found = (
            self.installed.digest,
            *self.skills,
            *((part.path, part.digest) if part else ()),
            *((code.digest, *map(str, code.diagnostics)) if code else ()),
        )
        return digest_of("\0".join(found).encode("utf-8", "surrogatepass"))

    @property
    def installed_with_code(self) -> DistributionFinding:
        """Return what is installed, with a digest that differs when any of its code does.

        It is the same for all plugins of the distribution that have this code.
        """
        if self.code is None:
            return self.installed
        both = f"{self.installed.digest}\0{self.code.digest}"
        return replace(self.installed, digest=digest_of(both.encode()))

    @property
    def skills(self) -> tuple[str, ...]:
        """Return the folders to search for its skills."""
        part = self.part.skills if self.part else ()
        found = map(os.path.normpath, (*part, *self.installed.skills, *self.shipped))
        return tuple(dict.fromkeys(found))

    @property
    def modules(self) -> Mapping[str, str]:
        """Return the modules that hold its tools: their names in the manifest, and their own."""
        return self._full_names(self.part.modules) if self.part else {}

    @property
    def contract_modules(self) -> Mapping[str, str]:
        """Return the modules that hold the contracts of its manifest, as above."""
        return self._full_names(self.part.contract_modules) if self.part else {}

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what was wrong with the files."""
        part = (*self.part.diagnostics, *self.part.folder.diagnostics) if self.part else ()
        return (*part, *(self.code.diagnostics if self.code else ()))

    @property
    def links(self) -> frozenset[tuple[str, str]]:
        """Return the links among its files that are edited, with their targets."""
        part = self.part.folder.links if self.part and self.edited else frozenset()
        return part | (self.code.links if self.code else frozenset())

    @property
    def roots(self) -> tuple[str, ...]:
        """Return the folders in which it is edited."""
        return (self.edited.path,) if self.edited and os.path.isdir(self.edited.path) else ()

    def may_have_hooks(self, limits: Limits) -> bool:
        """Tell whether the module of its entry point has to be imported for its hooks."""
        if not self.installed.value:
            return not self.installed.skills
        if self.part is None or self.installed.attribute or not self.entry:
            return True
        try:
            source, _ = read_regular(self.entry, limits.plugin_source)
        except UnreadableFileError:
            return True
        return len(source) > limits.plugin_source or self._mentions_hooks(source)

    def hooked(self) -> tuple[str, ...]:
        """Return those of the modules of its manifest that may have hooks, by their full names."""
        part = self.part
        if part is None:
            return ()
        sources = {full: part.sources[part.file_of(name)] for name, full in self.modules.items()}
        return tuple(full for full, source in sources.items() if self._mentions_hooks(source))

    def _full_names(self, modules: Iterable[str]) -> Mapping[str, str]:
        """Return those modules of the part that are there, with their full names."""
        there = (name for name in modules if self.part and self.part.file_of(name))
        return {name: f"{self.home}.{name}" for name in there}

    def _mentions_hooks(self, source: bytes) -> bool:
        """Tell whether a module may have hooks of its own, or all those of a module beside it."""
        top = re.escape(self.installed.module.partition(".")[0].encode())
        return re.search(_HOOKS % top, source, re.MULTILINE) is not None


PackageKey = tuple[str, str]
"""What makes an installed plugin the same one in every look: its metadata's folder, its name."""


def scan_packages(
    installed: Iterable[DistributionFinding],
    limits: Limits,
    is_used: Callable[[DistributionFinding], bool],
    before: Mapping[PackageKey, PackageFinding],
    dirty: Iterable[str] | None = None,
) -> Mapping[PackageKey, PackageFinding]:
    """Read what installed plugins say of themselves, and the code of those that are used.

    `before` saves reading what has not changed; with `dirty`, what is edited is looked at only
    if one of these paths lies in it.
    """
    changed = None if dirty is None else tuple(dirty)
    found = {}
    for item in installed:
        key = (item.path, item.name)
        old, is_code_read = before.get(key), is_used(item)
        if old is None or not _still_holds(old, item, changed, is_code_read=is_code_read):
            old = _package(item, limits, old, is_code_read=is_code_read)
        found[key] = old
    return found


def _still_holds(
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
    return not _touches(before, dirty)


def _package(
    installed: DistributionFinding,
    limits: Limits,
    before: PackageFinding | None,
    *,
    is_code_read: bool,
) -> PackageFinding:
    names, is_edited = _names(installed)
    found = PackageFinding(installed=installed, entry=names[0].file if names else "")
    homes = [name for name in names if _has_manifest(name, installed, is_edited=is_edited)]
    is_code_read = is_code_read and is_edited and bool(names)
    if is_edited and names:
        found = replace(found, edited=_outermost(names, homes))
    found = replace(found, shipped=tuple(_shipped(names, found)))
    if is_code_read and found.edited and not found.roots:
        # Stamped first: what changes while it is read is read again.
        found = replace(found, stamps=stamped([found.edited.file]))
    if homes:
        part = _part(homes[0], installed, limits, before, is_edited=is_code_read)
        found = replace(found, part=part, home=homes[0].name)
    if is_code_read and found.edited:
        found = replace(found, code=_code(found.edited, found.skills, limits, before))
    return found


def _touches(package: PackageFinding, dirty: tuple[str, ...]) -> bool:
    files = (path for path, _ in package.stamps)
    own = (package.installed.path, *package.roots, *files)
    return any(is_inside(path, root) or is_inside(root, path) for path in dirty for root in own)


def _names(installed: DistributionFinding) -> tuple[tuple[LocatedModule, ...], bool]:
    """Return the module of the entry point and the packages it is in; and whether it is edited."""
    module, files = installed.module, installed.files
    top = module.partition(".")[0]
    is_recorded = any(file.startswith((f"{top}/", f"{top}.")) for file in files)
    # Nobody imports Satchel itself anew.
    if is_recorded or not files or top == "satchel":
        return parents(module, ModuleBase("", installed.site)), False
    return locate(module, edited_bases(installed.site, files)), True


def _has_manifest(name: LocatedModule, installed: DistributionFinding, *, is_edited: bool) -> bool:
    path = os.path.join(name.path, MANIFEST_FILE)
    if name.file and not name.is_regular_package:
        return False  # a module hides a folder of its name
    if is_edited or not installed.files:
        return os.path.lexists(path)
    # In a package of packages it may be somebody else's.
    return os.path.relpath(path, installed.site).replace(os.sep, "/") in installed.files


def _shipped(names: tuple[LocatedModule, ...], found: PackageFinding) -> Iterator[str]:
    """Yield where the packages of an entry point ship skills, or may while they are edited."""
    for name in names:
        folder = os.path.join(name.path, *SHIPPED_SKILLS)
        if found.edited:
            # The first skill may be written while we watch.
            if is_inside(name.path, found.edited.path) and os.path.isdir(name.path):
                yield folder
        else:
            below = os.path.relpath(folder, found.installed.site).replace(os.sep, "/") + "/"
            if any(file.startswith(below) for file in found.installed.files):
                yield folder


def _outermost(names: tuple[LocatedModule, ...], homes: list[LocatedModule]) -> LocatedModule:
    """Return the package that is edited: the largest that nobody else can have a part of."""
    whole = [name for name in names if name.is_regular_package or name in homes]
    if whole:
        return whole[-1]
    # Somebody left out the __init__.py; a module at the top is alone.
    return names[1] if names[0].file and len(names) > 1 else names[0]


def _part(
    home: LocatedModule,
    installed: DistributionFinding,
    limits: Limits,
    before: PackageFinding | None,
    *,
    is_edited: bool,
) -> PluginFinding:
    """Read toolkit.yaml and what it names, as in a plugin folder."""
    where = SearchRoot(
        path=home.path,
        holds=RootKind.PLUGINS,
        scope=Precedence.PLUGIN,
        source=installed.distribution,
    )
    empty = PluginFinding(
        place=where,
        key="",
        folder=FolderContent((), ()),
        manifest=None,
        declared=(),
        diagnostics=(),
        entry_point=installed.name,
        is_edited=is_edited,
    )
    known = before.part if before else None
    if known is not None and (known.place, known.is_edited) != (where, is_edited):
        known = None
    return read_toolkit(empty, os.path.realpath(home.path), limits, known)


def _code(
    edited: LocatedModule, skills: Iterable[str], limits: Limits, before: PackageFinding | None
) -> FolderContent:
    """Read the code of a package that is edited, or of the single module that it is.

    What lies in the folders of skills is none.
    """
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
        root=os.path.realpath(folder),
        most_files=limits.files_per_skill,
        largest=limits.plugin_source,
        wanted=wanted,
        exclude=frozenset(exclude),
    )
    same = before is not None and before.edited == edited
    return reader.read(folder, before.code if before and same else None)
