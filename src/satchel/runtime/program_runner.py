"""Run the scripts of skills and the commands of a model: plainly, in a sandbox, or by the host.

The sandbox is bubblewrap, where it is installed and works; it often does not in containers.
"""

import logging
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache, partial
from inspect import isawaitable
from typing import Any, Protocol, runtime_checkable

from satchel.configuration.configuration import config_folder
from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.errors import ToolError
from satchel.files.file_reader import is_inside
from satchel.files.installed_programs import find_program
from satchel.files.secret_files import is_secret_file
from satchel.files.state_files import state_folder
from satchel.lazy_dataclass import dataclass
from satchel.runtime.child_process import STREAM_LIMIT, run_program
from satchel.settings import KIB, MIB, Sandbox
from satchel.text import shorten
from satchel.tools.callables import in_thread

_log = logging.getLogger("satchel.runtime")

_SECRET_PLACES = (
    # All settings of programs: many keep their logins there.
    *(".config", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".fly", ".bundle"),
    *(".netrc", ".git-credentials", ".pypirc", ".npmrc", ".env", ".local/share/keyrings", ".pip"),
    *(".mozilla", ".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".lesshst"),
    *(".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".pgpass"),
    *(".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json"),
    *(".cargo/credentials.toml", ".cargo/credentials", ".m2/settings.xml", ".s3cfg", ".boto"),
    *(".gradle/gradle.properties", ".terraform.d/credentials.tfrc.json", ".vault-token", ".my.cnf"),
    *(".huggingface", ".cache/huggingface/token", ".password-store", ".cursor", ".databrickscfg"),
    *(".bitcoin", ".ethereum", ".electrum", ".thunderbird", ".yarnrc.yml", ".yarnrc", ".composer"),
    *(".gem/credentials", ".nuget/NuGet", ".condarc", ".kaggle", ".snowflake", ".dbt", ".wgetrc"),
    *(".curlrc", ".authinfo", ".authinfo.gpg", ".local/share/uv/credentials", ".pki", ".vercel"),
    *(".jupyter", ".ipython", ".viminfo", ".sqlite_history", ".rediscli_history", ".ngrok2"),
)
"""Files and folders in the user's home that a sandboxed program does not see."""
_SOCKET_PLACES = (
    *("/run", "/var/run", "/var/tmp", "/var/spool", "/var/snap", "/var/lib/mysql"),  # noqa: S108
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/lxd"),
    *("/var/lib/incus", "/var/lib/libvirt", "/var/lib/snapd", "/var/lib/postgresql"),
)
"""Folders in which programs of the system make sockets, or where all users may make some.

Sockets elsewhere are hidden if they exist when a program starts.
"""
_SOCKETS = "/proc/net/unix"
_TRIES = 5
_NOT_MADE = ("bwrap: Can't create file at ", "bwrap: Can't mkdir parents for ")
_PROBE_SECONDS = 10.0
_HIDDEN_SIZE = MIB
_BLOCK = 512
_OPEN_FILES = 256
_RESULT = frozenset({"returncode", "stdout", "stderr", "timed_out"})
_MOST_SHOWN = 200
_RESERVES = frozenset({"node"})
"""Programs that reserve far more memory than they use, so its limit would end them at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to be run, and what it may do. Paths are absolute."""

    command: Sequence[str]
    folder: str
    """Where it starts."""
    seconds: float
    """After this time it must be ended, with all that it started."""
    kind: str
    """`script` of a skill, `shell` command or `python` code of a model."""
    readable: Sequence[str] = ()
    """Folders and files that it needs to read, such as that of its skill."""
    writable: Sequence[str] = ()
    """Folders that it may change."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    """What the host allows."""
    output: int = STREAM_LIMIT
    """Bytes that are kept of each output stream."""


@runtime_checkable
class ProgramRunner(Protocol):
    """Runs programs, for instance in a container of the host."""

    async def run(self, program: Program) -> dict[str, Any]:
        """Run a program to its end; return `returncode`, `stdout`, `stderr` and `timed_out`.

        Raise `ToolError` with a text for the model if it cannot be started.
        """


@dataclass(frozen=True, slots=True)
class PlainRunner:
    """Runs programs with all rights of the user; only time, memory and output have limits."""

    async def run(self, program: Program) -> dict[str, Any]:
        """Run a program to its end."""
        command = _limited(program)
        return await run_program(command, program.folder, program.seconds, limit=program.output)


@dataclass(frozen=True, slots=True)
class SandboxRunner:
    """Runs programs in bubblewrap: without network, and with few places that they can change."""

    path: str

    async def run(self, program: Program) -> dict[str, Any]:
        """Run a program to its end."""
        limits = _process_limits(program.sandbox.processes)
        for _ in range(_TRIES):
            sandbox: list[str] = await in_thread(partial(sandbox_command, self.path, program))
            command = [*sandbox, *_limited(program, *limits)]
            result = await run_program(
                command, program.folder, program.seconds, limit=program.output
            )
            # A socket that was to be hidden is gone, so nothing was started yet.
            if not (result["returncode"] and str(result["stderr"]).startswith(_NOT_MADE)):
                break
        return result


@dataclass(frozen=True, slots=True)
class DefaultRunner:
    """Runs programs in a sandbox if the system has one; else it says so, and runs them plainly."""

    async def run(self, program: Program) -> dict[str, Any]:
        """Run a program to its end. Raises `ToolError` if the host requires a sandbox."""
        if program.sandbox.mode == "off":
            return await PlainRunner().run(program)
        path, _ = await _found()
        if path:
            return await SandboxRunner(path).run(program)
        if program.sandbox.mode == "required":
            raise ToolError(
                "Programs run only in a sandbox here, and this system has none that works. "
                "Tell the user, and continue without running it."
            )
        _warn_once()
        return await PlainRunner().run(program)


async def run_with(runner: ProgramRunner | None, program: Program) -> dict[str, Any]:
    """Run a program with the runner of the host, if there is one. Raises `ToolError`."""
    if runner is None:
        return await DefaultRunner().run(program)
    outcome: object = runner.run(program)
    result = await outcome if isawaitable(outcome) else outcome
    if isinstance(result, dict) and result.keys() >= _RESULT:
        result_texts = result["stdout"], result["stderr"]
        if all(isinstance(text, str) for text in result_texts):
            return result
    _log.error(
        "the runner %s returned %s, not a dict with returncode, timed_out, and stdout and stderr "
        "as text",
        type(runner).__name__,
        shorten(repr(result), _MOST_SHOWN),
    )
    raise ToolError(
        "The runner of this application returned an invalid result, so the program may not have "
        "run. Report this to the user."
    )


async def _found() -> tuple[str, str]:
    sandbox: tuple[str, str] = await in_thread(find_sandbox)
    return sandbox


def find_sandbox() -> tuple[str, str]:
    """Return the path of a sandbox that works, or `""` and the reason; blocks the first time."""
    from subprocess import SubprocessError

    if sys.platform != "linux":
        return "", "bubblewrap, the sandbox that is used, is for Linux"
    try:
        return _probed()
    except (OSError, SubprocessError) as problem:
        # Not remembered: a machine that is busy, or lacks handles, can have it later.
        return "", f"bubblewrap does not work here: {problem}"


@cache
def _probed() -> tuple[str, str]:
    import subprocess

    path = find_program("bwrap")
    if path is None:
        return "", "bubblewrap is not installed"
    probe = Program(command=("true",), folder="/", seconds=_PROBE_SECONDS, kind="probe")
    done = subprocess.run(  # noqa: S603 - a fixed command
        [*sandbox_command(path, probe), "true"],
        capture_output=True,
        timeout=_PROBE_SECONDS,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        return "", f"bubblewrap does not work here: {lines[-1] if lines else done.returncode}"
    return path, ""


def missing_sandbox() -> Diagnostic | None:
    """Return why there is no sandbox for programs, or `None` if there is one."""
    path, reason = find_sandbox()
    if path:
        return None
    return make_diagnostic(
        "sandbox-missing",
        Where("this system"),
        f"scripts of skills and commands run without a sandbox: {reason}",
        "apt install bubblewrap, or pass a runner of your own: Satchel(runner=...)",
    )


@cache
def _warn_once() -> None:
    _log.warning(
        "programs run without a sandbox, with all rights of this user: %s. "
        "Install bubblewrap, pass Satchel(runner=...), or set Sandbox(mode='required')",
        find_sandbox()[1],
    )


def sandbox_command(bwrap: str, program: Program) -> list[str]:
    """Return the command line of the sandbox, before that of the program."""
    sandbox = program.sandbox
    writable = [*program.writable, *map(os.path.expanduser, sandbox.writable)]
    readable = [*program.readable, program.folder, sys.prefix, sys.base_prefix]
    return [
        bwrap,
        *("--unshare-all", "--die-with-parent", "--new-session"),
        # With those of root, a program could make writable or visible what is not.
        *("--cap-drop", "ALL"),
        *(("--share-net",) if sandbox.network else ()),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        # In memory, so their sizes are bounded, too.
        *_tmpfs(bwrap, "/tmp", sandbox.memory // 2),  # noqa: S108 - a private one
        *_tmpfs(bwrap, "/dev/shm", sandbox.memory // 2),  # noqa: S108
        *("--remount-ro", "/dev"),
        *(() if sandbox.network else _hidden_socket_places(bwrap)),
        *_hidden_secrets(bwrap),
        # After the folders that hide them.
        *(part for path in _existing(readable) for part in ("--ro-bind", path, path)),
        *(part for path in _existing(writable) for part in ("--bind", path, path)),
        *(part for path in _secrets_in(program.readable) for part in _hidden(bwrap, path)),
        *(() if sandbox.network else _hidden_sockets(_existing([*readable, *writable]))),
        *("--chdir", program.folder, "--"),
    ]


def _hidden_socket_places(bwrap: str) -> list[str]:
    places = {os.path.realpath(place) for place in _SOCKET_PLACES} - {"/tmp"}  # noqa: S108
    return [part for place in sorted(places) for part in _hidden(bwrap, place)]


def _hidden_sockets(visible: Sequence[str]) -> Iterator[str]:
    """Yield what hides the sockets that are outside of hidden places, or in visible folders."""
    places = [*map(os.path.realpath, _SOCKET_PLACES), "/tmp", "/dev", "/proc"]  # noqa: S108
    for path in sorted(set(_bound_sockets())):
        in_place = any(is_inside(path, place) for place in places)
        if not in_place or any(is_inside(path, folder) for folder in visible):
            yield from ("--ro-bind", "/dev/null", path)


def _bound_sockets() -> Iterator[str]:
    """Yield the sockets in folders where the programs that run now made some, without links.

    A socket may have another name by now.
    """
    try:
        with open(_SOCKETS, errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    paths = (line[at:] for line in lines if (at := line.find("/")) > 0)
    for folder in {os.path.dirname(os.path.realpath(path)) for path in paths}:
        try:
            with os.scandir(folder) as entries:
                others = [
                    it for it in entries if not (it.is_symlink() or it.is_dir() or it.is_file())
                ]
        except OSError:
            continue  # it is gone, or of another container
        yield from (entry.path for entry in others if _is_socket(entry))


def _is_socket(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False  # it is gone


def _hidden_secrets(bwrap: str) -> list[str]:
    home = os.path.expanduser("~")
    places = [*_SECRET_PLACES, os.environ.get("XDG_CONFIG_HOME") or ".config"]
    places = [os.path.join(home, place) for place in places] if home != "/" else []
    places += [config_folder(), state_folder()]
    return [part for place in places for part in _hidden(bwrap, os.path.realpath(place))]


def _secrets_in(folders: Iterable[str]) -> Iterator[str]:
    """Yield what holds secrets in the folders of a skill, such as `.env`, without links."""
    for folder in folders:
        for path, inside, files in os.walk(folder):
            names = filter(is_secret_file, (*inside, *files))
            yield from (os.path.realpath(os.path.join(path, name)) for name in names)
            inside[:] = [name for name in inside if not is_secret_file(name)]


def _hidden(bwrap: str, path: str) -> tuple[str, ...]:
    if os.path.isdir(path):
        return _tmpfs(bwrap, path, _HIDDEN_SIZE)
    return ("--ro-bind", "/dev/null", path) if os.path.isfile(path) else ()


def _tmpfs(bwrap: str, path: str, size: int) -> tuple[str, ...]:
    bound = ("--size", str(size)) if size > 0 and _can_bound(bwrap) else ()
    return (*bound, "--tmpfs", path)


@cache
def _can_bound(bwrap: str) -> bool:
    """Return whether bubblewrap has the option for it; those before 0.7 have not."""
    import subprocess

    return (
        b"--size "
        in subprocess.run(  # noqa: S603 - a fixed command
            [bwrap, "--help"], capture_output=True, timeout=_PROBE_SECONDS, check=False
        ).stdout
    )


def _existing(paths: Iterable[str]) -> list[str]:
    """Return the paths that exist and are not the whole system, the outer ones first."""
    resolved = {os.path.realpath(path) for path in paths}
    return sorted(path for path in resolved if path != "/" and os.path.exists(path))


def _process_limits(most: int) -> tuple[str, ...]:
    """Return the limit of processes, if only those in the sandbox count, as since Linux 5.14."""
    version = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    # -u is that of bash, -p that of dash.
    return (f"ulimit -u {most} 2>/dev/null || ulimit -p {most}",) if version >= (5, 14) else ()


def _limited(program: Program, *extra: str) -> list[str]:
    """Return the command with limits for memory and files, where a shell can set them."""
    command = list(program.command)
    if sys.platform == "win32" or program.sandbox.memory <= 0:
        return command
    files = f"ulimit -f {program.sandbox.file_size // _BLOCK}"
    limits = [files, f"ulimit -n {_OPEN_FILES}", *extra]
    if os.path.basename(command[0]) in _RESERVES:
        command[1:1] = [f"--max-old-space-size={program.sandbox.memory // (KIB * KIB)}"]
    else:
        limits.append(f"ulimit -v {program.sandbox.memory // KIB}")
    # A lower limit of the host stays. The program replaces the shell.
    script = "; ".join(f"{limit} 2>/dev/null" for limit in limits) + '; exec "$@"'
    return ["/bin/sh", "-c", script, "sh", *command]
