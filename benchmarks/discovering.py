"""How long it takes to find the plugins among installed distributions, beside a floor.

    python benchmarks/discovering.py [DISTRIBUTIONS]

The floor is what nobody can do without: one listing of the folder and one `os.stat` of each
`entry_points.txt`, in the same run. Beside it stands what the standard library does.
"""

import importlib.metadata
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from satchel.settings import Limits
from satchel.sources import DistributionScan, scan_distributions, scan_packages

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
        age(site)
        sys.path.insert(0, folder)
        known = look(folder)
        assert len(known.findings) == PLUGINS
        floor = best(lambda: stat_all(folder))
        rows = [
            ("floor: list and stat", floor),
            ("first scan", best(lambda: look(folder))),
            ("first scan, manifests read", best(lambda: read(look(folder)))),
            ("unchanged", best(lambda: look(folder, known))),
            ("one was installed", best(lambda: look(folder, known), lambda: os.utime(folder))),
            ("importlib.metadata, group", best(entry_points)),
        ]
    print(f"{count} distributions, {PLUGINS} of them plugins, milliseconds")
    print(f"{'':30}{'time':>9}{'ratio':>8}")
    for name, took in rows:
        print(f"{name:30}{took * 1e3:9.3f}{took / floor:8.2f}")


def install(site: Path, name: str, *, plugin: bool) -> None:
    """Write a distribution as an installer does: a package, and its metadata."""
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


def age(site: Path) -> None:
    """Let the folder become older than two seconds: a younger one is always listed again."""
    os.utime(site, (time.time() - 60, time.time() - 60))


def look(folder: str, before: DistributionScan | None = None) -> DistributionScan:
    """Look for plugins."""
    return scan_distributions([folder], before)


def read(scan: DistributionScan) -> object:
    """Read the manifests of what was found."""
    return scan_packages(scan.findings, Limits(), lambda _: True, {})


def stat_all(folder: str) -> int:
    """List the folder, and look at every file of entry points."""
    found = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".dist-info"):
                found += os.stat(f"{entry.path}/entry_points.txt").st_size > 0
    return found


def entry_points() -> object:
    """Do what the standard library offers, which parses everything at each call."""
    return importlib.metadata.entry_points(group=GROUP)


def best(work: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> float:
    """Return the shortest of some runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        prepare()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main()
