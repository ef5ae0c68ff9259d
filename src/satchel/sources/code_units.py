"""The code that a project contains: what could run, as units with digests.

A unit is a plugin, a file of settings, or a skill with scripts. Its digest is made of the bytes
that would run and of the definitions of what would be started. The text of skills and notes is not
part of it, so that edits of it need no new trust.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from satchel.formats.server_placeholders import variables_in
from satchel.lazy_dataclass import dataclass
from satchel.settings import KIB, MIB
from satchel.sources.file_reader import (
    UnitFile,
    UnreadableFileError,
    digest_of,
    is_inside,
    real_path,
)
from satchel.sources.folder_reader import FolderReader
from satchel.sources.open_folder import read_inside

if TYPE_CHECKING:
    from satchel.formats import McpServerManifest
    from satchel.settings import Limits
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.selection import SelectionFile
    from satchel.sources.skill_scan import SkillFinding

_LARGEST_PROGRAM = 64 * MIB
_MOST_PROGRAM_FILES = 1_000
_LARGEST_TEXT = 256 * KIB
"""Texts up to this size are kept to show what changed."""
_SERVERS = "MCP servers"
LISTING = "entry in the marketplace"
"""The name of the text about a plugin in the list of its marketplace."""
_DECLARED = ("command", "args", "env", "cwd", "url", "headers")


@dataclass(frozen=True, slots=True)
class CodeFile:
    """The digest of a file or definition, and its text if that was asked for."""

    digest: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class CodeUnit:
    """What can run of one plugin, file of settings or skill."""

    key: str
    """Its path inside the project, with the name in a marketplace after `#`."""
    files: Mapping[str, CodeFile]
    """Its files by their path inside the unit, and its definitions by what they define."""

    @property
    def digest(self) -> str:
        """Return the digest of all files."""
        lines = (f"{name}\0{file.digest}\0" for name, file in sorted(self.files.items()))
        return digest_of("".join(lines).encode("utf-8", "surrogatepass"))


def plugin_unit(
    finding: PluginFinding, base: str, limits: Limits, *, with_text: bool = False
) -> CodeUnit | None:
    """Return the code of a plugin in a project, `None` if nothing of it could run."""
    is_local = any(server.transport == "stdio" for server in finding.servers)
    reader = FolderReader(
        root=real_path(finding.path),
        most_files=limits.files_per_skill,
        largest=_LARGEST_PROGRAM,
        wanted=lambda name: _is_script(name) or (is_local and not name.endswith(".md")),
        keep=lambda _name: with_text,
    )
    programs = reader.read(finding.path).files
    if not (finding.sources or finding.servers or programs):
        return None
    files = {file.name: _code_file(file, with_text=with_text) for file in programs}
    # Last: these are the bytes that are imported.
    files |= {file.name: _code_file(file, with_text=with_text) for file in finding.folder.files}
    if finding.servers:
        files[_SERVERS] = _definition(list(map(_declared, finding.servers)))
    if finding.listed is not None:
        text = repr(finding.listed)
        files[LISTING] = CodeFile(digest_of(text.encode("utf-8", "surrogatepass")), text)
    return CodeUnit(plugin_key(finding, base), files)


def plugin_key(finding: PluginFinding, base: str) -> str:
    """Return the key of a plugin's unit."""
    key = os.path.relpath(finding.path, base)
    return f"{key}#{finding.listed.name}" if finding.listed else key


def settings_unit(file: SelectionFile, base: str) -> CodeUnit | None:
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
    files = {name: _definition(parts)}
    for table in file.servers.values():
        files |= _program_files(table, base)
    return CodeUnit(name, files)


def skill_unit(finding: SkillFinding, base: str) -> CodeUnit | None:
    """Return the scripts of a skill, `None` if it has none."""
    files = {file.name: CodeFile(file.digest) for file in finding.files if _is_script(file.name)}
    return CodeUnit(os.path.relpath(finding.path, base), files) if files else None


def skill_unit_with_text(finding: SkillFinding, base: str) -> CodeUnit | None:
    """Return the scripts of a skill with their texts, which are read now."""
    unit = skill_unit(finding, base)
    if unit is None:
        return None
    root = finding.bounds.root()
    files = {
        name: _read(os.path.join(finding.path, *name.split("/")), root) or file
        for name, file in unit.files.items()
    }
    return CodeUnit(unit.key, files)


def has_same_programs(unit: CodeUnit, trusted: CodeUnit, finding: PluginFinding) -> bool:
    """Return whether the files that are not imported, but may be started, are the trusted ones."""
    others = {*(file.name for file in finding.folder.files), _SERVERS, LISTING}
    now, before = (
        {name: file.digest for name, file in it.files.items() if name not in others}
        for it in (unit, trusted)
    )
    return now == before


def keeps_programs(unit: CodeUnit, trusted: CodeUnit) -> bool:
    """Return whether the files that the trusted settings start are unchanged."""
    programs = (name for name in trusted.files if name != trusted.key)
    now = {name: file.digest for name, file in unit.files.items()}
    return all(now.get(name) == trusted.files[name].digest for name in programs)


def requested_variables(texts: Iterable[object]) -> tuple[str, ...]:
    """Return the environment variables that declarations of servers use, sorted."""
    return tuple(sorted({*variables_in(json.dumps(list(texts), default=str))}))


def server_variables(server: McpServerManifest) -> tuple[str, ...]:
    """Return the environment variables that a plugin's server uses."""
    return requested_variables([_declared(server)]) if server.of_claude else ()


def _program_files(table: Mapping[str, Any], base: str) -> dict[str, CodeFile]:
    """Return the files of a project that the command of a server names, with what is beside them.

    A script may import its neighbours, so those of the same kind count as well, and all of a folder
    or a Python module that is named. What these use from elsewhere is not known.
    """
    args = table.get("args", ())
    words = [table.get("command"), *(args if isinstance(args, list | tuple) else ())]
    folder = os.path.join(base, str(table.get("cwd") or ""))
    root, files = real_path(base), {}
    for before, word in pairwise(("", *(it for it in words if isinstance(it, str) and it))):
        name = word.replace(".", "/") if before == "-m" else word.rpartition("=")[2] or word
        for path in (os.path.join(folder, name), os.path.join(folder, f"{name}.py")):
            if (
                os.path.exists(path)
                and real_path(path) != root
                and is_inside(real_path(path), root)
            ):
                for used in _used_with(path, root):
                    files[os.path.relpath(used, base)] = _read(used, root) or CodeFile("unreadable")
    return files


def _used_with(path: str, root: str) -> list[str]:
    """Return the files that a program may be made of, by a file or a folder that is named."""
    if os.path.isdir(path):
        reader = FolderReader(
            root=root,
            most_files=_MOST_PROGRAM_FILES,
            largest=_LARGEST_PROGRAM,
            wanted=lambda name: not name.endswith(".md"),
            keep=lambda _name: False,
        )
        return [os.path.join(path, *file.name.split("/")) for file in reader.read(path).files]
    if not os.path.isfile(path):
        return []
    parent, ending = os.path.dirname(path), os.path.splitext(path)[1]
    try:
        beside = sorted(name for name in os.listdir(parent) if ending and name.endswith(ending))
    except OSError:
        beside = []
    return [path, *(os.path.join(parent, name) for name in beside[:_MOST_PROGRAM_FILES])]


def _read(path: str, root: str) -> CodeFile | None:
    try:
        data, _ = read_inside(path, _LARGEST_PROGRAM, root)
    except UnreadableFileError:
        return None
    return CodeFile(digest_of(data), _text(data))


def _code_file(file: UnitFile, *, with_text: bool) -> CodeFile:
    return CodeFile(file.digest, _text(file.data) if with_text and file.data else "")


def _definition(value: object) -> CodeFile:
    text = json.dumps(value, indent=1, sort_keys=True, default=_plain)
    return CodeFile(digest_of(text.encode()), text)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _declared(server: McpServerManifest) -> dict[str, object]:
    parts = {key: getattr(server, key) for key in _DECLARED}
    return {"name": server.name, "type": server.transport, **{k: v for k, v in parts.items() if v}}


def _is_script(name: str) -> bool:
    return "/scripts/" in f"/{name}"


def _text(data: bytes) -> str:
    if len(data) > _LARGEST_TEXT or b"\0" in data:
        return ""
    return data.decode("utf-8", "replace")
