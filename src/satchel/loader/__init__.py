"""The loader: one look at all sources, and what the catalog is built of.

Everything is compared, nothing is replayed: a look takes what the last look found, reads what
may have changed, imports what did change, and hands the whole to the catalog.
"""

from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
from satchel.loader.reconcile_pass import reconcile
from satchel.loader.scan_cache import ScanCache

__all__ = ["LoaderConfig", "ReconcileOptions", "ScanCache", "reconcile"]
