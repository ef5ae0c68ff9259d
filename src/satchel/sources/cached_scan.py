"""Scan skills with the help of the user's cache."""

from satchel.files.state_files import cache_path, is_file
from satchel.settings import Limits
from satchel.sources.search_roots import SearchRoot
from satchel.sources.skill_findings import SkillScan
from satchel.sources.skill_scan import scan_skills

_FEWEST = 20
"""A root with fewer skills is read as quickly as the cache."""


def scan_through_cache(
    root: SearchRoot, limits: Limits, before: SkillScan | None = None, settle: float = 0.0
) -> SkillScan:
    """Scan a whole search root. Without `before`, unchanged skills come from the cache."""
    path = cache_path("skills.sqlite3")
    if before is None and is_file(path):
        # Lazy: it needs SQLite, and most roots are small.
        from satchel.sources.skill_cache import load_scan

        before = load_scan(path, root, limits)
    scan = scan_skills(root, limits, before, settle=settle)
    if scan is not before and len(scan.findings) >= _FEWEST:
        from satchel.sources.skill_cache import save_scan  # lazy: as above

        save_scan(path, scan, before, limits)
    return scan
