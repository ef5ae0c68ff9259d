"""Executors: how the several calls of one model step are run, and what limits them together."""

from satchel.runtime.executors.base import Answer, Executor, Gate, GatedExecutor, RunCall
from satchel.runtime.executors.breaker import CircuitBreaking
from satchel.runtime.executors.concurrent import Concurrent
from satchel.runtime.executors.order import in_order
from satchel.runtime.executors.rate import RateLimited
from satchel.runtime.executors.sequential import Sequential

__all__ = [
    "Answer",
    "CircuitBreaking",
    "Concurrent",
    "Executor",
    "Gate",
    "GatedExecutor",
    "RateLimited",
    "RunCall",
    "Sequential",
    "in_order",
]
