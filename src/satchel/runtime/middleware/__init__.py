"""Middleware to register; each function returns one: `app.register_middleware(retry())`."""

from satchel.runtime.middleware.approval import Approval, approve, is_preapproved
from satchel.runtime.middleware.caching import by_arguments, by_session, cache
from satchel.runtime.middleware.call_log import log_calls
from satchel.runtime.middleware.measuring import Measurement, measure
from satchel.runtime.middleware.permission import authorize
from satchel.runtime.middleware.rate_limit import limit_rate
from satchel.runtime.middleware.retries import backoff, retry
from satchel.runtime.middleware.time_limit import limit_time
from satchel.runtime.middleware.tool_hints import may_change_something
from satchel.runtime.middleware.tracing import trace

__all__ = [
    "Approval",
    "Measurement",
    "approve",
    "authorize",
    "backoff",
    "by_arguments",
    "by_session",
    "cache",
    "is_preapproved",
    "limit_rate",
    "limit_time",
    "log_calls",
    "may_change_something",
    "measure",
    "retry",
    "trace",
]
