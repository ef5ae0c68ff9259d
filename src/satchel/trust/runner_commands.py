"""Split the command line of a runner: a program that starts a package, image or module by its name.

Such as `npx -y PACKAGE`, `uv run --project FOLDER FILE`, `docker run -i IMAGE`, `python -m MODULE`.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

FETCH_FLAGS = frozenset(
    (
        *("-y", "--yes", "-q", "--quiet", "--isolated", "--refresh", "--no-cache"),
        *("--offline", "--prefer-offline", "--"),
    )
)
"""Options without a value that only say how `npx` and `uvx` fetch, and the end of options."""
_CONTAINER_FLAGS = frozenset(("-i", "-t", "-it", "--interactive", "--tty", "--rm", "--init"))
_OWN_FLAGS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("docker", "podman"), _CONTAINER_FLAGS),
        "deno": frozenset(("-A", "--allow-all")),
    }
)
"""Runners -> their further options without a value."""
FETCH_OPTIONS = frozenset(
    ("--from", "--package", "-p", "--with", "-w", "--python", "--index-url", "--registry")
)
"""Options with a value that say what `npx` and `uvx` fetch, and how."""
PACKAGE_OPTIONS = frozenset(("--from", "--package", "--spec"))
"""Options of runners whose value is a package."""
_WITH_VALUE = frozenset(
    (
        *FETCH_OPTIONS,
        *PACKAGE_OPTIONS,
        *("-e", "--env", "--env-file", "-v", "--volume", "--mount", "-u", "--user", "--name"),
        *("--publish", "--network", "--workdir", "--platform", "--entrypoint"),
        *("--directory", "--project", "--loglevel"),
    )
)
"""Options of runners with a value."""
_RUNNERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("npx", "bunx", "uvx"), frozenset[str]()),
        **dict.fromkeys(("docker", "podman", "pipx", "deno"), frozenset(("run",))),
        **dict.fromkeys(("pnpm", "yarn"), frozenset(("dlx",))),
        "bun": frozenset(("x",)),
        "npm": frozenset(("exec",)),
        "uv": frozenset(("tool", "run")),
        **dict.fromkeys(("python", "python3"), frozenset(("-m",))),
    }
)
"""Runners -> their subcommands that start something by its name."""
_PYTHON_FLAGS = re.compile("-[bBdEiIOPqsSuv]+")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)


class RunnerOption(NamedTuple):
    """An option in front of what a runner starts, or a subcommand such as `run`."""

    name: str
    value: str | None
    """`None` for one without a value."""
    last_index: int
    """The index of its value, or its own without one."""


class RunnerCommand(NamedTuple):
    """The arguments of a runner, split; those behind the program are the program's own."""

    options: list[RunnerOption]
    program: str
    """The first word that is no known option or subcommand; `""` if there is none."""
    program_at: int


def parse_runner(name: str, args: Sequence[str]) -> RunnerCommand | None:
    """Split the arguments of a runner. Return `None` for another program or subcommand."""
    if (subcommands := _RUNNERS.get(name)) is None:
        return None
    options, at, needs_subcommand = list[RunnerOption](), 0, bool(subcommands)
    flags = FETCH_FLAGS | _OWN_FLAGS.get(name, frozenset())
    while at < len(args):
        word = args[at]
        option, equals, value = word.partition("=")
        is_python_flag = name.startswith("python") and _PYTHON_FLAGS.fullmatch(word)
        if needs_subcommand and word in subcommands:
            options.append(RunnerOption(word, None, at))
            needs_subcommand = word == "tool"  # of `uv tool run`
        elif word in flags or is_python_flag:
            options.append(RunnerOption(word, None, at))
        elif word in _WITH_VALUE:
            at += 1
            options.append(RunnerOption(word, args[at] if at < len(args) else "", at))
        elif equals and (option in _WITH_VALUE or word.startswith("--")):
            options.append(RunnerOption(option, value, at))
        else:
            break
        at += 1
        if word == "--":
            break
    program = args[at] if at < len(args) else ""
    return None if needs_subcommand else RunnerCommand(options, program, at)


def inner_runner_index(name: str, args: Sequence[str]) -> int:
    """Return the index of the runner that `cmd /c` or `env` starts, 0 if there is none."""
    if name == "env":
        start = next((at for at, it in enumerate(args) if not _ASSIGNMENT.fullmatch(it)), 0)
    else:
        start = int(name == "cmd" and bool(args) and args[0].lower() == "/c")
    return start if args[start : start + 1] and args[start] in _RUNNERS else 0
