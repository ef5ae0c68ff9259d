"""Where Python keeps the compiled files of what Satchel starts, and who may forge them."""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise

from satchel.files.state_files import cache_path, make_folder

VARIABLE = "PYTHONPYCACHEPREFIX"
_PYTHON = re.compile(r"(python|pypy)[\d.]*|py")
_STARTS_OTHERS = frozenset(("uv", "uvx", "npx", "node"))
"""Commands that keep the variable, but what they start may not."""
_UV_VALUES = frozenset(
    ("--directory", "--project", "--with", "--python", "-p", "--extra", "--group")
)
"""Options of `uv run` with a value."""
_LEAVES_ENVIRONMENT = re.compile(
    r"-[A-Za-z]*[EI].*|.*pycache_prefix.*|(.*/)?(env|\w*sh)", re.DOTALL
)


def compiled_cache() -> str:
    """Return the folder that Python uses instead of `__pycache__`, which only the user can write.

    Without such a folder it is one that cannot exist, so that nothing is kept.
    """
    if os.path.isabs(folder := os.environ.get(VARIABLE, "")):
        return folder
    make_folder(path := cache_path("compiled"))
    try:
        status = os.lstat(path)
    except OSError:
        return os.devnull
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    is_private = stat.S_ISDIR(status.st_mode) and is_own and not status.st_mode & 0o022
    return path if is_private else os.devnull


def own_compiled() -> Mapping[str, str]:
    """Return the variable that keeps a program from the compiled files beside its sources."""
    return {VARIABLE: compiled_cache()}


def forget_compiled(path: str) -> None:
    """Delete what Python keeps there of a folder or a module that may be new.

    Python compares only the second and the size of a source, and an installer that replaces it
    cleans `__pycache__` alone.
    """
    import shutil
    from glob import escape, glob

    below = os.path.splitdrive(os.path.abspath(path))[1].lstrip(os.sep)
    kept = os.path.join(compiled_cache(), below)
    if not path.endswith(".py"):
        shutil.rmtree(kept, ignore_errors=True)
    for file in glob(f"{escape(kept.removesuffix('.py'))}.*.pyc"):
        with suppress(OSError):
            os.remove(file)


def may_use_compiled(command: object, args: object) -> bool:
    """Return whether a command could run Python without the variable.

    Python itself has it, but not always the Python that another program starts: a proxy may start
    the command in its arguments in a new environment.
    """
    name = _program_name(command)
    texts = args if isinstance(args, Iterable) and not isinstance(args, str) else [args]
    words = [str(text) for text in texts]
    if any(map(_LEAVES_ENVIRONMENT.fullmatch, words)):
        return True
    at = [index for index, word in enumerate(words) if _runs_python(word)]
    if _PYTHON.fullmatch(name):
        return bool(at)
    if name == "uv" and words[:1] != ["tool"]:
        return bool(at) and (len(at) > 1 or not _are_uv_options(words[: at[0]]))
    is_named = bool(at) or any(word.endswith(".py") for word in words)
    return is_named or name not in _STARTS_OTHERS


def _program_name(command: object) -> str:
    return os.path.basename(str(command)).removesuffix(".exe")


def _runs_python(word: str) -> bool:
    name = _program_name(word)
    return name in {"uv", "uvx"} or _PYTHON.fullmatch(name) is not None


def _are_uv_options(words: list[str]) -> bool:
    """Return whether these are only `run` and options, so that the next word is the program."""
    if "run" in words:
        words.remove("run")
    return all(
        word.startswith("-") or before in _UV_VALUES for before, word in pairwise(("", *words))
    )


def is_replaceable(path: str) -> bool:
    """Return whether a file is compiled from a source beside, so Python makes it again."""
    folder, name = os.path.split(path)
    above, last = os.path.split(folder)
    is_cached = last == "__pycache__" and name.endswith(".pyc")
    return is_cached and os.path.isfile(os.path.join(above, f"{name.partition('.')[0]}.py"))
