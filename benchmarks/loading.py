"""How long loading and reloading take, as ratios to a floor that is measured in the same run.

    python benchmarks/loading.py [SKILLS]

The floors are what nobody can do without: reading the files and parsing their frontmatter with
PyYAML's C loader; looking at every file with `os.stat`; the notification by the system alone.
"""

import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from watchfiles._rust_notify import RustNotify

from satchel import Satchel, SkillPrompt, WatchTimings

ROUNDS = 5
EDITS = 40
FRESH = itertools.count()


def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(count):
            write(root / f"skill-{number}", "Does a thing. Use when a thing is to be done.")
        settle()
        app = Satchel(skills=[root])
        rows = [
            ("cold load", best(lambda: Satchel(skills=[root])), best(lambda: parse_all(root))),
            ("look at everything, nothing new", best(app.refresh), best(lambda: stat_all(root))),
            ("skill prompt", best(lambda: render_all(app)), best(lambda: join_all(app))),
            ("edit to catalog, median", edit_to_catalog(app, root), edit_to_event(root)),
        ]
    print(f"{count} skills, milliseconds")
    print(f"{'':34}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    for name, ours, floor in rows:
        print(f"{name:34}{ours * 1e3:9.2f}{floor * 1e3:9.2f}{ours / floor:8.2f}")


def write(folder: Path, description: str) -> None:
    """Write one skill."""
    folder.mkdir(exist_ok=True)
    text = f"---\nname: {folder.name}\ndescription: {description}\n---\n# Steps\n\nDo it.\n"
    (folder / "SKILL.md").write_text(text)


def settle() -> None:
    """Let the files become older than two seconds: younger ones are always read again."""
    time.sleep(2.1)


def best(work: Callable[[], object]) -> float:
    """Return the shortest of some runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def parse_all(root: Path) -> list[object]:
    """Read and parse every skill, checking nothing."""
    return [
        yaml.load(file.read_text().split("---\n")[1], yaml.CSafeLoader)
        for file in root.glob("*/SKILL.md")
    ]


def stat_all(root: Path) -> int:
    """Look at every file."""
    return sum(
        len([os.stat(file.path) for file in os.scandir(folder.path)]) for folder in os.scandir(root)
    )


def render_all(app: Satchel) -> str:
    """Render the listing of all skills, in words that no session has asked for yet."""
    session = app.session()
    session.skill_style = SkillPrompt(instruction=str(next(FRESH)), budget=None)
    return session.skill_prompt()


def join_all(app: Satchel) -> str:
    """Put all names and descriptions together."""
    skills = app.catalog.skills.values()
    return "".join(f"<skill>{skill.name}{skill.description}</skill>" for skill in skills)


def edit_to_catalog(app: Satchel, root: Path) -> float:
    """Return the median time from a write to the generation that has it."""
    news = threading.Event()
    undo = app.subscribe(lambda _change: news.set())
    times = []
    with app.watching():
        for number in range(EDITS):
            news.clear()
            start = time.perf_counter()
            write(root / "skill-0", f"Edit {number}.")
            news.wait()
            times.append(time.perf_counter() - start)
    undo()
    return statistics.median(times)


def edit_to_event(root: Path) -> float:
    """Return the median time from a write to the event, at the same step."""
    step = int(WatchTimings().step * 1000)
    times = []
    with RustNotify([str(root)], False, False, 0, True, True) as notifier:
        for number in range(EDITS):
            start = time.perf_counter()
            write(root / "skill-0", f"Edit {number}.")
            notifier.watch(step * 5, step, 10_000, None)
            times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
