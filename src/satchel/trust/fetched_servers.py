"""Find the servers of a project that use none of its files: those fetched by a plain name.

What is not understood counts as a use, so that the files of the project are compared.
"""

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from satchel.files.file_reader import real_path
from satchel.files.installed_programs import find_program

_FETCHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"uvx": (), "npx": ("package.json", ".npmrc", "node_modules")}
)
"""Commands that run a package by its name -> files of a project that change what they run."""
FETCH_FLAGS = frozenset(
    (
        *("-y", "--yes", "-q", "--quiet", "--isolated", "--refresh", "--no-cache"),
        *("--offline", "--prefer-offline"),
    )
)
"""Options of these commands without a value."""
PACKAGE_OPTIONS = frozenset(("--from", "--package"))
"""Options of these commands whose value is a package."""
VALUE_OPTIONS = frozenset(("--with", "-w", "--python", "--index-url", "--registry"))
"""Other options of these commands with a value."""
_PACKAGES = PACKAGE_OPTIONS | {"-p"}
_NAME = re.compile(
    r"(@[\w.-]+/)?\w[\w.-]*(\[[\w,-]+\])?((@|[=<>!~]=)[\w.*^~+-]+)?", re.ASCII
)  # @acme/server@1.0, tool[extra]==2.*
_URL = re.compile(r"(git\+)?https?://[\w.~:/?#@!+=%,-]+", re.ASCII)
_OPTION = re.compile(r"^--?[\w-]+=")
_INTERPRETER = re.compile(r"(python|pypy)[\w.]*(@.*)?")
"""What `uvx` starts under these names runs files and modules of the current folder."""
_UNSEEN = re.compile(r"[\0$%\\~*?\[\]{}()<>'\"`|&;!]|/(proc|dev)/")
"""What a shell or a program makes other words of, and names for what is open or current."""
_LONGEST_SHORT_OPTIONS = 64


def may_use_project(table: Mapping[str, Any], base: str) -> bool:
    """Return whether the command of a server may run files of the project."""
    if not (command := table.get("command")):
        return False
    settings, args = _FETCHERS.get(str(command)), table.get("args") or []
    if settings is None or not isinstance(args, list | tuple):
        return True
    if table.get("env") or table.get("env-file") or not _starts_at(base, table.get("cwd")):
        return True
    args = list(map(str, args))
    if not _is_fetched(args):
        return True
    has_settings = any(os.path.lexists(os.path.join(base, name)) for name in settings)
    return has_settings or any(_names_file(word, base) for word in args)


def _starts_at(base: str, cwd: object) -> bool:
    # Without `cwd`, a server starts in the project.
    return not cwd or real_path(os.path.join(base, str(cwd))) == real_path(base)


def _is_fetched(args: Iterable[str]) -> bool:
    """Return whether `uvx` or `npx` fetches what it starts, and only by plain names."""
    words, has_packages = iter(args), False
    for word in words:
        option, equals, value = word.partition("=")
        if option in _PACKAGES | VALUE_OPTIONS:
            has_packages = has_packages or option in _PACKAGES
            value = value if equals else next(words, "")
            if not (_NAME.fullmatch(value) or _URL.fullmatch(value)):
                return False
        elif word not in FETCH_FLAGS:
            program = next(words, "") if word == "--" else word
            is_plain = bool(_NAME.fullmatch(program) or _URL.fullmatch(program))
            # With packages, the program may be one that is installed here, such as a shell.
            is_local = has_packages and find_program(program) is not None
            return is_plain and not is_local and not _INTERPRETER.fullmatch(program)
    return False


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
