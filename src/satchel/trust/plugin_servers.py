"""Find the servers of a plugin that use only files of its own folder.

Only a few forms of commands are understood: a package that is fetched, a program or script of the
plugin, and a container without folders of this machine. A command of any other form may use every
file of the project around the plugin.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from satchel.files.file_reader import is_inside, real_path
from satchel.files.installed_programs import find_program
from satchel.formats.mcp_json import PLUGIN_DATA, PLUGIN_ROOT, McpServerManifest
from satchel.trust.fetched_servers import (
    DATA_FOLDER,
    are_plain,
    fetches_only,
    is_container,
    is_given_path,
    is_plain,
    names_parent,
    readings,
    runs_from_above,
    starts_at,
    texts_in,
    variable_names,
)
from satchel.trust.runner_commands import parse_runner

_PLUGIN_FOLDER = re.compile(rf"\$\{{(?:CLAUDE_)?({PLUGIN_ROOT}|{PLUGIN_DATA})\}}")
_PYTHON = re.compile(r"python[\d.]*")
_PYTHON_FLAG = re.compile(r"-[BOqu]+")
_NODE_FLAGS = frozenset(("--no-warnings", "--no-deprecation", "--enable-source-maps"))
_SHELLS = frozenset(("sh", "bash", "dash", "zsh"))
_UV_OPTIONS = frozenset(("run", "-q", "--quiet", "--isolated", "--no-cache", "--offline"))
_UV_FOLDERS = frozenset(("--directory", "--project"))


def stays_in_folder(server: McpServerManifest, folder: str, project: str) -> bool:
    """Return whether a server of a plugin uses no file of the project outside of its folder."""
    if not server.is_local:
        return True
    if leads_out(server, folder, project) or runs_from_above(server.table, folder):
        return False
    if is_given_path(server.table, project, folder, own=real_path(folder)):
        return False
    return all(_stays(table, folder) for table in readings(server.table, real_path(folder)))


def _stays(table: Mapping[str, Any], folder: str) -> bool:
    args, env = table.get("args") or [], table.get("env") or {}
    if not isinstance(args, list | tuple) or not isinstance(env, Mapping) or "env-file" in table:
        return False
    root = real_path(folder)
    cwd, command, *words = (
        _in_folder(str(word), root) for word in (table.get("cwd") or "", table["command"], *args)
    )
    values = {
        str(name): _shortened(_in_folder(str(value), root), root) for name, value in env.items()
    }
    # A shell or a program that is fetched may fill in what stayed a variable.
    own = {name for name, value in values.items() if variable_names(value) != [name]}
    used = (name for text in (*words, *values.values()) for name in variable_names(text))
    return (
        starts_at(folder, cwd)
        and "$" not in cwd + command
        and are_plain(values)
        and own.isdisjoint(used)
        and any(is_form(command, words, root) for is_form in _FORMS)
    )


def leads_out(server: McpServerManifest, folder: str, project: str) -> bool:
    """Return whether a server names `..`, or a path of the project that is not in its folder."""
    root, base = real_path(folder), real_path(project)
    declared = unquote("\0".join(filled_texts(server, folder)))
    paths = (real_path(part) for part in re.split(r"[\0\s:,;=]+", declared) if os.path.isabs(part))
    if any(is_inside(path, base) and not is_inside(path, root) for path in paths):
        return True
    # `/a//b` and `/a/./b` are `/a/b`.
    declared = re.sub(r"(?:/\.?(?=/))+", "", declared).casefold()
    rest = _shortened(declared, root.casefold())
    return names_parent(declared) or base.casefold() in rest


def filled_texts(server: McpServerManifest, folder: str) -> Iterable[str]:
    """Yield all texts in a declaration, as they are written and as they are filled in."""
    for table in readings(server.table, real_path(folder)):
        yield from texts_in(table)


def _in_folder(word: str, folder: str) -> str:
    return _PLUGIN_FOLDER.sub(lambda it: folder if it[1] == PLUGIN_ROOT else DATA_FOLDER, word)


def _shortened(text: str, folder: str) -> str:
    """Return a text with a word for a folder, where it is a whole path or the beginning of one."""
    return re.sub(rf"{re.escape(folder)}(?=[/\0:,;=]|$)", "folder", text)


def _is_fetched(command: str, args: Sequence[str], folder: str) -> bool:
    words = (_shortened(word, folder) for word in args)
    return fetches_only(command, args, folder) and all(map(is_plain, words))


def _is_own_program(command: str, _args: Sequence[str], folder: str) -> bool:
    is_known = _is_interpreter(os.path.basename(command))
    return "/" in command and not is_known and _is_own_file(command, folder)


def _is_interpreter(name: str) -> bool:
    return bool(_PYTHON.fullmatch(name)) or name == "node" or name in _SHELLS


def _runs_own_script(command: str, args: Sequence[str], folder: str) -> bool:
    name, words = os.path.basename(command), [*args]
    while words and (
        (_PYTHON.fullmatch(name) and _PYTHON_FLAG.fullmatch(words[0]))
        or (name == "node" and words[0] in _NODE_FLAGS)
    ):
        words.pop(0)
    return _is_interpreter(name) and bool(words) and _is_own_file(words[0], folder)


def _is_uv_run(command: str, args: Sequence[str], folder: str) -> bool:
    parts = parse_runner("uv", args) if os.path.basename(command) == "uv" else None
    if parts is None or not all(
        starts_at(folder, value or "..")
        if name in _UV_FOLDERS
        else name in _UV_OPTIONS and value is None
        for name, value, _ in parts.options
    ):
        return False
    program, rest = parts.program, args[parts.program_at + 1 :]
    return (
        (program.endswith(".py") and _is_own_file(program, folder))
        or _is_own_program(program, rest, folder)
        or _runs_own_script(program, rest, folder)
        or (program in _entry_points(folder) and find_program(program) is None)
    )


def _is_container(command: str, args: Sequence[str], _folder: str) -> bool:
    return is_container(command, args)


_FORMS = (_is_fetched, _is_own_program, _runs_own_script, _is_uv_run, _is_container)


def _is_own_file(word: str, folder: str) -> bool:
    """Return whether a word is no option or command, but the path of a file in a folder."""
    path = real_path(os.path.join(folder, word))
    is_path = not word.startswith("-") and ("." in word or "/" in word) and "$" not in word
    return is_path and is_inside(path, folder) and os.path.isfile(path)


def _entry_points(folder: str) -> Mapping[str, object]:
    """Return the programs that `uv` installs for the `pyproject.toml` of a folder."""
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            content = tomllib.load(file)
        scripts = content["project"]["scripts"] if "build-system" in content else None
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return scripts if isinstance(scripts, dict) else {}
