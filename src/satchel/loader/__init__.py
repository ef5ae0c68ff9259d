"""The loader: one reconcile pass over all sources.

A pass takes the results of the last one, reads what may have changed, imports what did change,
and builds the catalog from everything. It compares states; it does not replay events.
"""

from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
from satchel.loader.reconcile_pass import reconcile
from satchel.loader.scan_cache import ScanCache

__all__ = ["LoaderConfig", "ReconcileOptions", "ScanCache", "reconcile"]
