"""Check the machine for `satchel doctor`: versions, file watching, and file permissions."""

import os
import platform
import tempfile
import threading
from importlib.metadata import version
from shlex import quote

from satchel.configuration.configuration import configuration_path
from satchel.diagnostics import Severity
from satchel.lazy_dataclass import dataclass

_INOTIFY = "/proc/sys/fs/inotify"
_FEWEST_WATCHES = 8_192
"""The limit of old systems; each folder needs one watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCheck:
    """The result of one check; `command` is a shell command that fixes a problem."""

    name: str
    message: str
    severity: Severity = Severity.INFO
    command: str | None = None
    is_ok: bool = True
    """Whether an info says that something is as it should be."""


def environment() -> list[MachineCheck]:
    """Return the results of all checks."""
    checks = [
        MachineCheck(name="python", message=platform.python_version()),
        MachineCheck(name="satchel", message=version("satchel")),
        _watching(),
        _sandbox(),
        _search(),
    ]
    if (limit := _inotify_limit()) is not None:
        checks.append(limit)
    return [*checks, *_readable_value_files()]


def _sandbox() -> MachineCheck:
    from satchel.runtime.program_runner import missing_sandbox  # lazy: only doctor asks

    problem = missing_sandbox()
    if problem is None:
        return MachineCheck(name="sandbox", message="bubblewrap runs scripts and commands")
    message = f"{problem.message} ({problem.code}: {problem.fix})"
    return MachineCheck(name="sandbox", message=message, is_ok=False)


def _search() -> MachineCheck:
    from satchel.search.search_index import can_search  # lazy: only doctor asks

    if can_search():
        message = "sqlite3 has FTS5, so models can search tools and skills"
        return MachineCheck(name="search", message=message)
    message = (
        "models cannot search tools and skills: this Python has no module sqlite3 with FTS5 "
        "(use a Python that has it)"
    )
    return MachineCheck(name="search", severity=Severity.WARNING, message=message)


def is_readable_by_others(path: str) -> bool:
    """Return whether users other than the owner have access to a file."""
    try:
        return os.name == "posix" and bool(os.stat(path).st_mode & 0o077)
    except OSError:
        return False


def _readable_value_files() -> list[MachineCheck]:
    """Return a warning for each file of plugin values that other users can read."""
    folder = os.path.dirname(configuration_path(""))
    try:
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []
    return [
        MachineCheck(
            name="values",
            severity=Severity.WARNING,
            message=f"other users can read {path}",
            command=f"chmod 600 {quote(path)}",
        )
        for path in paths
        if path.endswith(".env") and is_readable_by_others(path)
    ]


def _watching() -> MachineCheck:
    """Check that the operating system reports a written file."""
    # Lazy: imports the package of sources.
    from satchel.files.watcher import native_notifier

    try:
        with tempfile.TemporaryDirectory(prefix="satchel-doctor-") as folder:
            notifier = native_notifier([folder])
            try:
                with open(os.path.join(folder, "probe"), "w", encoding="utf-8") as file:
                    file.write("probe")
                changes = notifier.watch(10, 10, 1_000, threading.Event())
            finally:
                notifier.close()
    except (OSError, RuntimeError) as problem:
        return _no_events(str(problem))
    if isinstance(changes, str):
        return _no_events("no event within a second")
    return MachineCheck(name="watching", message="the system reports file changes")


def _no_events(reason: str) -> MachineCheck:
    message = f"the system does not report file changes ({reason}); files are compared every second"
    return MachineCheck(name="watching", severity=Severity.WARNING, message=message)


def _inotify_limit() -> MachineCheck | None:
    """Check how many folders Linux lets a user watch; `None` on other systems."""
    try:
        with open(f"{_INOTIFY}/max_user_watches", encoding="ascii") as file:
            watches = int(file.read())
        with open(f"{_INOTIFY}/max_user_instances", encoding="ascii") as file:
            instances = int(file.read())
    except (OSError, ValueError):
        return None
    message = f"{watches:,} folders can be watched, by {instances:,} watches"
    if watches >= _FEWEST_WATCHES:
        return MachineCheck(name="inotify", message=message)
    command = "sudo sysctl fs.inotify.max_user_watches=524288"
    return MachineCheck(
        name="inotify", severity=Severity.WARNING, message=f"only {message}", command=command
    )
