"""Plugins in processes of their own: started, asked what they bring, called, and ended."""

from satchel.workers.loading import load_worker, with_health
from satchel.workers.processes import Worker, Workers

__all__ = ["Worker", "Workers", "load_worker", "with_health"]
