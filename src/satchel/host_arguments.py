"""Validate and normalize what the host passes to a `Satchel`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from satchel.configuration.projects import Project
from satchel.errors import DefinitionError

if TYPE_CHECKING:
    from satchel.loader.lock_guard import LockGuard
    from satchel.runtime.error_results import ErrorText
    from satchel.runtime.program_runner import ProgramRunner
    from satchel.settings import Settings

PathLike = str | os.PathLike[str]


def check_options(errors: ErrorText, settings: Settings, runner: ProgramRunner | None) -> None:
    """Raise `DefinitionError` for an option that has no meaning."""
    if errors not in {"summary", "message"} and not callable(errors):
        raise DefinitionError(
            f"errors must be 'summary', 'message' or a function, not {errors!r}",
            fix="a function takes the tool's name and the exception, and returns a text",
        )
    if settings.sandbox.mode not in {"auto", "required", "off"}:
        raise DefinitionError(
            f"the mode of a sandbox must be auto, required or off, not {settings.sandbox.mode!r}"
        )
    if runner is not None and not callable(getattr(runner, "run", None)):
        raise DefinitionError(
            f"{type(runner).__name__} is not a runner of programs",
            fix="pass an object with 'async def run(self, program)'",
        )


def as_tuple(value: Iterable[Any] | PathLike) -> tuple[Any, ...]:
    """Normalize a single path or name, or an iterable of them, to a tuple."""
    return (value,) if isinstance(value, str | os.PathLike) else tuple(value)


def as_project(value: Project | PathLike | None) -> Project | None:
    """Return the project of a folder, with no more trust than the user's record has."""
    return value if value is None or isinstance(value, Project) else Project(value)


def as_providers(value: Any) -> Iterable[Any]:
    """Normalize one provider, or an iterable of them."""
    is_one = hasattr(value, "contribute") or isinstance(value, str | type)
    return value if isinstance(value, Iterable) and not is_one else (value,)


def lock_guard(path: PathLike | None, *, is_frozen: bool) -> LockGuard | None:
    """Read a lock file, if one is named."""
    if path is None:
        if is_frozen:
            raise DefinitionError("frozen=True needs a lock file", fix='pass locked="satchel.lock"')
        return None
    from satchel.loader.lock_guard import load_guard  # lazy: needed only with a lock file

    return load_guard(path, is_frozen=is_frozen)


def plugin_values(plugin: str, value: Any) -> dict[str, Any]:
    """Return a copy of the values of a plugin's configuration."""
    if not isinstance(value, Mapping):
        raise DefinitionError(
            f"config has a {type(value).__name__} for {plugin!r}, not keys and values",
            fix='write Satchel(config={"plugin": {"key": value}})',
        )
    return dict(value)


def as_patterns(option: str, value: Iterable[str] | str) -> tuple[str, ...]:
    """Normalize one pattern, or an iterable of them."""
    patterns: tuple[Any, ...] = (value,) if not isinstance(value, Iterable) else as_tuple(value)
    for item in patterns:
        if not isinstance(item, str) or not item:
            raise DefinitionError(
                f"{option} has {item!r}, which is not a pattern",
                fix=f'write {option}=["read_*", "skill:pdf"]',
            )
    return patterns
