"""Find the servers of a plugin that use only files of its own folder.

Only a few forms of commands are understood: a package that is fetched, a program or script of the
plugin, and a container without folders of this machine. A command of any other form may use every
file of the project around the plugin.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from satchel.files.file_reader import is_inside, real_path
from satchel.formats.frozen_values import to_plain
from satchel.formats.mcp_json import PLUGIN_ROOT
from satchel.trust.fetched_servers import (
    fetches_only,
    has_signs,
    is_name_or_url,
    runs_from_above,
    starts_at,
)
from satchel.trust.runner_commands import RunnerCommand, parse_runner

_PLUGIN_FOLDER = re.compile(rf"\$\{{(CLAUDE_)?{PLUGIN_ROOT}\}}")
_PARENT_FOLDER = re.compile(r"(?<!\.)\.\.(?![.\w])")
_INTERPRETER = re.compile(r"python[\d.]*|node|ruby|php|perl|(ba|z|da|k)?sh")
"""Programs that run the file after their options, and give it all other words."""
_INTERPRETER_FLAG = re.compile(r"-[BOqu]+|--no-warnings|--no-deprecation|--enable-source-maps")
_FOLDER_VARIABLE = re.compile(
    r"\$\{\w*(PWD|CWD|HOME|DIR|PATH|ROOT|FOLDER|SPACE|PROJECT|PREFIX|VIRTUAL|VENV)\w*\}",
    re.IGNORECASE,
)
"""A variable that may hold the project's folder."""
_UV_OPTIONS = frozenset(("run", "-q", "--quiet", "--isolated", "--no-cache", "--offline"))
_UV_FOLDERS = frozenset(("--directory", "--project"))
_CONTAINER_OPTIONS = frozenset(
    (
        *("run", "-i", "-t", "-it", "--interactive", "--tty", "--rm", "--init"),
        *("-e", "--env", "--name", "--network", "--platform"),
    )
)
"""Options of docker and podman that give a container no folder of this machine."""
_IMAGE = re.compile(r"\w[\w.-]*(:\d+)?(/\w[\w.-]*)*(:\w[\w.-]*)?(@sha256:[0-9a-f]{64})?", re.ASCII)


def stays_in_folder(table: Mapping[str, Any], folder: str, project: str) -> bool:
    """Return whether a server of a plugin uses no file of the project outside of its folder."""
    if not (command := table.get("command")):
        return True
    args, env = table.get("args") or [], table.get("env") or {}
    if not isinstance(args, list | tuple) or not isinstance(env, Mapping):
        return False
    if "env-file" in table or leads_out(table, folder, project) or runs_from_above(table, folder):
        return False
    words, values = [*map(str, (command, *args))], [*map(str, env.values())]
    # An interpreter takes options from variables, too.
    is_plain = all(_is_plain(it) and not it.lstrip().startswith("-") for it in values)
    # A program that is fetched may fill in the variables in its arguments.
    is_filled = any(f"${{{name}}}" in word for name in env for word in words)
    return (
        starts_at(folder, _in_folder(str(table.get("cwd") or ""), folder))
        and is_plain
        and not is_filled
        and any(is_form(words[0], words[1:], folder) for is_form in _FORMS)
    )


def leads_out(table: Mapping[str, Any], folder: str, project: str) -> bool:
    """Return whether a server names `..`, or a path of the project that is not in its folder."""
    declared = json.dumps(to_plain(table), default=str, ensure_ascii=False)
    # `/a//b` and `/a/./b` are `/a/b`.
    declared = re.sub(r"(?:/\.?(?=/))+", "", unquote(declared)).casefold()
    inside, outside = (
        json.dumps(real_path(path), ensure_ascii=False)[1:-1].casefold()
        for path in (folder, project)
    )
    return bool(_PARENT_FOLDER.search(declared)) or outside in declared.replace(inside, "")


def _in_folder(word: str, folder: str) -> str:
    return _PLUGIN_FOLDER.sub(lambda _: folder, word)


def _is_plain(word: str) -> bool:
    word = _PLUGIN_FOLDER.sub("", word)
    return is_name_or_url(word) or not (has_signs(word) or _FOLDER_VARIABLE.search(word))


def _is_fetched(command: str, args: Sequence[str], folder: str) -> bool:
    return fetches_only(command, args, folder) and all(map(_is_plain, args))


def _is_own_program(command: str, _args: Sequence[str], folder: str) -> bool:
    return not _INTERPRETER.fullmatch(os.path.basename(command)) and _is_own_file(command, folder)


def _runs_own_script(command: str, args: Sequence[str], folder: str) -> bool:
    script = next((word for word in args if not _INTERPRETER_FLAG.fullmatch(word)), "")
    is_interpreter = _INTERPRETER.fullmatch(os.path.basename(command)) is not None
    return is_interpreter and _is_own_file(script, folder)


def _is_uv_run(command: str, args: Sequence[str], folder: str) -> bool:
    parts = parse_runner("uv", args) if os.path.basename(command) == "uv" else None
    if parts is None or not all(
        starts_at(folder, _in_folder(value or "..", folder))
        if name in _UV_FOLDERS
        else name in _UV_OPTIONS and value is None
        for name, value, _ in parts.options
    ):
        return False
    rest = args[parts.program_at + 1 :]
    return (
        _is_own_file(parts.program, folder)
        or _runs_own_script(parts.program, rest, folder)
        or parts.program in _entry_points(folder)
    )


def _is_container(command: str, args: Sequence[str], _folder: str) -> bool:
    is_engine = command in {"docker", "podman"}
    parts: RunnerCommand | None = parse_runner(command, args) if is_engine else None
    if parts is None or not _IMAGE.fullmatch(parts.program):
        return False
    return all(option.name in _CONTAINER_OPTIONS for option in parts.options)


_FORMS = (_is_fetched, _is_own_program, _runs_own_script, _is_uv_run, _is_container)


def _is_own_file(word: str, folder: str) -> bool:
    """Return whether a word is no option or command, but the path of a file in a folder."""
    path = real_path(os.path.join(folder, _in_folder(word, folder)))
    is_path = not word.startswith("-") and ("." in word or "/" in word)
    return is_path and is_inside(path, real_path(folder)) and os.path.isfile(path)


def _entry_points(folder: str) -> Mapping[str, object]:
    """Return the programs that the `pyproject.toml` of a folder defines."""
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            scripts = tomllib.load(file)["project"]["scripts"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return scripts if isinstance(scripts, dict) else {}
