"""Plugins: the page of hooks, the host that calls them, and what a plugin brings."""

from satchel.plugins.contracting import contract_without_tool
from satchel.plugins.declaring import is_isolated, not_isolated
from satchel.plugins.fitting import Fitted, HostContract, fit
from satchel.plugins.hookspecs import hookimpl
from satchel.plugins.life import fingerprint, show_catalog
from satchel.plugins.loading import load_folder, read_folder, started
from satchel.plugins.packages import load_package, read_package

__all__ = [
    "Fitted",
    "HostContract",
    "contract_without_tool",
    "fingerprint",
    "fit",
    "hookimpl",
    "is_isolated",
    "load_folder",
    "load_package",
    "not_isolated",
    "read_folder",
    "read_package",
    "show_catalog",
    "started",
]
