"""The code that a project contains: what could run, as units with digests.

A unit is a plugin, a file of settings, or a skill with scripts. Its digest is made of the bytes
that would run and of the definitions of what would be started. The text of skills and notes is not
part of it, so that edits of it need no new trust.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from satchel.configuration.projects import SERVERS_FILE
from satchel.configuration.selection import SELECTION_FILE
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.files.file_reader import (
    UnitFile,
    digest_of,
    real_path,
)
from satchel.formats.lock_file import LOCK_FILE
from satchel.formats.mcp_json import McpServerManifest
from satchel.formats.server_placeholders import variables_in
from satchel.lazy_dataclass import dataclass
from satchel.sources.search_roots import Precedence
from satchel.trust.compiled_files import may_use_compiled
from satchel.trust.fetched_servers import (
    as_started,
    may_hide_names,
    may_use_project,
    readings,
    runs_from_above,
    texts_in,
)
from satchel.trust.plugin_servers import filled_texts, leads_out, stays_in_folder
from satchel.trust.runnable_files import (
    CodeFile,
    CodeProblem,
    CodeReader,
    changed_meanwhile,
    is_skill_code,
    runnable_files,
    text_of,
)

if TYPE_CHECKING:
    from satchel.configuration.selection import SelectionFile
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.skill_findings import SkillFinding

_SERVERS = "MCP servers/"  # No file has a name that ends with a slash.
_SKILL, _PROJECT = "//", "///"
"""Begin the keys of a skill, whose folder may also be a plugin, and of all of a project."""
LISTING = "entry in the marketplace/"
"""The key of the entry of a plugin in its marketplace."""
_OWN = frozenset({SELECTION_FILE, SERVERS_FILE, LOCK_FILE})
"""Files of a project that Satchel reads itself."""


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """What can run of one plugin, file of settings or skill."""

    key: str
    """Its path inside the project, which has no `//`, and so names one unit.

    `//` and a name behind it are a plugin that a marketplace lists, `//` before it a skill, and
    `///` before the key of another unit all of the project, as servers of that may use it.
    """
    files: Mapping[str, CodeFile]
    """Its files by their path inside the unit, and its definitions by what they define."""
    problem: CodeProblem | None = None

    @property
    def digest(self) -> str:
        """Return the digest of all files."""
        lines = (f"{name}\0{file.digest}\0" for name, file in sorted(self.files.items()))
        return digest_of("".join(lines).encode("utf-8", "surrogatepass"))

    @property
    def folder(self) -> str:
        """Return its path inside the project."""
        return self.key.lstrip("/").partition("//")[0]

    @property
    def title(self) -> str:
        """Return its key as it is shown."""
        name = self.key.lstrip("/").replace("//", "#")
        return f"what servers of {name} may use" if self.key.startswith(_PROJECT) else name

    @property
    def is_of_project(self) -> bool:
        """Return whether its files are named by their paths inside the project."""
        return self.key.startswith(_PROJECT) or self.key in _OWN

    @property
    def is_skill(self) -> bool:
        """Return whether it is what scripts of a skill may use."""
        return self.key.startswith(_SKILL) and not self.is_of_project

    def change(self, trusted: CodeUnit) -> str:
        """Return what is not as it was trusted: the first file, or else the unit."""
        names = {*self.files, *trusted.files} - {self.key, *_definitions(self, trusted)}
        text = _change_text(_digests(trusted, names), _digests(self, names))
        return text or "it changed after it was trusted"


def plugin_unit(
    finding: PluginFinding, base: str, reader: CodeReader | None = None
) -> CodeUnit | None:
    """Return the code of a plugin in a project, `None` if nothing of it could run.

    The scripts of its skills are units of their own.
    """
    if not (finding.sources or finding.servers):
        return None
    read = finding.folder.files
    # If a server may use the files on disk, these count, and must be the bytes that are imported.
    files, problem = _programs_in(finding.path, base, finding.servers, reader=reader)
    if files:
        imported = {file.name: file.digest for file in read if file.digest}
        digests = {name: file.digest for name, file in files.items()}
        problem = problem or changed_meanwhile(finding.path, imported, digests)
    else:
        files = {file.name: _code_file(file, reader) for file in read}
    if _is_same(finding.path, base) and any(leads_out(it, base, base) for it in finding.servers):
        problem = problem or CodeProblem(
            "a server of it names '..'", "copy what the server uses into its folder"
        )
    if finding.servers:
        tables = [{"name": server.name, **server.table} for server in finding.servers]
        files[_SERVERS] = _definition(tables, reader)
    if finding.listed is not None:
        digest = digest_of(repr(finding.listed).encode("utf-8", "surrogatepass"))
        files[LISTING] = CodeFile(digest, finding.listed.text if _has_text(reader) else "")
    return CodeUnit(plugin_key(finding, base), files, problem)


def project_of_plugin(
    path: str,
    key: str,
    servers: Iterable[McpServerManifest],
    base: str,
    *,
    before: Collection[str] = (),
    reader: CodeReader | None = None,
) -> CodeUnit | None:
    """Return the files of a project that servers of a plugin may use, `None` if it is only its own.

    `path` is the folder of the plugin, and `key` the key of its own unit. The servers named in
    `before` count, whatever they may use now.
    """
    roaming = [
        server
        for server in servers
        if server.name in before or not stays_in_folder(server, path, base)
    ]
    if _is_same(path, base) or not roaming:
        return None
    return _project_unit(key, roaming, base, reader)


def project_of_settings(
    file: SelectionFile,
    base: str,
    *,
    before: Collection[str] = (),
    reader: CodeReader | None = None,
) -> CodeUnit | None:
    """Return the files of a project that servers of its settings may use, `None` without any.

    The servers named in `before` count, whatever they may use now.
    """
    servers = [
        McpServerManifest(name=name, table=table, of_claude=True)
        for name, table in file.servers.items()
        if name in before or may_use_project(table, base)
    ]
    key = os.path.basename(file.path)
    return _project_unit(key, servers, base, reader) if servers else None


def project_key(key: str) -> str:
    """Return the key of the files of a project that the servers of a unit may use."""
    return f"{_PROJECT}{key}"


def _project_unit(
    key: str, servers: Sequence[McpServerManifest], base: str, reader: CodeReader | None
) -> CodeUnit:
    """Return all files of a project, because it is not known which of them servers use."""
    hides_names = any(may_hide_names(server.table) for server in servers)
    files, problem = _programs_in(base, base, servers, reader=reader, with_skill_texts=hides_names)
    if not hides_names:
        declared = declared_texts(servers, base)
        files = {name: it for name, it in files.items() if name not in _OWN or name in declared}
    # What was compared once is compared for good: a file that is gone must not change that.
    files |= {f"{_SERVERS}{it.name}/": CodeFile(digest_of(b"")) for it in servers}
    return CodeUnit(project_key(key), files, problem)


def _programs_in(
    folder: str,
    base: str,
    servers: Sequence[McpServerManifest],
    *,
    reader: CodeReader | None = None,
    with_skill_texts: bool = False,
) -> tuple[dict[str, CodeFile], CodeProblem | None]:
    """Return the files of a folder that servers in it could run."""
    if not any(server.is_local for server in servers):
        return {}, None
    return runnable_files(
        folder,
        base,
        declared=declared_texts(servers, folder),
        reader=reader,
        with_compiled=may_run_compiled((server.table for server in servers), folder),
        with_skill_texts=with_skill_texts,
        is_skill=False,
    )


def declared_texts(servers: Iterable[McpServerManifest], folder: str) -> str:
    """Return what servers declare, as it is written and as it is filled in."""
    return "\0".join(
        text
        for server in servers
        for text in (*filled_texts(server, folder), *texts_in(as_started(server.table)))
    )


def _used_above(table: Mapping[str, Any], folder: str) -> CodeProblem | None:
    """Return the problem of a server that may run a program of a folder above."""
    if not (path := runs_from_above(table, folder)):
        return None
    command = table["command"]
    fix = "declare the server in your own satchel.toml"
    if command == "npx":
        fix = f"give the package a version, such as PACKAGE@latest, or {fix}"
    return CodeProblem(f"{command} may run programs that {path} chooses", fix)


def _is_same(path: str, other: str) -> bool:
    return real_path(path) == real_path(other)


def may_run_compiled(tables: Iterable[Mapping[str, Any]], folder: str) -> bool:
    """Return whether a server could run the compiled files in a folder."""
    return any(
        may_use_compiled(it["command"], it.get("args") or (), folder)
        for table in tables
        for it in (*readings(table), as_started(table))
        if "command" in it
    )


def plugin_key(finding: PluginFinding, base: str) -> str:
    """Return the key of a plugin's unit."""
    key = os.path.relpath(finding.path, base)
    return f"{key}//{finding.listed.name}" if finding.listed else key


def settings_unit(file: SelectionFile, reader: CodeReader | None = None) -> CodeUnit | None:
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
    return CodeUnit(name, {name: _definition(parts, reader)})


def skill_unit(
    finding: SkillFinding, base: str, reader: CodeReader | None = None
) -> CodeUnit | None:
    """Return the scripts of a skill with what they may use, as read now; `None` without any."""
    if not any(is_skill_code(file.name) for file in finding.files):
        return None
    files, problem = runnable_files(finding.path, finding.bounds.root(), reader=reader)
    if finding.root.scope is Precedence.PROJECT:
        files = _without_own(files, finding.path, base)
    return CodeUnit(f"{_SKILL}{os.path.relpath(finding.path, base)}", files, problem)


def _without_own(files: dict[str, CodeFile], folder: str, base: str) -> dict[str, CodeFile]:
    """Return the files of a skill; if it is all of its project, without the project's own."""
    own = _OWN if _is_same(folder, base) else ()
    return {name: file for name, file in files.items() if name not in own}


def incomparable(unit: CodeUnit, base: str) -> Diagnostic:
    """Return the diagnostic of a unit that cannot be compared completely, so never runs."""
    assert unit.problem is not None
    message = f"its code cannot be compared completely, and is not used: {unit.problem.text}"
    where = Where(base if unit.is_of_project else os.path.join(base, unit.folder))
    return make_diagnostic("code-held", where, message, unit.problem.fix)


def programs_unchanged(unit: CodeUnit, trusted: CodeUnit, others: Collection[str]) -> bool:
    """Return whether the files that servers may start, all but `others`, are the trusted ones."""
    return not unit.problem and _programs(unit, others) == _programs(trusted, others)


def change_of_settings(
    server: str, file: SelectionFile, base: str, trusted: CodeUnit | None
) -> str | CodeProblem:
    """Return which file of a project, that one of its servers may use, changed or is new, or `""`.

    It is a problem if the files cannot be compared.
    """
    before, table = _servers_of(trusted), file.servers.get(server, {})
    if server not in before and not may_use_project(table, base):
        return ""
    if problem := _used_above(table, base):
        return problem
    return _change_of_project(project_of_settings(file, base, before=before), trusted)


def change_of_plugin(
    server: str,
    path: str,
    servers: Sequence[McpServerManifest],
    *,
    base: str,
    trusted: CodeUnit,
    project: CodeUnit | None,
) -> str | CodeProblem:
    """Return which file on disk, that a server of a plugin may use, changed or is new, or `""`.

    `path` is the folder of the plugin, with `trusted` files, and `base` its project, with those of
    `project`. It is a problem if the files cannot be compared.
    """
    if not any(server.is_local for server in servers):
        return ""
    files, problem = _programs_in(path, base, servers)
    now = {name: file.digest for name, file in files.items()}
    tables = (it.table for it in servers if it.name == server)
    problem = next(filter(None, (_used_above(table, base) for table in tables)), problem)
    if change := problem or _change_text(_programs(trusted), now):
        return change
    earlier = _servers_of(project)
    if server not in earlier and all(
        it.name != server or stays_in_folder(it, path, base) for it in servers
    ):
        return ""
    unit = project_of_plugin(path, trusted.key, servers, base, before=earlier)
    return _change_of_project(unit, project)


def _change_of_project(now: CodeUnit | None, trusted: CodeUnit | None) -> str | CodeProblem:
    if now is None:
        return ""
    before = _programs(trusted) if trusted else {}
    return now.problem or _change_text(before, _programs(now), ", which its command may use,")


def _programs(unit: CodeUnit, others: Iterable[str] = ()) -> dict[str, str]:
    """Return the digests of the files that servers may start: all of a unit but `others`."""
    return _digests(unit, {*unit.files} - {*_definitions(unit), *others})


def _definitions(*units: CodeUnit) -> set[str]:
    """Return the keys in units that are no files."""
    return {name for it in units for name in it.files if name.endswith("/")}


def _servers_of(project: CodeUnit | None) -> frozenset[str]:
    """Return the names of the servers for which the files of a project were compared."""
    keys = _definitions(project) if project else ()
    return frozenset(key.removeprefix(_SERVERS)[:-1] for key in keys)


def _digests(unit: CodeUnit, names: Iterable[str]) -> dict[str, str]:
    return {name: unit.files[name].digest for name in names if name in unit.files}


def first_change(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the first file that is not as before, `""` if all are."""
    names = sorted(before.keys() | now.keys())
    return next((name for name in names if before.get(name) != now.get(name)), "")


def _change_text(before: Mapping[str, str], now: Mapping[str, str], use: str = "") -> str:
    """Return which file is not as it was trusted, and whether it is new; `""` if all are."""
    name = first_change(before, now)
    change = (
        "changed after it was trusted" if name in before else "is new since you trusted the project"
    )
    return name and f"{name}{use} {change}"


def requested_variables(texts: Iterable[object]) -> tuple[str, ...]:
    """Return the environment variables that declarations of servers use, sorted."""
    return tuple(sorted({*variables_in(json.dumps(list(texts), default=_plain))}))


def server_variables(server: McpServerManifest) -> tuple[str, ...]:
    """Return the environment variables that a plugin's server uses."""
    return requested_variables([server.table]) if server.of_claude else ()


def _has_text(reader: CodeReader | None) -> bool:
    return reader is not None and reader.with_text


def _code_file(file: UnitFile, reader: CodeReader | None) -> CodeFile:
    data = file.data if _has_text(reader) else None
    return CodeFile(file.digest, text_of(file.name, data) if data else "")


def _definition(value: object, reader: CodeReader | None) -> CodeFile:
    text = json.dumps(value, indent=1, sort_keys=True, default=_plain)
    return CodeFile(digest_of(text.encode()), text if _has_text(reader) else "")


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def change_of_skill(folder: str, root: str, trusted: Mapping[str, str]) -> str | CodeProblem:
    """Return the first file on disk that scripts of a skill may use and that changed, or `""`.

    `trusted` has the digests of all of them, and `root` is the project. It is a problem if the
    files cannot be compared.
    """
    files, problem = runnable_files(folder, root)
    now = _without_own(files, folder, root)
    return problem or first_change(trusted, {name: file.digest for name, file in now.items()})
