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
    values: tuple[Any, ...]
    """Its level, `propagate` and `disabled`."""
    handlers: tuple[Any, ...]
    filters: tuple[Any, ...]

    @classmethod
    def of(cls, logger: logging.Logger) -> LoggerState:
        """Capture a logger, without handlers that do nothing: libraries add them on import."""
        from logging import NullHandler

        handlers = (handler for handler in logger.handlers if type(handler) is not NullHandler)
        values = logger.level, logger.propagate, logger.disabled
        return cls(
            logger=logger, values=values, handlers=tuple(handlers), filters=tuple(logger.filters)
        )

    @property
    def has_changed(self) -> bool:
        """Whether the logger is configured in another way now."""
        now = LoggerState.of(self.logger)
        objects, before = (*now.handlers, None, *now.filters), (*self.handlers, None, *self.filters)
        return now.values != self.values or [*map(id, objects)] != [*map(id, before)]

    def put_back(self) -> None:
        """Restore the logger."""
        level, self.logger.propagate, self.logger.disabled = self.values
        self.logger.setLevel(level)
        self.logger.handlers, self.logger.filters = list(self.handlers), list(self.filters)


@dataclass(frozen=True, slots=True)
class LoggingState:
    """The configuration of logging at one moment."""

    loggers: tuple[LoggerState, ...]
    values: tuple[Any, ...]
    """Settings of the module, and the level up to which it is disabled."""

    @classmethod
    def now(cls) -> LoggingState:
        """Capture the current configuration."""
        return cls(tuple(map(LoggerState.of, _loggers())), _settings())

    @property
    def has_changed(self) -> bool:
        """Whether anything is configured in another way now."""
        is_same = all(map(is_, _settings(), self.values))
        return not is_same or any(state.has_changed for state in self.loggers)

    def put_back(self) -> None:
        """Restore the configuration."""
        import logging

        *values, level = self.values
        for name, value in zip(_GLOBALS, values, strict=True):
            setattr(logging, name, value)
        for state in self.loggers:
            if state.has_changed:
                state.put_back()
        logging.disable(level)


def _settings() -> tuple[Any, ...]:
    import logging

    values = (getattr(logging, name, None) for name in _GLOBALS)
    return (*values, logging.root.manager.disable)


def _loggers() -> Iterator[logging.Logger]:
    import logging

    yield logging.root
    # A copy: other threads make loggers at the same time. Loggers of plugins may be subclasses.
    for logger in list(logging.root.manager.loggerDict.values()):
        if type(logger) is logging.Logger or (
            isinstance(logger, logging.Logger) and type(logger).__module__ in sys.modules
        ):
            yield logger
