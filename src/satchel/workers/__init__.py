"""Run plugins in their own processes."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.workers.worker_health import with_health
    from satchel.workers.worker_loading import load_worker
    from satchel.workers.worker_processes import WorkerHandle, WorkerPool
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "worker_health": "with_health",
            "worker_loading": "load_worker",
            "worker_processes": "WorkerHandle WorkerPool",
        },
    )

__all__ = ["WorkerHandle", "WorkerPool", "load_worker", "with_health"]
