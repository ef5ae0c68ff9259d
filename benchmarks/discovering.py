"""Measure how long it takes to find the plugins among installed distributions.

    python benchmarks/discovering.py [DISTRIBUTIONS]

The floor is the minimum: one listing of the folder and one `os.stat` of each `entry_points.txt`,
measured in the same run. The last row is the time of the standard library.
"""

import importlib.metadata
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from satchel.importing.distributions import DistributionScan, scan_distributions
from satchel.settings import Limits
from satchel.sources.package_scan import scan_packages

ROUNDS = 7
PLUGINS = 3
GROUP = "satchel.plugins"


def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        for number in range(count):
            install(site, f"dist{number}", plugin=number < PLUGINS)
        # A folder that changed within two seconds is always listed again.
        time.sleep(2.1)
        sys.path.insert(0, folder)
        before = scan(folder)
        assert len(before.findings) == PLUGINS
        floor = best(lambda: stat_all(folder))
        rows = [
            ("floor: list and stat", floor),
            ("first scan", best(lambda: scan(folder))),
            ("first scan, manifests read", best(lambda: read(scan(folder)))),
            ("unchanged", best(lambda: scan(folder, before))),
            ("one was installed", best(lambda: scan(folder, before), lambda: os.utime(folder))),
            ("importlib.metadata, group", best(entry_points)),
        ]
    print(f"{count} distributions, {PLUGINS} of them plugins, milliseconds")
    print(f"{'':30}{'time':>9}{'ratio':>8}")
    for name, seconds in rows:
        print(f"{name:30}{seconds * 1e3:9.3f}{seconds / floor:8.2f}")


def install(site: Path, name: str, *, plugin: bool) -> None:
    """Write a distribution as an installer does: a package and its metadata."""
    package, info = site / f"{name}_pack", site / f"{name}-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    modules = [f"module{number}.py" for number in range(20)]
    for module in ("__init__.py", "tools.py"):
        (package / module).write_text("")
    points = f"[console_scripts]\n{name} = {name}_pack:main\n"
    if plugin:
        (package / "toolkit.yaml").write_text(f"description: Does {name}.\nactive: true\n")
        modules.append("toolkit.yaml")
        points += f"[{GROUP}]\n{name} = {name}_pack\n"
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\nSummary: Sums up.\n" * 10)
    (info / "entry_points.txt").write_text(points)
    record = (f"{name}_pack/{module},sha256=x,1\n" for module in ["__init__.py", *modules])
    (info / "RECORD").write_text("".join(record))


def scan(folder: str, before: DistributionScan | None = None) -> DistributionScan:
    """Return the plugins in a folder."""
    return scan_distributions([folder], before)


def read(result: DistributionScan) -> object:
    """Read the manifests of the plugins that were found."""
    return scan_packages(result.findings, Limits(), lambda _: True, {})


def stat_all(folder: str) -> int:
    """List the folder, and stat every file of entry points."""
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".dist-info"):
                count += os.stat(f"{entry.path}/entry_points.txt").st_size > 0
    return count


def entry_points() -> object:
    """Use the standard library, which parses everything at each call."""
    return importlib.metadata.entry_points(group=GROUP)


def best(work: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """Return the shortest of several runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        prepare()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
