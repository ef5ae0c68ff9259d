"""Calls that run on other machines: a runner for hosts, and the worker that runs the tools.

They exchange calls through docket and redis; install `satchel[remote]`.
"""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.remote.catalog_publisher import CatalogPublisher
    from satchel.remote.remote_runner import RemoteRunner
    from satchel.remote.tool_worker import ToolWorker
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "catalog_publisher": "CatalogPublisher",
            "remote_runner": "RemoteRunner",
            "tool_worker": "ToolWorker",
        },
    )

__all__ = ["CatalogPublisher", "RemoteRunner", "ToolWorker"]
