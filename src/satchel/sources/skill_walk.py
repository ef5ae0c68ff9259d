"""Walk the folders of a search root to its skills."""

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from operator import attrgetter

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import is_inside, is_utf8, real_path, reason_of
from satchel.files.open_folder import OpenFolder, following, joined
from satchel.files.secret_files import is_secret_file
from satchel.lazy_dataclass import dataclass, fast_constructor
from satchel.settings import Limits
from satchel.sources.folder_diagnostics import (
    in_repository,
    link_loop,
    link_outside,
    link_to_no_skill,
    missing,
    not_utf8,
    too_deep,
    unlistable,
)
from satchel.sources.folder_reader import (
    is_folder,
    is_repository,
    is_skipped,
    linked,
    nested_repository,
)
from satchel.sources.kept_skills import KeptSkills
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_findings import SKILL_FILE, SkillFinding, SkillScan
from satchel.sources.skill_folder_reader import SkillFolderReader

_NAME = attrgetter("name")
_MAY_IGNORE_CASE = sys.platform in {"darwin", "win32"}
"""Whether a file is also found by its name in another case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """A folder that is searched."""

    key: str
    """Its path below the search root, with `/`; `""` for the root itself."""
    path: str
    """Its path as it is shown."""
    opened: OpenFolder
    above: tuple[str, ...]
    """The resolved paths of it and of all folders above, to notice loops."""
    target: str = ""
    """Its resolved path if it is outside of the search root, reached through a link; else `""`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An entry of a folder without SKILL.md."""

    name: str
    key: str
    path: str
    is_link: bool
    is_folder: bool
    """Whether it is a folder, or a link to one."""


class SkillWalk:
    """One walk through a search root, or a part of it."""

    def __init__(
        self, root: SearchRoot, limits: Limits, before: SkillScan | None, kept: KeptSkills
    ) -> None:
        self._root, self._limits, self._kept = root, limits, kept
        self._bounds = root.bounds()
        self._reader = SkillFolderReader(root, limits, before)
        self._findings: dict[str, SkillFinding] = {}
        self._walked: set[str] = set()
        self._visited: set[str] = set()
        self._diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
        self._links: set[tuple[str, str]] = set()
        self._is_cut = False

    def everything(self) -> SkillScan:
        """Scan the whole search root."""
        path = self._root.path
        with ExitStack() as stack:
            try:
                top = stack.enter_context(following(path))
            except OSError as error:
                self._report_root(error)
                return self._result()
            if self._root.within and top.path != self._path_without_links():
                self._links.add((path, top.path))
            if not is_inside(top.path, self._bounds):
                self._report("", [link_outside(path)])
            elif repository := nested_repository(self._root, top.path):
                self._report("", [in_repository(repository)])
            elif top.file:
                self._report_root(NotADirectoryError())
            else:
                folder = _Folder(key="", path=path, opened=top.folder, above=(top.path,))
                self._scan_folder(folder)
        return self._result()

    def part(self, key: str) -> SkillScan:
        """Scan the part of the search root at `key` and below.

        No folder above may be a link. Raises `OSError` if the part cannot be read now.
        """
        *above, name = key.split("/")
        path = self._root.path
        with ExitStack() as stack:
            try:
                top = stack.enter_context(following(path))
                if top.file or not is_inside(top.path, self._bounds):
                    return self._result()
                opened = top.folder
                resolved = [opened.path]
                for folder_name in above:
                    path = joined(path, folder_name)
                    opened = stack.enter_context(opened.enter(folder_name))
                    resolved.append(opened.path)
                # Only a listing shows the exact case of a name, and it is slow for thousands of
                # skills. So it is used only where the case may differ.
                is_exact = not _MAY_IGNORE_CASE or key in self._reader.known
                if is_exact or any(entry.name == name for entry in opened.entries()):
                    is_link = stat.S_ISLNK(opened.stat(name).st_mode)
                    below = joined(path, name)
                    entry = _Entry(
                        name=name,
                        key=key,
                        path=below,
                        is_link=is_link,
                        is_folder=os.path.isdir(below),
                    )
                    folder = _Folder(
                        key="/".join(above), path=path, opened=opened, above=tuple(resolved)
                    )
                    self._scan_entry(entry, folder)
            except (FileNotFoundError, NotADirectoryError):
                pass  # It is gone, with a folder above or without.
        return self._result()

    def _result(self) -> SkillScan:
        return SkillScan(
            root=self._root,
            findings=self._findings,
            walked=frozenset(self._walked),
            diagnostics_by_key=self._diagnostics,
            links=frozenset(self._links),
            cut=self._is_cut,
            suspect=frozenset(key for key, finding in self._findings.items() if finding.is_suspect),
        )

    # ---- folders -----------------------------------------------------------------------------

    def _scan_folder(self, folder: _Folder) -> None:
        """Scan one folder: it is a skill, or its subfolders are scanned."""
        key, path = folder.key, folder.path
        self._visited.add(folder.opened.path)
        try:
            entries = folder.opened.entries()
        except OSError as error:
            self._walked.add(key)
            self._report_unlistable(key, path, error)
            return
        if key and self._root.project and is_repository(entries):
            self._report(key, [in_repository(path)])
            return
        may_be_skill = bool(key) or not self._root.policy.has_strict_skills
        if may_be_skill and SKILL_FILE in map(_NAME, entries):
            finding = self._reader.read(key, path, folder.opened, entries, folder.target)
            self._findings[key] = finding
            if finding.folder.links:
                self._links.update(finding.folder.links)
            return
        if folder.target:
            return  # It was a skill a moment ago; nothing else outside is searched.
        self._walked.add(key)
        prefix, path_prefix = f"{key}/" if key else "", joined(path, "")
        for item in sorted(entries, key=_NAME):
            name = item.name
            entry = fast_constructor(_Entry)(
                name=name,
                key=prefix + name,
                path=path_prefix + name,
                is_link=item.is_symlink(),
                is_folder=is_folder(item),
            )
            self._scan_entry(entry, folder)

    def _scan_entry(self, entry: _Entry, folder: _Folder) -> None:
        """Scan an entry of a folder that is not a skill."""
        name, path = entry.name, entry.path
        if is_skipped(name) or is_secret_file(name):
            return
        if entry.is_link:
            self._links.add((path, real_path(joined(folder.opened.path, name))))
        if entry.is_folder:
            self._scan_below(entry, folder)
        elif entry.is_link and not os.path.exists(path):
            self._scan_target(entry, folder)
        elif name != SKILL_FILE and name.casefold() == SKILL_FILE.casefold():
            self._report(entry.key, [_wrong_case(path)])

    def _scan_below(self, entry: _Entry, folder: _Folder) -> None:
        """Scan a folder, or a link to one, unless it must not be entered."""
        name, key, path = entry.name, entry.key, entry.path
        if self._root.policy.has_strict_skills and "/" in key:
            return
        if not is_utf8(name):
            self._report(key, [not_utf8(folder.path, name)])
        elif key.count("/") >= self._limits.find_depth:
            self._report(key, [too_deep(path, self._limits.find_depth, "find_depth")])
        elif entry.is_link:
            self._scan_target(entry, folder)
        elif not (self._is_over_limit() or self._take_unchanged(key, path)):
            try:
                opened = folder.opened.enter(name)
            except OSError as error:
                self._walked.add(key)
                self._report_unlistable(key, path, error)
                return
            with opened:
                # A folder that is not a link can still be a loop, if a link led above it.
                if opened.path in folder.above:
                    self._report(key, [link_loop(path)])
                else:
                    above = (*folder.above, opened.path)
                    below = fast_constructor(_Folder)(
                        key=key, path=path, opened=opened, above=above
                    )
                    self._scan_folder(below)

    def _scan_target(self, entry: _Entry, folder: _Folder) -> None:
        """Scan where a link leads, if that is inside, or the user's own link leads to a skill."""
        key, path, diagnostics = entry.key, entry.path, list[Diagnostic]()
        leads_out = self._root.follows_links_out and not folder.key
        bounds = os.sep if leads_out else self._bounds
        with linked(folder.opened, entry.name, path, bounds, diagnostics) as linked_folder:
            for problem in diagnostics:
                if problem.code == "source-unreadable":
                    self._findings.update(self._kept.unreadable(key, problem))
            if linked_folder is not None and not linked_folder.file:
                target = "" if is_inside(linked_folder.path, self._bounds) else linked_folder.path
                try:
                    is_refused = bool(target) and not _has_skill(linked_folder.folder)
                except OSError as error:
                    self._report_unlistable(key, path, error)
                    return
                if is_refused:
                    diagnostics.append(link_to_no_skill(path))
                elif self._root.visits_once and linked_folder.path in self._visited:
                    pass
                elif linked_folder.path in folder.above:
                    diagnostics.append(link_loop(path))
                elif repository := nested_repository(self._root, linked_folder.path):
                    diagnostics.append(in_repository(repository))
                elif not (self._is_over_limit() or self._take_unchanged(key, path)):
                    self._scan_folder(
                        _Folder(
                            key=key,
                            path=path,
                            opened=linked_folder.folder,
                            above=(*folder.above, linked_folder.path),
                            target=target,
                        )
                    )
        self._report(key, diagnostics)

    def _take_unchanged(self, key: str, path: str) -> bool:
        """Return whether a folder is a skill that need not be read again."""
        finding = self._reader.unchanged(key, path)
        if finding is None:
            return False
        self._findings[key] = finding
        return True

    def _is_over_limit(self) -> bool:
        """Return whether no more folders are searched, and report it once."""
        if len(self._walked) + len(self._findings) <= self._limits.find_folders:
            return False
        if not self._is_cut:
            self._report("", [self._too_many()])
        self._is_cut = True
        return True

    # ---- diagnostics -------------------------------------------------------------------------

    def _report(self, key: str, diagnostics: Iterable[Diagnostic]) -> None:
        if diagnostics := tuple(diagnostics):
            self._diagnostics[key] = (*self._diagnostics.get(key, ()), *diagnostics)

    def _report_root(self, error: OSError) -> None:
        """Report a search root that is missing, or cannot be opened now."""
        path = self._root.path
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self._report_unlistable("", path, error)
        elif not self._root.optional or (self._root.within and os.path.lexists(path)):
            self._report("", [missing(path)])

    def _report_unlistable(self, key: str, path: str, error: OSError) -> None:
        """Report a folder that cannot be opened or listed; its skills still exist."""
        problem = unlistable(path, reason_of(error))
        self._report(key, [problem])
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            self._findings.update(self._kept.unreadable(key, problem))

    def _too_many(self) -> Diagnostic:
        most = self._limits.find_folders
        return make_diagnostic(
            "source-too-many",
            Where(self._root.path),
            f"has more than {most} folders (limit find_folders); the rest is not searched",
            "name the folders that hold skills, or raise find_folders in your satchel.toml, "
            "or --find-folders",
        )

    def _path_without_links(self) -> str:
        below = os.path.relpath(self._root.path, self._root.within)
        return os.path.normpath(os.path.join(self._bounds, below))


def _has_skill(folder: OpenFolder) -> bool:
    """Return whether a folder has a SKILL.md. Raises `OSError` if that cannot be seen now."""
    try:
        return not stat.S_ISDIR(folder.stat(SKILL_FILE).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _wrong_case(path: str) -> Diagnostic:
    return make_diagnostic(
        "skill-file-case",
        Where(path),
        f"is named {os.path.basename(path)!r}, so its folder is not a skill",
        f"rename it to {SKILL_FILE}",
    )
