"""Running a call: from the model's wish to a result, whatever the tool does."""

from satchel.runtime.background import TaskBook, task_tools
from satchel.runtime.onion import Handler, Layer, Middleware, layers_for, wrap
from satchel.runtime.pipeline import begin, run_call
from satchel.runtime.run import Run
from satchel.tools.reading import read_arguments

__all__ = [
    "Handler",
    "Layer",
    "Middleware",
    "Run",
    "TaskBook",
    "begin",
    "layers_for",
    "read_arguments",
    "run_call",
    "task_tools",
    "wrap",
]
