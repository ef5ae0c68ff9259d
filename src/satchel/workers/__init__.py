"""Run plugins in their own processes."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.workers.worker_loading import load_worker, with_health
    from satchel.workers.worker_processes import WorkerHandle, WorkerPool
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "worker_loading": "load_worker with_health",
            "worker_processes": "WorkerHandle WorkerPool",
        },
    )

__all__ = ["WorkerHandle", "WorkerPool", "load_worker", "with_health"]
