"""Find the servers of a project that use none of its files: those fetched by a plain name.

What is not understood counts as a use, so that the files of the project are compared.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from satchel.files.file_reader import Stamp, is_inside, real_path
from satchel.files.installed_programs import find_program
from satchel.files.state_files import environment
from satchel.formats.mcp_json import PLUGIN_DATA, PLUGIN_ROOT
from satchel.formats.server_placeholders import PlaceholderFiller
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
_UV_FILES = (".venv", "pyproject.toml", "uv.toml", ".python-version", ".python-versions")
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
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]{0,500}))?\}")
"""A variable of the user's, with its default, if it has one."""
_FOLDER_NAME = re.compile(
    "(PWD|CWD|HOME|DIR|DIRECTORY|PATH|ROOT|FOLDER|SPACE|PREFIX|VENV|VIRTUAL_ENV|PROJECT)S?(_|\\d|$)"
    "(?!(ID|KEY|NAME|TOKEN|REF|NUMBER|URL|URI)$)",
    re.IGNORECASE,
)
"""In the name of a variable that may hold the project's folder."""
_SEARCH_NAME = re.compile(
    "(PATH|HOME|DIR|DIRECTORY|ROOT|PREFIX)S?(_|$)|^(LD|DYLD|NODE|UV|PIP|NPM_CONFIG|BUN|DENO|GIT)_"
    "|^(PYTHON|PERL|RUBY|BASH)",
    re.IGNORECASE,
)
"""In the name of a variable that may say where a program looks for others, and for options."""
_CONTAINER_OPTIONS = frozenset(
    (
        *("run", "-i", "-t", "-it", "--interactive", "--tty", "--rm", "--init"),
        *("-e", "--env", "--name", "--network", "--platform", "--pull"),
    )
)
"""Options of docker and podman that give a container no folder of this machine."""
_IMAGE = re.compile(r"\w[\w.-]*(:\d+)?(/\w[\w.-]*)*(:\w[\w.-]*)?(@sha256:[0-9a-f]{64})?", re.ASCII)
_PARENT_FOLDER = re.compile(r"(?<!\.)\.\.(?![.\w])")
DATA_FOLDER = "/plugin-data"
"""Stands for the folder of a plugin's data, which no project contains."""
_EMPTY_ENTRY = re.compile(r"^:|::|:$")
"""In a list of folders, the current one."""
_LONGEST_SHORT_OPTIONS = 64
_PROGRAM_NAME = re.compile(r"(?<![\w.-])[\w-]+(?![\w-])")
"""A word that may name a program, however a shell would quote it."""
_LISTED = re.compile(r"[\0\s:,;=@]+")
"""What separates paths in a list or behind an option."""


def may_use_project(table: Mapping[str, Any], base: str) -> bool:
    """Return whether the command of a server may run files of the project."""
    return any(_may_use(it, base) for it in readings(table)) or is_given_path(table, base, base)


def as_started(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a declaration with the user's variables filled in."""
    filler = PlaceholderFiller(variables=environment(), folders={"": ""})
    return {name: _filled(value, filler) for name, value in table.items()}


def is_given_path(table: Mapping[str, Any], project: str, start: str, own: str = "") -> bool:
    """Return whether a variable of the user's gives a server a path in a project.

    The server starts in the folder `start`. Paths in the folder `own` do not count.
    """
    filled = as_started(table)
    if filled == table:
        return False
    words = (word for text in texts_in(filled) for word in (text, *_LISTED.split(unquote(text))))
    paths = (os.path.join(start, word) for word in words if word)
    targets = (real_path(path) for path in paths if os.path.lexists(path))
    base = real_path(project)
    return any(is_inside(it, base) and not (own and is_inside(it, own)) for it in targets)


def names_parent(text: str) -> bool:
    """Return whether a text has a `..` as a part of a path."""
    return _PARENT_FOLDER.search(text) is not None


def texts_in(value: object) -> Iterator[str]:
    """Yield all texts in a declaration: names, values and items."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for item in value:
            yield from texts_in(item)
    else:
        yield str(value)


def readings(table: Mapping[str, Any], folder: str = "") -> tuple[Mapping[str, Any], ...]:
    """Return a declaration as it is written, and with its folder and defaults filled in.

    What is decided about a server must hold for both: the defaults are used unless the user has
    set the variables.
    """
    folders = {PLUGIN_ROOT: folder, PLUGIN_DATA: DATA_FOLDER} if folder else {}
    folders |= {f"CLAUDE_{name}": path for name, path in folders.items()}
    # With some folder, what has no value stays as it is.
    filler = PlaceholderFiller(variables={}, folders=folders or {"": ""})
    return table, {name: _filled(value, filler) for name, value in table.items()}


def _filled(value: Any, filler: PlaceholderFiller) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(item, filler) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, filler) for item in value]
    return filler.filled(value) if isinstance(value, str) else value


def _may_use(table: Mapping[str, Any], base: str) -> bool:
    if not (command := table.get("command")):
        return False
    args, env = table.get("args") or [], table.get("env") or {}
    if not isinstance(args, list | tuple) or not isinstance(env, Mapping):
        return True
    if "env-file" in table or not starts_at(base, table.get("cwd")):
        return True
    args, values = [*map(str, args)], {str(name): str(value) for name, value in env.items()}
    is_fetched = fetches_only(str(command), args, base) and all(map(is_plain, args))
    if not is_fetched and not is_container(str(command), args):
        return True
    if not are_plain(values) or any(map(_changes_search, values.items())):
        return True
    return any(_names_file(_without_variables(it), base) for it in (*args, *values.values()))


def _changes_search(variable: tuple[str, str]) -> bool:
    """Return whether a variable may say where a program looks for others, and for its options."""
    name, value = variable
    return _SEARCH_NAME.search(name) is not None and not re.fullmatch(r"\w+", value)


def is_container(command: str, args: Sequence[str]) -> bool:
    """Return whether a command starts a container that has no folder of this machine."""
    parts = parse_runner(command, args) if command in {"docker", "podman"} else None
    if parts is None or not _IMAGE.fullmatch(parts.program):
        return False
    return all(option.name in _CONTAINER_OPTIONS for option in parts.options)


def fetches_only(command: str, args: Sequence[str], folder: str) -> bool:
    """Return whether a command in a folder is one that fetches what it starts."""
    if command == "uv" and [*args[:2]] == ["tool", "run"]:
        command, args = "uvx", args[2:]
    settings = _FETCHERS.get(command)
    if settings is None or not _is_fetched(command, args):
        return False
    # With a version it is what was published, not a program of the project by that name.
    parts = parse_runner(command, args)
    has_version = parts is not None and "@" in parts.program[1:]
    return has_version or not any(os.path.lexists(os.path.join(folder, name)) for name in settings)


def are_plain(env: Mapping[str, str]) -> bool:
    """Return whether the variables of a server change nothing of which files it uses.

    Interpreters take options and folders from them, and `npx` commands.
    """
    values = env.values()
    is_option = any(value.lstrip().startswith("-") for value in values)
    has_current_folder = any(map(_EMPTY_ENTRY.search, values)) or any(
        not value and _SEARCH_NAME.search(name) for name, value in env.items()
    )
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
    return any(map(_may_hide, readings(table)))


def _may_hide(table: Mapping[str, Any]) -> bool:
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
    return next(filter(None, (_used_above(reading, base) for reading in readings(table))), "")


def _used_above(table: Mapping[str, Any], base: str) -> str:
    command, args = str(table.get("command")), table.get("args") or []
    args = list(map(str, args)) if isinstance(args, list | tuple) else []
    words = _PROGRAM_NAME.findall(" ".join((command, *args)))
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
        return os.path.lexists(os.path.join(base, value))
    text = unquote(value)
    if names_parent(text):
        return True  # A program may resolve it in the text, where the system does not.
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
        stems = _stems(folder, Stamp.at(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # It cannot be listed, but what is in it may be read.
    return stem.casefold() in stems


@lru_cache(8)
def _stems(folder: str, _stamp: Stamp) -> frozenset[str]:
    """Return what names in a folder begin with, up to any of their dots."""
    names = [entry.casefold() for entry in os.listdir(folder)]
    return frozenset(name[: it.start()] for name in names for it in re.finditer(r"\.", name))
