"""Capture the configuration of `logging`, and restore it after plugin code has changed it.

The root logger and the loggers that existed count; a plugin may configure loggers of its own.
Nothing here calls a handler or a filter: they may be plugin code. `logging` is imported where it is
used: a satchel without plugins does not need it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import is_
from typing import TYPE_CHECKING, Any

from satchel.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import logging

_GLOBALS = ("raiseExceptions", "lastResort", "_loggerClass", "_logRecordFactory")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerState:
    """One logger at one moment."""

    logger: logging.Logger
    level: int
    propagate: bool
    is_disabled: bool
    handlers: tuple[Any, ...]
    filters: tuple[Any, ...]

    @classmethod
    def of(cls, logger: logging.Logger) -> LoggerState:
        """Capture a logger, without handlers that do nothing: libraries add them on import."""
        from logging import NullHandler

        handlers = (handler for handler in logger.handlers if type(handler) is not NullHandler)
        return cls(
            logger=logger,
            level=logger.level,
            propagate=logger.propagate,
            is_disabled=logger.disabled,
            handlers=tuple(handlers),
            filters=tuple(logger.filters),
        )

    @property
    def has_changed(self) -> bool:
        """Whether the logger is configured in another way now."""
        return _identity(LoggerState.of(self.logger)) != _identity(self)

    def put_back(self) -> None:
        """Restore the logger."""
        self.logger.propagate, self.logger.disabled = self.propagate, self.is_disabled
        self.logger.setLevel(self.level)
        self.logger.handlers, self.logger.filters = list(self.handlers), list(self.filters)


def _identity(state: LoggerState) -> tuple[object, ...]:
    objects = [[*map(id, items)] for items in (state.handlers, state.filters)]
    return state.level, state.propagate, state.is_disabled, objects


@dataclass(frozen=True, slots=True)
class LoggingState:
    """The configuration of logging at one moment."""

    loggers: tuple[LoggerState, ...]
    module_settings: tuple[Any, ...]
    """The values of `_GLOBALS`."""
    disabled_level: int
    """The level up to which logging is disabled."""

    @classmethod
    def now(cls) -> LoggingState:
        """Capture the current configuration."""
        import logging

        loggers = tuple(map(LoggerState.of, _loggers()))
        return cls(loggers, _module_settings(), logging.root.manager.disable)

    @property
    def has_changed(self) -> bool:
        """Whether anything is configured in another way now."""
        import logging

        return (
            logging.root.manager.disable != self.disabled_level
            or not all(map(is_, _module_settings(), self.module_settings))
            or any(state.has_changed for state in self.loggers)
        )

    def put_back(self) -> None:
        """Restore the configuration."""
        import logging

        for name, value in zip(_GLOBALS, self.module_settings, strict=True):
            setattr(logging, name, value)
        for state in self.loggers:
            if state.has_changed:
                state.put_back()
        logging.disable(self.disabled_level)


def _module_settings() -> tuple[Any, ...]:
    import logging

    return tuple(getattr(logging, name, None) for name in _GLOBALS)


def _loggers() -> Iterator[logging.Logger]:
    import logging

    yield logging.root
    # A copy: other threads make loggers at the same time. Loggers of plugins may be subclasses.
    for logger in list(logging.root.manager.loggerDict.values()):
        if type(logger) is logging.Logger or (
            isinstance(logger, logging.Logger) and type(logger).__module__ in sys.modules
        ):
            yield logger
