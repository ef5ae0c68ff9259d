"""Scan: what a reviewer wants to look at before a skill or plugin of others is trusted."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.scan.file_scanner import ScanFinding, scan_path
    from satchel.scan.scan_rules import SCAN_RULES, ScanRule
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "file_scanner": "ScanFinding scan_path",
            "scan_rules": "SCAN_RULES ScanRule",
        },
    )

__all__ = ["SCAN_RULES", "ScanFinding", "ScanRule", "scan_path"]
