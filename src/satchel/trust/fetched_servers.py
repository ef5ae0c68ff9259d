"""Find the servers of a project that use none of its files: those fetched by a plain name.

What is not understood counts as a use, so that the files of the project are compared.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from satchel.files.file_reader import real_path
from satchel.files.installed_programs import find_program
from satchel.trust.runner_commands import (
    FETCH_FLAGS,
    FETCH_OPTIONS,
    PACKAGE_OPTIONS,
    RunnerOption,
    parse_runner,
)

_FETCHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"uvx": (), "npx": ("package.json", ".npmrc", "node_modules")}
)
"""Commands that run a package by its name -> files of a project that change what they run."""
_NODE_TOOLS = frozenset(
    f"{tool}{ending}"
    for tool in ("npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx")
    for ending in ("", ".cmd", ".exe")
)
"""Programs that look in all folders above for what they run."""
_NODE_FILES = ("node_modules", "package.json", ".yarnrc", ".yarnrc.yml", "pnpm-workspace.yaml")
_UV_FILES = (".venv", "pyproject.toml", "uv.toml", ".python-version")
_NAME = re.compile(
    r"(@[\w.-]+/)?\w[\w.-]*(\[[\w,-]+\])?((@|[=<>!~]=)[\w.*^~+-]+)?", re.ASCII
)  # @acme/server@1.0, tool[extra]==2.*
_URL = re.compile(r"(git\+)?https?://[\w.~:/?#@!+=%,-]+", re.ASCII)
_OPTION = re.compile(r"^--?[\w-]+=")
_SECOND_RUNNER = re.compile(
    r"((python|pypy|ipython)[\w.]*|uvx?|poetry|pdm|hatch|pipenv|pipx?|tox|nox|pytest|invoke|inv|just"
    r"|make|rake|(ba|z|da|k)?sh|tsx|ts-node|deno|bunx?|pnpm|pnpx|yarn|npm|npx|node|nodemon|jest|vitest"
    r"|gulp|grunt)(\[.*\])?([@=<>!~].*)?",
    re.IGNORECASE,
)
"""What is fetched under these names runs files and modules of the current folder."""
_UNSEEN = re.compile(r"[\0$%\\~*?\[\]{}()<>'\"`|&;!]|/(proc|dev)/")
"""What a shell or a program makes other words of, and names for what is open or current."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
"""A variable of the user's, with its default, if it has one."""
_FOLDER_NAME = re.compile(
    "PWD|CWD|HOME|DIR|PATH|ROOT|FOLDER|SPACE|PROJECT|PREFIX|VIRTUAL|VENV", re.IGNORECASE
)
"""In the name of a variable that may hold the project's folder."""
_EMPTY_ENTRY = re.compile(r"^:|::|:$")
"""In a list of folders, the current one."""
_LONGEST_SHORT_OPTIONS = 64


def may_use_project(table: Mapping[str, Any], base: str) -> bool:
    """Return whether the command of a server may run files of the project."""
    if not (command := table.get("command")):
        return False
    args = table.get("args") or []
    if not isinstance(args, list | tuple):
        return True
    env = table.get("env") or {}
    if not isinstance(env, Mapping) or "env-file" in table or not starts_at(base, table.get("cwd")):
        return True
    args, values = [*map(str, args)], [*map(str, env.values())]
    is_fetched = fetches_only(str(command), args, base) and all(map(is_plain, args))
    if not (is_fetched and are_plain(values)):
        return True
    return any(_names_file(_without_variables(word), base) for word in (*args, *values))


def fetches_only(command: str, args: Sequence[str], folder: str) -> bool:
    """Return whether a command in a folder is one that fetches what it starts."""
    settings = _FETCHERS.get(command)
    if settings is None or not _is_fetched(command, args):
        return False
    return not any(os.path.lexists(os.path.join(folder, name)) for name in settings)


def are_plain(values: Sequence[str]) -> bool:
    """Return whether the variables of a server change nothing of which files it uses.

    Interpreters take options and folders from them, and `npx` commands.
    """
    is_option = any(value.lstrip().startswith("-") for value in values)
    has_current_folder = any(map(_EMPTY_ENTRY.search, values))
    return all(map(is_plain, values)) and not (
        is_option or has_current_folder or any(_starts_program([value]) for value in values)
    )


def is_plain(word: str) -> bool:
    """Return whether a word is none that a program makes other words or a folder of."""
    word = _OPTION.sub("", word)
    text, names = _without_variables(word), variable_names(word)
    may_be_folder = bool(names) and ("/" in text or any(map(_FOLDER_NAME.search, names)))
    return is_name_or_url(word) or not (may_be_folder or has_signs(text))


def variable_names(word: str) -> list[str]:
    """Return the names of the variables in a word."""
    return [match[1] for match in _VARIABLE.finditer(word)]


def _without_variables(word: str) -> str:
    return _VARIABLE.sub(lambda match: match[2] or "", word)


def may_hide_names(table: Mapping[str, Any]) -> bool:
    """Return whether the command of a server may use files that it does not name, as by `*`."""
    env = table.get("env")
    values = env.values() if isinstance(env, Mapping) else [env]
    words = (str(table.get("command")), *map(str, values))
    return any(map(_may_be_code, _arguments(table))) or any(map(has_signs, words))


def _arguments(table: Mapping[str, Any]) -> list[str]:
    args = table.get("args") or []
    return [*map(str, args)] if isinstance(args, list | tuple) else [str(args)]


def _may_be_code(word: str) -> bool:
    return has_signs(word) or len(word.split()) > 1


def has_signs(word: str) -> bool:
    """Return whether a shell or a program could make other words of a word."""
    return _UNSEEN.search(re.sub(r"\$\{\w+\}", "", word)) is not None


def runs_from_above(table: Mapping[str, Any], base: str) -> str:
    """Return a file above a folder that decides which program a server in it runs, or `""`.

    Files in the user's home, and above it, are the user's own.
    """
    command, args = str(table.get("command")), table.get("args") or []
    args = list(map(str, args)) if isinstance(args, list | tuple) else []
    words = re.split(r"[\s/\\;&|]+", " ".join((command, *args)))
    is_fetched = fetches_only(command, args, base) and starts_at(base, table.get("cwd"))
    names = () if is_fetched or _NODE_TOOLS.isdisjoint(words) else _NODE_FILES
    if {"uv", "run"}.issubset(words) and not _has_no_project(command, args):
        names = (*names, *_UV_FILES)
    home = Path(real_path(os.path.expanduser("~")))
    above = takewhile(lambda it: not home.is_relative_to(it), Path(real_path(base)).parents)
    files = (str(folder / name) for folder in above for name in names)
    return next(filter(os.path.lexists, files), "")


def _has_no_project(command: str, args: Sequence[str]) -> bool:
    """Return whether `uv` uses the environment of no project."""
    skips_project = args[:1] == ["tool"] or args[:2] == ["run", "--no-project"]
    return skips_project and os.path.basename(command) == "uv"


def starts_at(base: str, cwd: object) -> bool:
    """Return whether a server with this `cwd` starts in a folder; without one it does."""
    return not cwd or real_path(os.path.join(base, str(cwd))) == real_path(base)


def _is_fetched(command: str, args: Sequence[str]) -> bool:
    """Return whether `uvx` or `npx` fetches what it starts, and only by plain names."""
    parts = parse_runner(command, args)
    if parts is None or not all(map(_is_harmless, parts.options)):
        return False
    # With packages, the program may be one that is installed here, such as a shell.
    has_packages = any(option.name in {*PACKAGE_OPTIONS, "-p"} for option in parts.options)
    is_local = has_packages and find_program(parts.program) is not None
    rest = args[parts.program_at + 1 :]
    runs_others = _SECOND_RUNNER.fullmatch(parts.program) or _starts_program(rest)
    return is_name_or_url(parts.program) and not is_local and not runs_others


def _starts_program(args: Iterable[str]) -> bool:
    """Return whether arguments name a program that may be started, with words for it."""
    words = (re.split(r"[\s=:,@+]+", word) for word in args if not _URL.fullmatch(word))
    parts = [part for word in words for part in word if part]
    return any(map(_SECOND_RUNNER.fullmatch, parts)) or any(map(find_program, parts[:-1]))


def _is_harmless(option: RunnerOption) -> bool:
    if option.value is None:
        return option.name in FETCH_FLAGS
    return option.name in FETCH_OPTIONS and is_name_or_url(option.value)


def is_name_or_url(word: str) -> bool:
    """Return whether a word is the name of a package, with its version, or a web address."""
    return bool(_NAME.fullmatch(word) or _URL.fullmatch(word))


def _names_file(word: str, base: str) -> bool:
    """Return whether a word may name a file of the project, as a whole or in a part."""
    value = _OPTION.sub("", word)
    if _URL.fullmatch(value):
        return False
    text = unquote(value)
    if _UNSEEN.search(text) and not _NAME.fullmatch(text):
        return True
    parts = {word, text, *re.split(r"[\s=:,@+]+", text), *re.split(r"[\s=:,@+.]+", text)}
    # A short option may have its value attached.
    short = [part for part in parts if part.startswith("-") and not part.startswith("--")]
    if any(len(part) > _LONGEST_SHORT_OPTIONS for part in short):
        return True
    parts.update(part[index:] for part in short for index in range(2, len(part)))
    # Slashes at the front may be those of an address, too: file://name.
    names = filter(None, parts | {part.lstrip("/") for part in parts})
    return any(_exists(os.path.join(base, name)) for name in names)


def _exists(path: str) -> bool:
    """Return whether there is something at a path, or with an ending that may be left out."""
    if os.path.lexists(path):
        return True
    folder, stem = os.path.split(path)
    try:
        entries = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # It cannot be listed, but what is in it may be read.
    return any(entry.casefold().startswith(f"{stem.casefold()}.") for entry in entries)
