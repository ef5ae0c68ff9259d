"""Plugins: hook specifications, the hook host, and the contribution of a plugin."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.plugins.bound_plugin import BoundPlugin, HostContract, needs_no_binding
    from satchel.plugins.catalog_listeners import notify_catalog_built
    from satchel.plugins.config_binding import bind_config, bind_state
    from satchel.plugins.contract_attachment import contract_without_tool
    from satchel.plugins.folder_loading import load_folder, started
    from satchel.plugins.hookspecs import hookimpl
    from satchel.plugins.manifest_contribution import is_isolated, not_isolated
    from satchel.plugins.package_loading import load_package
    from satchel.plugins.plugin_diagnostics import failed_contribution
    from satchel.plugins.plugin_reading import read_folder, read_package
    from satchel.plugins.value_fingerprint import fingerprint
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "bound_plugin": "BoundPlugin HostContract needs_no_binding",
            "catalog_listeners": "notify_catalog_built",
            "config_binding": "bind_config bind_state",
            "contract_attachment": "contract_without_tool",
            "folder_loading": "load_folder started",
            "hookspecs": "hookimpl",
            "manifest_contribution": "is_isolated not_isolated",
            "package_loading": "load_package",
            "plugin_diagnostics": "failed_contribution",
            "plugin_reading": "read_folder read_package",
            "value_fingerprint": "fingerprint",
        },
    )
