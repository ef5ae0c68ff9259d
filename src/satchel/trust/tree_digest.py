"""The digest of a folder: over the paths and bytes of its files, the same on every machine.

It is what `sha256sum` prints for all files, sorted and hashed again. Times, owners and modes do
not count. Folders that tools fill, such as `node_modules`, are left out, unless scripts or servers
of the skill or plugin could use them.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import all_suffixes
from pathlib import PurePosixPath

from satchel.files.contained_files import Bounds
from satchel.files.file_reader import UnitFile, UnreadableFileError, is_inside, real_path
from satchel.formats.mcp_json import McpServerManifest
from satchel.sources.folder_reader import FolderReader
from satchel.sources.package_scan import PackageFinding
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.skill_findings import SkillFinding
from satchel.trust.code_units import declared_texts, first_change, may_run_compiled
from satchel.trust.runnable_files import (
    CodeProblem,
    changed_meanwhile,
    file_digest,
    is_skill_code,
    link_digest,
    runnable_files,
)

_MOST_FILES = 100_000
_CHUNK = 1024 * 1024
_CHANGES = "it changes while it is read"
_SUFFIXES = tuple(all_suffixes())


def tree_digest(files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of files, each given by its path with `/` and the digest of its bytes."""
    lines = sorted((os.fsencode(name), digest) for name, digest in files)
    text = b"".join(b"%s  %s\0" % (digest.encode(), name) for name, digest in lines)
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def digest_of_finding(finding: SkillFinding | PluginFinding | PackageFinding, lock: str) -> str:
    """Return the digest of a skill or plugin: of what is served, or of all that it could run.

    The file `lock` does not count. Raises `UnreadableFileError`, also if it changes while it is
    read.
    """
    if isinstance(finding, SkillFinding):
        served = served_files(finding)
        files = program_files(finding, served) or served
    elif isinstance(finding, PluginFinding):
        files = _files_of_plugin(finding)
    else:
        return _of_package(finding, lock)
    return tree_digest(without_lock(files, finding.path, lock).items())


def without_lock(files: Mapping[str, str], folder: str, lock: str) -> Mapping[str, str]:
    """Return the digests of files in a folder without that of the lock file, if there is one."""
    place, name = os.path.split(lock)
    own = os.path.relpath(os.path.join(real_path(place), name), real_path(folder))
    return {key: it for key, it in files.items() if key != own.replace(os.sep, "/")}


def served_files(finding: SkillFinding) -> dict[str, str]:
    """Return the digests of a skill's files that are served. Raises `UnreadableFileError`."""
    return dict(_hashed(finding.files, finding.path))


def program_files(finding: SkillFinding, served: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of all files that scripts of a skill could run, none without scripts.

    Raises `UnreadableFileError`, also if they are not the files that are served.
    """
    if not (finding.access.has_folder and any(map(is_skill_code, served))):
        return {}
    return _all_files(finding.path, finding.bounds.root(), served)


def _all_files(
    folder: str,
    bounds: str,
    served: Mapping[str, str] | None = None,
    servers: Sequence[McpServerManifest] = (),
) -> dict[str, str]:
    """Return the digests of all files of a folder. Raises `UnreadableFileError`."""
    files, problem = runnable_files(
        folder,
        bounds,
        declared=declared_texts(servers, folder),
        with_compiled=may_run_compiled((server.table for server in servers), folder),
        with_skill_texts=True,
    )
    digests = {name: file.digest for name, file in files.items()}
    if problem := problem or changed_meanwhile(folder, served or {}, digests):
        raise UnreadableFileError(problem.text)
    return _unmounted(digests)


def _unmounted(digests: dict[str, str]) -> dict[str, str]:
    """Return the files of a folder that Kubernetes mounts by the names that they were made with.

    They are in a folder with a new name each time, to which the link `..data` leads, and at the
    top there is a link through `..data` to each of them.
    """
    data = digests.get("..data")
    top = {name.partition("/")[0] for name in digests if data and name.startswith("..")}
    folder = next((it for it in top - {os.pardir} if link_digest(it) == data), None)
    if folder is None:
        return digests
    inner = {
        name.removeprefix(f"{folder}/"): digest
        for name, digest in digests.items()
        if name.startswith(f"{folder}/")
    }
    names = {name.partition("/")[0] for name in inner}
    links = {name: link_digest(f"..data/{name}") for name in names} | {"..data": data}
    mounted = links | {f"{folder}/{name}": digest for name, digest in inner.items()}
    return inner if digests == mounted else digests


def _files_of_plugin(finding: PluginFinding) -> dict[str, str]:
    bounds = _bounds_of(finding)
    files = read_digests(finding.path, bounds)
    served = {file.name: file.digest for file in finding.folder.files}
    if not served.items() <= files.items():
        raise UnreadableFileError(_CHANGES)
    if any(server.is_local for server in finding.servers) or any(map(is_skill_code, files)):
        files = _all_files(finding.path, bounds, served, finding.servers)
    return files


def _of_package(finding: PackageFinding, lock: str) -> str:
    """Return the digest of the files that pip installed and what was added, or of edited code."""
    if (edited := finding.edited) is not None:
        if os.path.isdir(edited.path):
            files = without_lock(read_digests(edited.path), edited.path, lock)
            return tree_digest(files.items())
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


def changed_file(
    before: Mapping[str, str], folder: str, root: str | Bounds, lock: str
) -> str | CodeProblem:
    """Return the first file of a locked skill that is new, gone or not as it was; `""` if none.

    `before` is what `program_files` returned; the lock file does not count. It is a problem if the
    files cannot be compared.
    """
    try:
        now = _all_files(folder, root.root() if isinstance(root, Bounds) else root)
    except UnreadableFileError as error:
        return CodeProblem(str(error))
    return first_change(*(without_lock(files, folder, lock) for files in (before, now)))


def _hashed(files: Iterable[UnitFile], folder: str) -> Iterable[tuple[str, str]]:
    """Yield names and digests; a file that was only listed is read now."""
    for file in files:
        path = os.path.join(folder, *file.name.split("/"))
        yield file.name, file.digest or file_digest(path)


def _installed_digest(path: str) -> str:
    return file_digest(path) if os.path.lexists(path) else "missing"
