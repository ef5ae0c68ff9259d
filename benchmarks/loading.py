"""Measure loading and reloading, as ratios to floors measured in the same run.

    python benchmarks/loading.py [SKILLS [FOLDER]]

The skills are small ones, or copies of those below `FOLDER` with names of their own. The floors are
the minimum: reading the files and parsing their front matter with PyYAML's C loader; one `os.stat`
of every file; the system's notification alone.
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

from satchel import Satchel, Settings, SkillPrompt, WatchTimings

ROUNDS = 7
EDITS = 40
BODY = 8_143
"""The mean length of the bodies of some hundred public skills."""
FRESH = itertools.count()
NAME = re.compile(rb"\A(---\r?\n(?:.*\n)*?)name:[^\r\n]*")
COLD = Settings(cache=False)


def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_all(root, count, [Path(name) for name in sys.argv[2:]])
        settle()
        os.environ["SATCHEL_CACHE_DIR"] = str(root / ".cache")
        app, parsed = Satchel(skills=[root]), best(lambda: parse_all(root))
        rows = [
            ("cold load", best(lambda: Satchel(skills=[root], settings=COLD)), parsed),
            ("warm load", best(lambda: Satchel(skills=[root])), best(lambda: stat_all(root))),
            ("refresh without changes", best(app.refresh), best(lambda: stat_all(root))),
            ("skill prompt", best(lambda: render_all(app)), best(lambda: join_all(app))),
            ("edit to catalog, median", edit_to_catalog(app, root), edit_to_event(root)),
        ]
    print(f"{count} skills, milliseconds")
    print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    for name, ours, floor in rows:
        print(f"{name:34}{ours * 1e3:9.2f}{floor * 1e3:9.2f}{ours / floor:8.2f}")
    loaded, quiet = memory(count)
    print(f"memory of a skill, bytes: {loaded:,.0f} loaded, {quiet:,.0f} after quiet refreshes")


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


def best(work: Callable[[], object]) -> float:
    """Return the shortest CPU time of several runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def parse_all(root: Path) -> list[object]:
    """Read and parse every skill without validation."""
    return [parse(file.read_text(errors="replace")) for file in root.glob("*/SKILL.md")]


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


def edit_to_catalog(app: Satchel, root: Path) -> float:
    """Return the median time from a write to the catalog that has it."""
    changed = threading.Event()
    unsubscribe = app.subscribe(lambda _change: changed.set())
    times = []
    with app.watching():
        # A file that became much shorter waits, as it may be half written; that is not measured.
        write(root / "skill-0", "Edit 0.")
        time.sleep(2)
        for number in range(EDITS):
            changed.clear()
            start = time.perf_counter()
            write(root / "skill-0", f"Edited {number}.")
            changed.wait()
            times.append(time.perf_counter() - start)
    unsubscribe()
    return statistics.median(times)


def edit_to_event(root: Path) -> float:
    """Return the median time from a write to the event, at the same step."""
    step = int(WatchTimings().step * 1000)
    times = []
    with RustNotify([str(root)], False, False, 0, True, True) as notifier:
        for number in range(EDITS):
            start = time.perf_counter()
            write(root / "skill-0", f"Edit {number}.")
            notifier.watch(50, step, 10_000, None)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
