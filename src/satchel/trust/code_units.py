"""The code that a project contains: what could run, as units with digests.

A unit is a plugin, a file of settings, or a skill with scripts. Its digest is made of the bytes
that would run and of the definitions of what would be started. The text of skills and notes is not
part of it, so that edits of it need no new trust.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from satchel.configuration.projects import SERVERS_FILE
from satchel.configuration.selection import SELECTION_FILE
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.compiled_cache import is_replaceable, may_use_compiled
from satchel.files.file_reader import (
    Stamp,
    UnitFile,
    UnreadableFileError,
    digest_of,
    is_inside,
    real_path,
    reason_of,
)
from satchel.files.open_folder import read_inside
from satchel.files.secret_files import is_secret_file
from satchel.formats.lock_file import LOCK_FILE
from satchel.formats.server_placeholders import variables_in
from satchel.lazy_dataclass import dataclass
from satchel.settings import MIB
from satchel.trust.fetched_servers import (
    may_have_code,
    may_hide_names,
    may_use_project,
    runs_from_above,
)

if TYPE_CHECKING:
    from satchel.configuration.selection import SelectionFile
    from satchel.formats.mcp_json import McpServerManifest
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.skill_findings import SkillFinding

_LARGEST_PROGRAM = 64 * MIB
_MOST_PROGRAM_FILES = 20_000
_LARGEST_TEXT = MIB
"""Texts up to this size are shown, others by their digest."""
_LARGEST_OTHER_FILE = 5 * MIB
"""Larger files of a skill are compared only below `scripts`, since by default no others run."""
_SERVERS = "MCP servers/"  # No file has a name that ends with a slash.
LISTING = "entry in the marketplace/"
"""The key of the entry of a plugin in its marketplace."""
_PARENT_FOLDER = re.compile(r"(?<!\.)\.\.(?![.\w])")
_SETTINGS = frozenset({SELECTION_FILE, SERVERS_FILE})
"""Compared by what they define: while one is half written, its servers must not stop."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """The digest of a file or definition, and its text if that was asked for."""

    digest: str
    text: str = ""
    """`""` also for a file that is no text, or too long."""


class CodeProblem(NamedTuple):
    """Why code cannot be compared completely, and so is not used."""

    text: str
    fix: str = "take files out of the folder, or name it with --plugins or in your own satchel.toml"


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """What can run of one plugin, file of settings or skill."""

    key: str
    """Its path inside the project, with the name in a marketplace after `#`."""
    files: Mapping[str, CodeFile]
    """Its files by their path inside the unit, and its definitions by what they define."""
    problem: CodeProblem | None = None

    @property
    def digest(self) -> str:
        """Return the digest of all files."""
        lines = (f"{name}\0{file.digest}\0" for name, file in sorted(self.files.items()))
        return digest_of("".join(lines).encode("utf-8", "surrogatepass"))

    def digest_at(self, name: str) -> str:
        """Return the digest of one of its files or definitions, `""` if it has none."""
        return file.digest if (file := self.files.get(name)) else ""

    def first_change(self, before: CodeUnit) -> str:
        """Return the first file that is not as in `before`; `"it"` for its definitions."""
        names = sorted({*self.files, *before.files} - {self.key, _SERVERS, LISTING})
        changed = (name for name in names if self.digest_at(name) != before.digest_at(name))
        return next(changed, "it")


def plugin_unit(finding: PluginFinding, base: str, *, with_text: bool = False) -> CodeUnit | None:
    """Return the code of a plugin in a project, `None` if nothing of it could run."""
    tables = _tables_of(finding.servers)
    declared = json.dumps(tables, default=_plain)
    is_local = any(server.is_local for server in finding.servers)
    files, problem = _runnable_files(
        finding.path, base, declared, only_scripts=not is_local, with_text=with_text,
        with_compiled=may_run_compiled(tables),
    )  # fmt: skip
    if not (finding.sources or finding.servers or files):
        return None
    if is_local and _leads_out(declared, real_path(finding.path), real_path(base)):
        problem = problem or CodeProblem(
            "a server of it names '..' or a file outside of its folder",
            "declare the server in the project's satchel.toml",
        )
    with_code = [it["name"] for it in tables if may_have_code(it, finding.path)]
    if base != finding.path and with_code:
        problem = problem or CodeProblem(
            f"an argument or a variable of its server {with_code[0]!r} may be code",
            "put it into a file of the plugin, or declare the server in the project's satchel.toml",
        )
    problem = problem or _used_above(tables, finding.path)
    # Last: these are the bytes that are imported.
    files |= {file.name: _code_file(file, with_text=with_text) for file in finding.folder.files}
    if finding.servers:
        files[_SERVERS] = _definition(tables, with_text=with_text)
    if finding.listed is not None:
        digest = digest_of(repr(finding.listed).encode("utf-8", "surrogatepass"))
        files[LISTING] = CodeFile(digest, finding.listed.text if with_text else "")
    return CodeUnit(plugin_key(finding, base), files, problem)


def _leads_out(declared: str, root: str, project: str) -> bool:
    # `/a//b` and `/a/./b` are `/a/b`.
    declared = re.sub(r"(?:/\.?(?=/))+", "", unquote(declared))
    # A path of the project that is not below the plugin.
    inside, outside = (json.dumps(path)[1:-1] for path in (root, project))
    return bool(_PARENT_FOLDER.search(declared)) or outside in declared.replace(inside, "")


def _used_above(tables: Iterable[Mapping[str, Any]], folder: str) -> CodeProblem | None:
    """Return the problem of servers that may run a program of a folder above."""
    for table in tables:
        if path := runs_from_above(table, folder):
            return CodeProblem(
                f"{table['command']} may run programs that {path} chooses",
                f"trust {os.path.dirname(path)}, or declare the server in your own satchel.toml",
            )
    return None


def may_run_compiled(tables: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a server could run the compiled files in its folder."""
    return any(
        may_use_compiled(table["command"], table.get("args") or ())
        for table in tables
        if "command" in table
    )


def plugin_key(finding: PluginFinding, base: str) -> str:
    """Return the key of a plugin's unit."""
    key = os.path.relpath(finding.path, base)
    return f"{key}#{finding.listed.name}" if finding.listed else key


def settings_unit(file: SelectionFile, base: str, *, with_text: bool = False) -> CodeUnit | None:
    """Return what a project's settings enable, configure and start, `None` if that is nothing."""
    parts = {
        "enable": file.enable.beyond_skills,
        "disable": file.disable.beyond_skills,
        "config": file.config,
        "servers": file.servers,
    }
    if not any(parts.values()):
        return None
    name = os.path.basename(file.path)
    files = {name: _definition(parts, with_text=with_text)}
    problem: CodeProblem | None = None
    if any(may_use_project(table, base) for table in file.servers.values()):
        declared = json.dumps(parts["servers"], default=_plain)
        # What a command runs is not known: it starts in the project, and all files may be used.
        with_compiled = may_run_compiled(file.servers.values())
        programs, problem = _runnable_files(
            base, base, declared, with_text=with_text, with_compiled=with_compiled
        )
        is_hidden = any(map(may_hide_names, file.servers.values()))
        for path, program in programs.items():
            is_own = path in _SETTINGS or (path == LOCK_FILE and not is_hidden)
            if not is_own or path in declared:
                files[f"./{path}" if path == name else path] = program
        problem = problem or _used_above(file.servers.values(), base)
    return CodeUnit(name, files, problem)


def skill_unit(finding: SkillFinding, base: str, *, with_text: bool = False) -> CodeUnit | None:
    """Return the scripts of a skill with what they may use, `None` if it has none.

    With texts, the files are read now.
    """
    if not any(is_skill_code(file.name) for file in finding.files):
        return None
    files = {
        file.name: CodeFile(file.digest)
        for file in finding.files
        if is_skill_code(file.name) or (may_be_run(file.name) and file.size <= _LARGEST_OTHER_FILE)
    }
    if with_text:
        root = finding.bounds.root()
        for name, file in files.items():
            path = os.path.join(finding.path, *name.split("/"))
            files[name] = read_code_file(path, root) or file
    return CodeUnit(os.path.relpath(finding.path, base), files)


def incomparable(unit: CodeUnit, base: str) -> Diagnostic:
    """Return the diagnostic of a unit that cannot be compared completely, so never runs."""
    assert unit.problem is not None
    message = f"its code cannot be compared completely, and is not used: {unit.problem.text}"
    where = Where(os.path.join(base, unit.key))
    return make_diagnostic("code-held", where, message, unit.problem.fix)


def program_digests(unit: CodeUnit, others: Iterable[str]) -> dict[str, str]:
    """Return the digests of the files that servers may start: all of a unit but `others`."""
    skipped = {_SERVERS, LISTING, *others}
    return {name: file.digest for name, file in unit.files.items() if name not in skipped}


def programs_unchanged(unit: CodeUnit, trusted: CodeUnit, others: Collection[str]) -> bool:
    """Return whether the files that servers may start are the trusted ones."""
    return not unit.problem and program_digests(unit, others) == program_digests(trusted, others)


def current_settings_digests(file: SelectionFile, base: str) -> Mapping[str, str] | None:
    """Return the digests of the files on disk that the servers of settings may start.

    `None` if they cannot be compared.
    """
    unit = settings_unit(file, base)
    return None if unit is None or unit.problem else program_digests(unit, [unit.key])


def current_plugin_digests(
    path: str, servers: Iterable[McpServerManifest], base: str, trusted: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return the digests of the files on disk that the servers of a plugin may start.

    `None` if they cannot be compared.
    """
    tables, root = _tables_of(servers), real_path(path)
    declared = json.dumps(tables, default=_plain)
    files, problem = _runnable_files(path, base, declared, with_compiled=may_run_compiled(tables))
    problem = problem or _used_above(tables, path)
    now = {name: file.digest for name, file in files.items()}
    for name, digest in trusted.items():
        # An imported file is compared by its content, also behind a link.
        if now.get(name) != digest and (file := read_code_file(os.path.join(root, name), root)):
            now[name] = file.digest
    return None if problem else now


def requested_variables(texts: Iterable[object]) -> tuple[str, ...]:
    """Return the environment variables that declarations of servers use, sorted."""
    return tuple(sorted({*variables_in(json.dumps(list(texts), default=_plain))}))


def server_variables(server: McpServerManifest) -> tuple[str, ...]:
    """Return the environment variables that a plugin's server uses."""
    return requested_variables([server.table]) if server.of_claude else ()


def _runnable_files(
    folder: str,
    base: str,
    declared: str,
    *,
    only_scripts: bool = False,
    with_text: bool = False,
    with_compiled: bool = False,
) -> tuple[dict[str, CodeFile], CodeProblem | None]:
    """Return all files of a folder that could run, and why they cannot be compared.

    Skips `.git`, Markdown of skills, and, unless `with_compiled`, files that Python can compile
    again. A file that `declared` names is never skipped. A link is compared by the path that it
    contains.
    """
    with_compiled = with_compiled or "__pycache__" in declared
    root, project, files = real_path(folder), real_path(base), dict[str, CodeFile]()
    # Folders inside a skill, and whether that skill has scripts.
    has_scripts: dict[str, bool] = {}
    try:
        for above, folders, names in os.walk(root, onerror=_fail):
            folders[:] = sorted(name for name in folders if name != ".git" or name in declared)
            if "SKILL.md" in names or os.path.dirname(above) in has_scripts:
                skill_has = has_scripts.get(os.path.dirname(above), False)
                has_scripts[above] = skill_has or "scripts" in folders
            links = [name for name in folders if os.path.islink(os.path.join(above, name))]
            for name in sorted((*names, *links)):
                path = os.path.join(above, name)
                key = os.path.relpath(path, root).replace(os.sep, "/")
                is_text = above in has_scripts and name.endswith(".md") and name not in declared
                is_cached = not with_compiled and is_replaceable(path)
                is_used = is_skill_code(key) or has_scripts.get(above)
                if is_text or is_cached or (only_scripts and not is_used):
                    continue
                if len(files) >= _MOST_PROGRAM_FILES:
                    problem = f"{folder} has more than {_MOST_PROGRAM_FILES} files"
                    return files, CodeProblem(problem)
                files[key] = _program(path, root, project, with_text=with_text)
    except (UnreadableFileError, RecursionError) as error:
        return files, CodeProblem(str(error) or f"{folder} is too deep")
    return files, None


def _fail(error: OSError) -> None:
    raise UnreadableFileError(f"{error.filename} cannot be listed: {reason_of(error)}")


def _program(path: str, root: str, project: str, *, with_text: bool) -> CodeFile:
    """Read a file or link. Raises `UnreadableFileError` unless it is compared completely."""
    if os.path.islink(path):
        text, target = f"link to {os.readlink(path)}", real_path(path)
        if is_inside(target, project) and not is_inside(target, root):
            raise UnreadableFileError(f"{path} is a link that leads out of the plugin")
        if is_inside(target, root) and os.path.isfile(target):
            text += f" with digest {digest_of(_read_bytes(target, root))}"
        return CodeFile(digest_of(os.fsencode(text)), text)
    stamp = Stamp.at(path)
    if stamp.is_settled() and not with_text:
        return CodeFile(_cached_digest(path, root, stamp))
    data = _read_bytes(path, root)
    text = _text_of(os.path.relpath(path, root), data) if with_text else ""
    return CodeFile(digest_of(data), text)


@lru_cache(_MOST_PROGRAM_FILES)
def _cached_digest(path: str, root: str, _stamp: Stamp) -> str:
    return digest_of(_read_bytes(path, root))


def _read_bytes(path: str, root: str) -> bytes:
    try:
        data, _ = read_inside(path, _LARGEST_PROGRAM, root)
    except UnreadableFileError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error}") from None
    if len(data) > _LARGEST_PROGRAM:
        raise UnreadableFileError(f"{path} is larger than {_LARGEST_PROGRAM // MIB} MiB")
    return data


def read_code_file(path: str, root: str) -> CodeFile | None:
    """Return a file with its text, `None` if it cannot be read or is too large."""
    try:
        data = _read_bytes(path, root)
    except UnreadableFileError:
        return None
    return CodeFile(digest_of(data), _text_of(os.path.relpath(path, root), data))


def _code_file(file: UnitFile, *, with_text: bool) -> CodeFile:
    data = file.data if with_text else None
    return CodeFile(file.digest, _text_of(file.name, data) if data else "")


def _definition(value: object, *, with_text: bool) -> CodeFile:
    text = json.dumps(value, indent=1, sort_keys=True, default=_plain)
    return CodeFile(digest_of(text.encode()), text if with_text else "")


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _tables_of(servers: Iterable[McpServerManifest]) -> list[dict[str, Any]]:
    return [{"name": server.name, **server.table} for server in servers]


def is_skill_code(name: str) -> bool:
    """Return whether a file of a skill counts as its code, by its name."""
    return "/scripts/" in f"/{name}"


def may_be_run(name: str) -> bool:
    """Return whether scripts of a skill may run a file of it: all but its texts."""
    return is_skill_code(name) or not name.endswith(".md")


def _text_of(name: str, data: bytes) -> str:
    """Return a text, with bytes that are not UTF-8 as escapes; `""` if it is no text or long.

    The values in a `.env` file are never shown or recorded, so it has only its digest.
    """
    if len(data) > _LARGEST_TEXT or b"\0" in data or is_secret_file(name):
        return ""
    return data.decode("utf-8", "backslashreplace")
