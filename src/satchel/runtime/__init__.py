"""Run a call: from the request of the model to a result, whatever the tool does."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.runtime.background_tasks import BackgroundTasks, task_tools
    from satchel.runtime.call_pipeline import prepare_call, run_call
    from satchel.runtime.call_task import CallTask
    from satchel.runtime.middleware_chain import (
        Handler,
        Middleware,
        ScopedMiddleware,
        middleware_for,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "background_tasks": "BackgroundTasks task_tools",
            "call_pipeline": "prepare_call run_call",
            "call_task": "CallTask",
            "middleware_chain": "Handler Middleware ScopedMiddleware middleware_for",
        },
    )

__all__ = [
    "BackgroundTasks",
    "CallTask",
    "Handler",
    "Middleware",
    "ScopedMiddleware",
    "middleware_for",
    "prepare_call",
    "run_call",
    "task_tools",
]
