"""Find the commands that may run the compiled files beside Python's sources.

A program that Satchel starts gets a variable that keeps Python from them. Python itself reads it,
but what another program starts may not have it: a proxy may use a new environment.
"""

import os
import re
from collections.abc import Iterable
from itertools import dropwhile

from satchel.trust.runner_commands import parse_runner

_PYTHON = re.compile(r"(python|pypy)[\d.]*|py")
_STARTERS = frozenset(("uvx", "npx", "node"))
"""Commands that pass the variable on, but what they start may not."""
_LEAVES_ENVIRONMENT = re.compile(
    r"-[A-Za-z]*[EI].*|.*pycache_prefix.*|(.*/)?(env|\w*sh)", re.DOTALL
)


def may_use_compiled(command: object, args: object, folder: str) -> bool:
    """Return whether a command in a folder could run Python without the variable."""
    name = _program_name(str(command))
    texts = args if isinstance(args, Iterable) and not isinstance(args, str) else [args]
    words = [str(text) for text in texts]
    if any(map(_LEAVES_ENVIRONMENT.fullmatch, words)):
        return True
    is_tool = name == "uv" and words[:1] == ["tool"]
    if name == "uv" and not is_tool and (parts := parse_runner(name, words)):
        # Behind the program that `uv run` starts, which may be Python itself.
        name, words = "python", ["-m", *words[parts.program_at :]]
    # The first program has the variable; what it starts may not.
    rest = [*dropwhile(lambda word: word.startswith("-"), words)][1:]
    if any(_runs_python(word) or _is_program(word, folder) for word in rest):
        return True
    if _PYTHON.fullmatch(name):
        return False
    return any(word.endswith(".py") for word in words) or not (is_tool or name in _STARTERS)


def _is_program(word: str, folder: str) -> bool:
    path = os.path.join(folder, word)
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _program_name(command: str) -> str:
    return os.path.basename(command).removesuffix(".exe")


def _runs_python(word: str) -> bool:
    name = _program_name(word)
    return name in {"uv", "uvx"} or _PYTHON.fullmatch(name) is not None
