"""The executor that runs calls one after another."""

from satchel.runtime.executors.concurrent import Concurrent


class Sequential(Concurrent):
    """Runs the calls of a step one after another.

    A call starts when its answer is asked for: a reader that stops after a failure runs no more.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(1)
