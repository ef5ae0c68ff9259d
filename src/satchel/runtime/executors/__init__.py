"""Executors: how the several calls of one model step are run, and what limits them together."""

from satchel.runtime.executors.circuit_breaker import CircuitBreaker
from satchel.runtime.executors.concurrent import Concurrent
from satchel.runtime.executors.executor import Answer, CallGate, Executor, GatedExecutor, RunCall
from satchel.runtime.executors.rate_limited import RateLimited
from satchel.runtime.executors.sequential import Sequential

__all__ = [
    "Answer",
    "CallGate",
    "CircuitBreaker",
    "Concurrent",
    "Executor",
    "GatedExecutor",
    "RateLimited",
    "RunCall",
    "Sequential",
]
