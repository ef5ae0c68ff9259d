"""Capture the configuration of `logging`, and restore it after plugin code has changed it.

The root logger and the loggers that existed count; a plugin may configure loggers of its own.
Nothing here calls a handler or a filter: they may be plugin code. `logging` is imported where it is
used: a satchel without plugins does not need it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
    handlers: tuple[Any, ...]
    filters: tuple[Any, ...]
    propagate: bool
    disabled: bool

    @classmethod
    def of(cls, logger: logging.Logger) -> LoggerState:
        """Capture a logger, without handlers that do nothing: libraries add them on import."""
        from logging import NullHandler

        handlers = (handler for handler in logger.handlers if type(handler) is not NullHandler)
        return cls(
            logger=logger,
            level=logger.level,
            handlers=tuple(handlers),
            filters=tuple(logger.filters),
            propagate=logger.propagate,
            disabled=logger.disabled,
        )

    @property
    def has_changed(self) -> bool:
        """Whether the logger is configured in another way now."""
        now = LoggerState.of(self.logger)
        return (
            (now.level, now.propagate, now.disabled) != (self.level, self.propagate, self.disabled)
            or list(map(id, now.handlers)) != list(map(id, self.handlers))
            or list(map(id, now.filters)) != list(map(id, self.filters))
        )

    def put_back(self) -> None:
        """Restore the logger."""
        self.logger.setLevel(self.level)
        self.logger.handlers = list(self.handlers)
        self.logger.filters = list(self.filters)
        self.logger.propagate, self.logger.disabled = self.propagate, self.disabled


@dataclass(frozen=True, slots=True)
class LoggingState:
    """The configuration of logging at one moment."""

    loggers: tuple[LoggerState, ...]
    values: tuple[Any, ...]
    disabled: int

    @classmethod
    def now(cls) -> LoggingState:
        """Capture the current configuration."""
        import logging

        return cls(
            tuple(map(LoggerState.of, _loggers())),
            tuple(getattr(logging, name, None) for name in _GLOBALS),
            logging.root.manager.disable,
        )

    @property
    def has_changed(self) -> bool:
        """Whether anything is configured in another way now."""
        import logging

        values = (getattr(logging, name, None) for name in _GLOBALS)
        return (
            logging.root.manager.disable != self.disabled
            or any(map(lambda now, before: now is not before, values, self.values))
            or any(state.has_changed for state in self.loggers)
        )

    def put_back(self) -> None:
        """Restore the configuration."""
        import logging

        for name, value in zip(_GLOBALS, self.values, strict=True):
            setattr(logging, name, value)
        for state in self.loggers:
            if state.has_changed:
                state.put_back()
        logging.disable(self.disabled)


def _loggers() -> Iterator[logging.Logger]:
    import logging

    yield logging.root
    # A copy: other threads make loggers at the same time. Loggers of plugins may be subclasses.
    for logger in list(logging.root.manager.loggerDict.values()):
        if type(logger) is logging.Logger or (
            isinstance(logger, logging.Logger) and type(logger).__module__ in sys.modules
        ):
            yield logger
