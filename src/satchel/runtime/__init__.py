"""Running a call: from the model's wish to a result, whatever the tool does."""

from satchel.runtime.background_tasks import BackgroundTasks, task_tools
from satchel.runtime.onion import Handler, Middleware, ScopedMiddleware, layers_for, wrap
from satchel.runtime.pipeline import begin, run_call
from satchel.runtime.run import Run
from satchel.tools.argument_reading import read_arguments

__all__ = [
    "BackgroundTasks",
    "Handler",
    "Middleware",
    "Run",
    "ScopedMiddleware",
    "begin",
    "layers_for",
    "read_arguments",
    "run_call",
    "task_tools",
    "wrap",
]
