"""The digest of a folder: over the paths and bytes of its files, the same on every machine.

It is what `sha256sum` prints for all files, sorted and hashed again. Times, owners and modes do
not count. Folders that tools fill, such as `node_modules`, are left out, unless scripts or servers
of the skill or plugin could use them.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from glob import escape, glob
from importlib.machinery import all_suffixes
from pathlib import PurePosixPath

from satchel.files.contained_files import Bounds
from satchel.files.file_reader import UnitFile, UnreadableFileError, is_inside, real_path
from satchel.sources.folder_reader import FolderReader
from satchel.sources.package_scan import PackageFinding
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.skill_findings import SkillFinding
from satchel.trust.code_units import first_change, may_run_compiled
from satchel.trust.program_files import CodeProblem, is_skill_code
from satchel.trust.skill_code import file_digest, read_skill_code

_MOST_FILES = 100_000
_CHUNK = 1024 * 1024
_CHANGES = "it changes while it is read"
_SUFFIXES = tuple(all_suffixes())


def tree_digest(files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of files, each given by its path with `/` and the digest of its bytes."""
    lines = sorted((os.fsencode(name), digest) for name, digest in files)
    text = b"".join(b"%s  %s\0" % (digest.encode(), name) for name, digest in lines)
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def digest_of_finding(finding: SkillFinding | PluginFinding | PackageFinding) -> str:
    """Return the digest of a skill as it was read, or of all files of a plugin.

    Raises `UnreadableFileError`, also if it changes while it is read.
    """
    if isinstance(finding, SkillFinding):
        return tree_digest(files_of_skill(finding).items())
    return _of_plugin(finding) if isinstance(finding, PluginFinding) else _of_package(finding)


def files_of_skill(finding: SkillFinding) -> dict[str, str]:
    """Return the digests of a skill's files, by name. Raises `UnreadableFileError`.

    With scripts, these are also the files that are not served.
    """
    served = dict(_hashed(finding.files, finding.path))
    if not (finding.access.has_folder and any(map(is_skill_code, served))):
        return served
    files, problem = _read_whole(finding.path, finding.bounds.root())
    if problem or not served.items() <= files.items():
        raise UnreadableFileError(problem.text if problem else _CHANGES)
    return files


def _read_whole(folder: str, root: str) -> tuple[dict[str, str], CodeProblem | None]:
    """Return the digests of all files of a folder on disk, by the names that they are served by.

    The texts of followed links do not count, nor names with which Kubernetes mounts volumes.
    """
    files, problem = read_skill_code(folder, root)
    return {
        name: file.digest
        for name, file in files.items()
        if not name.endswith("/") and not name.startswith("..")
    }, problem


def _of_plugin(finding: PluginFinding) -> str:
    bounds = _bounds_of(finding)
    files = read_digests(finding.path, bounds)
    if any(server.is_local for server in finding.servers) or any(map(is_skill_code, files)):
        all_files, problem = _read_whole(finding.path, bounds)
        if problem:
            raise UnreadableFileError(problem.text)
        files = all_files | files
    if may_run_compiled(server.table for server in finding.servers):
        files |= _compiled_digests(finding.path)
    served = {file.name: file.digest for file in finding.folder.files}
    if not served.items() <= files.items():
        raise UnreadableFileError(_CHANGES)
    return tree_digest(files.items())


def _compiled_digests(folder: str) -> dict[str, str]:
    paths = glob(f"{escape(folder)}/**/__pycache__/*.pyc", recursive=True, include_hidden=True)
    return {os.path.relpath(path, folder): file_digest(path) for path in paths}


def _of_package(finding: PackageFinding) -> str:
    """Return the digest of the files that pip installed and what was added, or of edited code."""
    if (edited := finding.edited) is not None:
        if os.path.isdir(edited.path):
            return tree_digest(read_digests(edited.path).items())
        return tree_digest([(f"{edited.name}.py", file_digest(edited.file))])
    site, metadata = finding.installed.site, os.path.basename(finding.installed.path)
    names = {
        name
        for name in finding.installed.files
        if name.split("/")[0] not in {"..", metadata} and "__pycache__" not in name
    }
    names |= {name for name in _importable(site, names) if os.path.isfile(os.path.join(site, name))}
    return tree_digest((name, _installed_digest(os.path.join(site, name))) for name in names)


def _importable(site: str, installed: Iterable[str]) -> Iterable[str]:
    """Yield the names of files that Python could import for the modules of a distribution.

    A package with `__init__.py` belongs to one distribution; others may share a folder.
    """
    modules = [name for name in installed if name.endswith(_SUFFIXES)]
    packages = {name.rpartition("/")[0] for name in modules if "__init__." in name}
    units = packages | {re.sub(r"\.[^/]*$", "", name) for name in modules}
    for unit in units:
        above = set(map(str, PurePosixPath(unit).parents)) - {"."}
        if packages.isdisjoint(above):
            stems = (unit, *above, *(f"{folder}/__init__" for folder in above))
            yield from (f"{stem}{suffix}" for stem in stems for suffix in _SUFFIXES)
            yield from _modules_below(site, unit)


def _modules_below(site: str, package: str) -> Iterable[str]:
    seen = set()
    for folder, folders, files in os.walk(os.path.join(site, package), followlinks=True):
        if (target := real_path(folder)) in seen:  # a link that leads up, or to a sibling
            folders.clear()
            continue
        seen.add(target)
        folders[:] = [name for name in folders if name != "__pycache__"]
        below = os.path.relpath(folder, site).replace(os.sep, "/")
        yield from (f"{below}/{name}" for name in files if name.endswith(_SUFFIXES))


def folder_digest(folder: str) -> str:
    """Return the digest of a folder on disk."""
    return tree_digest(read_digests(folder).items())


def _bounds_of(finding: PluginFinding) -> str:
    """Return the folder that links of a plugin must stay inside."""
    target, root = real_path(finding.path), real_path(finding.root.path)
    return target if finding.policy.is_contained or not is_inside(target, root) else root


def read_digests(folder: str, bounds: str = "") -> dict[str, str]:
    """Read a folder now, and return the digests of its files, by name.

    Links must stay inside `bounds`, or else inside the folder.
    """
    root = real_path(bounds or folder)
    reader = FolderReader(root=root, most_files=_MOST_FILES, largest=_CHUNK)
    return dict(_hashed(reader.read(folder).files, folder))


def changed_file(before: Mapping[str, str], folder: str, root: str | Bounds) -> str | CodeProblem:
    """Return the first file of a locked skill that is new, gone or not as it was; `""` if none.

    `before` has the digests of its files by name. It is a problem if they cannot be compared.
    """
    now, problem = _read_whole(folder, root.root() if isinstance(root, Bounds) else root)
    return problem or first_change(before, now)


def _hashed(files: Iterable[UnitFile], folder: str) -> Iterable[tuple[str, str]]:
    """Yield names and digests; a file that was only listed is read now."""
    for file in files:
        path = os.path.join(folder, *file.name.split("/"))
        yield file.name, file.digest or file_digest(path)


def _installed_digest(path: str) -> str:
    return file_digest(path) if os.path.lexists(path) else "missing"
