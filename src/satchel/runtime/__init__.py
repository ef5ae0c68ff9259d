"""Run a call: from the request of the model to a result, whatever the tool does."""

from satchel.runtime.background_tasks import BackgroundTasks, task_tools
from satchel.runtime.call_pipeline import prepare_call, run_call
from satchel.runtime.call_task import CallTask
from satchel.runtime.middleware_chain import (
    Handler,
    Middleware,
    ScopedMiddleware,
    middleware_for,
    wrap,
)
from satchel.tools.argument_reading import read_arguments

__all__ = [
    "BackgroundTasks",
    "CallTask",
    "Handler",
    "Middleware",
    "ScopedMiddleware",
    "middleware_for",
    "prepare_call",
    "read_arguments",
    "run_call",
    "task_tools",
    "wrap",
]
