"""Run plugins in their own processes."""

from satchel.workers.worker_loading import load_worker, with_health
from satchel.workers.worker_processes import WorkerHandle, WorkerPool

__all__ = ["WorkerHandle", "WorkerPool", "load_worker", "with_health"]
