"""Measure loading and reloading, as ratios to floors measured in the same run.

    python benchmarks/loading.py [SKILLS [FOLDER]]

The skills are small ones, or copies of those below `FOLDER` with names of their own. The floors are
the minimum: listing each folder, one `os.stat` of each file, reading it and parsing its front
matter with PyYAML's C loader; the first two alone; the system's notification alone. Satchel and its
floor take turns, and the least CPU time of seven counts.
"""

import gc
import itertools
import os
import re
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import yaml
from watchfiles._rust_notify import RustNotify

from satchel import Change, Satchel, Settings, SkillPrompt, WatchTimings

ROUNDS = 7
EDITS = 200
IDLE = 20.0
BODY = 8_143
"""The mean length of the bodies of some hundred public skills."""
FRESH = itertools.count()
NAME = re.compile(rb"\A(---\r?\n(?:.*\n)*?)name:[^\r\n]*")
COLD = Settings(cache=False)

Work = Callable[[], object]


def main() -> None:
    """Measure and print the tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        root, empty = Path(folder, "skills"), Path(folder, "empty")
        root.mkdir()
        empty.mkdir()
        write_all(root, count, [Path(name) for name in sys.argv[2:]])
        settle()
        os.environ["SATCHEL_CACHE_DIR"] = str(Path(folder, "cache"))
        before, app = resident(), Satchel(skills=[root])
        in_memory = resident() - before
        print(f"{count} skills, milliseconds; load of the machine {os.getloadavg()[0]:.1f}")
        print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
        show("cold load", lambda: Satchel(skills=[root], settings=COLD), lambda: parse_all(root))
        show("  floor: only read and parsed", None, lambda: read_all(root))
        show("a load without skills", lambda: Satchel(skills=[empty], settings=COLD), None)
        show("warm load", lambda: Satchel(skills=[root]), lambda: stat_all(root))
        show("refresh without changes", app.refresh, lambda: stat_all(root))
        show("skill prompt", lambda: render_all(app), lambda: join_all(app))
        show_edits(app, root, count)
    loaded, quiet = memory(min(count, 1_000))
    print(f"memory of the process after loading: {in_memory / 2**20:.0f} MiB more than before")
    print(f"memory of a skill, bytes: {loaded:,.0f} loaded, {quiet:,.0f} after quiet refreshes")


def show(name: str, work: Work | None, floor: Work | None) -> None:
    """Print the least CPU time of several runs of both, which take turns."""
    times = [[cpu_of(work), cpu_of(floor)] for _ in range(ROUNDS)]
    ours, least = (min(column) * 1e3 for column in zip(*times, strict=True))
    columns = (ours if work else None, least if floor else None)
    shown = "".join(f"{value:9.2f}" if value is not None else f"{'':9}" for value in columns)
    print(f"{name:34}{shown}" + (f"{ours / least:8.2f}" if work and floor else ""))


def cpu_of(work: Work | None) -> float:
    """Return the CPU time of one run, in seconds."""
    start = time.process_time()
    if work:
        work()
    return time.process_time() - start


def resident() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def write(folder: Path, description: str) -> None:
    """Write one skill."""
    folder.mkdir(exist_ok=True)
    text = f"---\nname: {folder.name}\ndescription: {description}\n---\n# Steps\n\nDo it.\n"
    (folder / "SKILL.md").write_text(text)


def write_all(root: Path, count: int, samples: list[Path]) -> None:
    """Write skills, or copies of the skills below some folders in turn."""
    files = sorted(file for folder in samples for file in folder.rglob("SKILL.md"))
    for number in range(count):
        folder = root / f"skill-{number}"
        write(folder, "Does a thing. Use for things.")
        if files:
            text = files[number % len(files)].read_bytes()
            named = NAME.sub(b"\\1name: " + folder.name.encode(), text, count=1)
            (folder / "SKILL.md").write_bytes(named)


def memory(count: int) -> tuple[float, float]:
    """Return the bytes that a skill with a real-sized body takes, loaded and after refreshes."""
    docs = Path(__file__).parents[1] / "docs"
    text = "".join(file.read_text() for file in sorted(docs.rglob("*.md")))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(count):
            write(root / f"skill-{number}", "Does a thing. Use for things.")
            start = number * BODY // 2 % (len(text) - BODY)
            with (root / f"skill-{number}/SKILL.md").open("a") as file:
                file.write(text[start : start + BODY])
        settle()
        tracemalloc.start()
        app = Satchel(skills=[root])
        gc.collect()
        loaded = tracemalloc.get_traced_memory()[0] / count
        for _ in range(count // 500 + 2):  # Each compresses some of the bodies.
            app.refresh()
        gc.collect()
        quiet = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
    return loaded, quiet


def settle() -> None:
    """Let the files become older than two seconds; newer ones are always read again."""
    time.sleep(2.1)


def parse_all(root: Path) -> list[object]:
    """List each folder, stat each file, and read and parse every skill without validation."""
    parsed = []
    for folder in os.scandir(root):
        for entry in os.scandir(folder.path):
            os.stat(entry.path)
            parsed.append(read(entry.path))
    return parsed


def read_all(root: Path) -> list[object]:
    """Read and parse every skill, without a look at what its folder has."""
    return [read(f"{folder.path}/SKILL.md") for folder in os.scandir(root)]


def read(path: str) -> object:
    """Read and parse one SKILL.md."""
    with open(path, "rb") as file:
        return parse(file.read().decode(errors="replace"))


def parse(text: str) -> object:
    """Parse the front matter of one skill."""
    try:
        return yaml.load(text.split("---\n")[1], yaml.CSafeLoader)
    except (yaml.YAMLError, IndexError):
        return None


def stat_all(root: Path) -> int:
    """Stat every file."""
    return sum(
        len([os.stat(file.path) for file in os.scandir(folder.path)]) for folder in os.scandir(root)
    )


def render_all(app: Satchel) -> str:
    """Render the listing of all skills with a new instruction, so that it is not cached."""
    session = app.session()
    session.skill_style = SkillPrompt(instruction=str(next(FRESH)), budget=None)
    return session.skill_prompt()


def join_all(app: Satchel) -> str:
    """Join all names and descriptions."""
    skills = app.catalog.skills.values()
    return "".join(f"<skill>{skill.name}{skill.description}</skill>" for skill in skills)


def show_edits(app: Satchel, root: Path, count: int) -> None:
    """Print the time from a write to the catalog that has it, beside the notification alone."""
    with app.watching():
        time.sleep(2)
        walls, spent = edits_to_catalog(app, root, count)
        time.sleep(IDLE)  # the scan after the last change is over then
        start = time.process_time(), time.perf_counter()
        time.sleep(IDLE)
        idle = (time.process_time() - start[0]) / (time.perf_counter() - start[1])
    alone = edits_to_event(root, count)
    for name, part in (("median", 0.5), ("99 of 100", 0.99)):
        ours, floor = (sorted(times)[int(EDITS * part)] for times in (walls, alone))
        line = f"{ours * 1e3:9.2f}{floor * 1e3:9.2f}{ours / floor:8.2f}"
        print(f"{f'edit to catalog, wall, {name}':34}{line}")
    print(f"{'CPU of an edit, median':34}{statistics.median(spent) * 1e3:9.2f}")
    print(f"a watch that waits, with its safety scans: {idle * 100:.2f} % of a core")


def edit(folder: Path) -> None:
    """Write a line to one skill."""
    with (folder / "SKILL.md").open("a") as file:
        file.write("One more line.\n")


def edits_to_catalog(app: Satchel, root: Path, count: int) -> tuple[list[float], list[float]]:
    """Return the times from a write to the event, and the CPU times of the process."""
    changed, event_at = threading.Event(), [0.0]

    def on_change(_change: Change) -> None:
        event_at[0] = time.perf_counter()
        changed.set()

    unsubscribe = app.subscribe(on_change)
    walls, spent = [], []
    for number in range(EDITS):
        time.sleep(0.01 + number % 7 / 500)  # so that edits meet each phase of a step
        changed.clear()
        cpu, start = time.process_time(), time.perf_counter()
        edit(root / f"skill-{number % count}")
        changed.wait()
        walls.append(event_at[0] - start)
        spent.append(time.process_time() - cpu)
    unsubscribe()
    return walls, spent


def edits_to_event(root: Path, count: int) -> list[float]:
    """Return the times from a write to the notification, at the same step."""
    step = int(WatchTimings().step * 1000)
    times = []
    with RustNotify([str(root)], False, False, 0, True, True) as notifier:
        for number in range(EDITS):
            start = time.perf_counter()
            edit(root / f"skill-{number % count}")
            notifier.watch(50, step, 10_000, None)
            times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
