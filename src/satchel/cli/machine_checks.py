"""What `satchel doctor` checks about the machine."""

import os
import platform
import tempfile
import threading
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from shlex import quote

from satchel.diagnostics import Severity
from satchel.sources.configuration import configuration_path

_INOTIFY = "/proc/sys/fs/inotify"
_FEWEST_WATCHES = 8_192
"""What old systems allow; one watch is needed for each folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCheck:
    """One thing about the machine; `command` mends it, where that is needed and possible."""

    name: str
    severity: Severity
    message: str
    command: str | None = None


def environment() -> list[MachineCheck]:
    """Check what Satchel needs of the machine."""
    checks = [
        MachineCheck(name="python", severity=Severity.INFO, message=platform.python_version()),
        MachineCheck(name="satchel", severity=Severity.INFO, message=_version()),
        _watching(),
    ]
    if (limit := _inotify_limit()) is not None:
        checks.append(limit)
    return [*checks, *map(_not_private, files_for_others())]


def files_for_others() -> list[str]:
    """Return the files of values that others than their owner may read."""
    folder = os.path.dirname(configuration_path(""))
    try:
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []
    return [path for path in paths if path.endswith(".env") and is_for_others(path)]


def is_for_others(path: str) -> bool:
    """Tell whether others than its owner may read a file."""
    try:
        return os.name == "posix" and bool(os.stat(path).st_mode & 0o077)
    except OSError:
        return False


def _not_private(path: str) -> MachineCheck:
    command = f"chmod 600 {quote(path)}"
    return MachineCheck(
        name="values", severity=Severity.WARNING, message=f"others may read {path}", command=command
    )


def _version() -> str:
    try:
        return version("satchel")
    except PackageNotFoundError:
        return "not installed as a package"


def _watching() -> MachineCheck:
    """See whether the operating system tells of a file that is written."""
    # Lazy: it brings the room of sources.
    from satchel.sources import native_notifier

    try:
        with tempfile.TemporaryDirectory(prefix="satchel-doctor-") as folder:
            notifier = native_notifier([folder])
            try:
                with open(os.path.join(folder, "probe"), "w", encoding="utf-8") as file:
                    file.write("probe")
                news = notifier.watch(10, 10, 1_000, threading.Event())
            finally:
                notifier.close()
    except (OSError, RuntimeError) as problem:
        return _no_events(str(problem))
    if isinstance(news, str):
        return _no_events("no event came within a second")
    return MachineCheck(
        name="watching", severity=Severity.INFO, message="the system tells of changes"
    )


def _no_events(why: str) -> MachineCheck:
    message = f"the system does not tell of changes ({why}); files are compared every second"
    return MachineCheck(name="watching", severity=Severity.WARNING, message=message)


def _inotify_limit() -> MachineCheck | None:
    """Return how many folders Linux lets a user watch, or `None` elsewhere."""
    try:
        with open(f"{_INOTIFY}/max_user_watches", encoding="ascii") as file:
            watches = int(file.read())
        with open(f"{_INOTIFY}/max_user_instances", encoding="ascii") as file:
            instances = int(file.read())
    except (OSError, ValueError):
        return None
    message = f"{watches:,} folders in {instances:,} watches"
    if watches >= _FEWEST_WATCHES:
        return MachineCheck(name="inotify", severity=Severity.INFO, message=message)
    command = "sudo sysctl fs.inotify.max_user_watches=524288"
    return MachineCheck(
        name="inotify", severity=Severity.WARNING, message=f"only {message}", command=command
    )
