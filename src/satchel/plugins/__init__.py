"""Plugins: hook specifications, the hook host, and the contribution of a plugin."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.plugins.config_binding import BoundPlugin, HostContract, bind_config
    from satchel.plugins.contract_attachment import contract_without_tool
    from satchel.plugins.folder_loading import load_folder, read_folder, started
    from satchel.plugins.hookspecs import hookimpl
    from satchel.plugins.lifecycle import fingerprint, notify_catalog_built
    from satchel.plugins.manifest_contribution import is_isolated, not_isolated
    from satchel.plugins.package_loading import load_package, read_package
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "config_binding": "BoundPlugin HostContract bind_config",
            "contract_attachment": "contract_without_tool",
            "folder_loading": "load_folder read_folder started",
            "hookspecs": "hookimpl",
            "lifecycle": "fingerprint notify_catalog_built",
            "manifest_contribution": "is_isolated not_isolated",
            "package_loading": "load_package read_package",
        },
    )

__all__ = [
    "BoundPlugin",
    "HostContract",
    "bind_config",
    "contract_without_tool",
    "fingerprint",
    "hookimpl",
    "is_isolated",
    "load_folder",
    "load_package",
    "not_isolated",
    "notify_catalog_built",
    "read_folder",
    "read_package",
    "started",
]
