"""The loader: one reconcile pass over all sources.

A pass takes the results of the last one, reads what may have changed, imports what did change,
and builds the catalog from everything. It compares states; it does not replay events.
"""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
    from satchel.loader.reconcile_pass import reconcile
    from satchel.loader.scan_cache import ScanCache
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "loader_config": "LoaderConfig ReconcileOptions",
            "reconcile_pass": "reconcile",
            "scan_cache": "ScanCache",
        },
    )

__all__ = ["LoaderConfig", "ReconcileOptions", "ScanCache", "reconcile"]
