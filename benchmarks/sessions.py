"""Measure what a session costs: memory while idle, and the time of a step without changes.

The floor of a step is the minimum: returning the prompt, and a copy of the schemas made by
`pickle`, the quickest copy in Python.
"""

import gc
import pickle
import sys
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import timeit

from satchel import Satchel, Session, Step, tool

REPOSITORY = Path(__file__).parents[1]


def an_app(skills: int, tools: int, groups: int) -> Satchel:
    """Return a `Satchel` with this many skills, tools and groups."""
    with TemporaryDirectory() as folder:
        for number in range(skills):
            path = Path(folder, f"skill-{number}")
            path.mkdir()
            text = f"---\nname: skill-{number}\ndescription: Does thing {number}.\n---\nDo it.\n"
            (path / "SKILL.md").write_text(text)
        app = Satchel([folder])
    for number in range(groups):
        app.create_group(f"group{number}", f"Group {number}.", notes="Be careful.")
    by_group: dict[str, list[object]] = {}
    for number in range(tools):
        by_group.setdefault(f"group{number % groups}", []).append(a_tool(number))
    for name, members in by_group.items():
        app.tools.register_many(members, group=name)
    return app


def a_tool(number: int) -> object:
    """Return a tool with two parameters."""

    @tool(name=f"tool{number}", description=f"Does thing {number}.")
    def act(text: str, times: int = 1) -> str:
        return text * times

    return act


def bytes_per_session(app: Satchel, count: int) -> float:
    """Return the memory of one idle session after its first step, with its part of shared data."""
    groups = [name for name in app.catalog.groups if name != "basic"]
    gc.collect()
    tracemalloc.start()
    sessions = []
    for number in range(count):
        session = app.session()
        # Sessions activate different groups; shared data is included in the total.
        session.activate(groups[number % len(groups)], groups[number // 20 % len(groups)])
        one_step(session)
        sessions.append(session)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(sessions)


def one_step(session: Session) -> Step:
    """Do what a host does before each model request."""
    step = session.step()
    step.prompt()
    step.schemas()
    step.changes  # noqa: B018 - computing it is what is measured
    return step


class Host:
    """A host that takes one step after the other, and keeps the newest."""

    def __init__(self, session: Session) -> None:
        self.session, self.held = session, one_step(session)

    def __call__(self) -> None:
        """Take the next step."""
        self.held = one_step(self.session)


def main() -> None:
    """Print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{'':34}{'bytes':>8}{'step us':>9}{'floor':>8}{'ratio':>8}{'tools':>7}")
    for title, size in {
        "10 skills, 10 tools shown": (10, 20, 2),
        "1,000 skills, 10 of 200 tools": (1_000, 200, 20),
        "10,000 skills, 100 of 2,000 tools": (10_000, 2_000, 20),
    }.items():
        app = an_app(*size)
        session = app.session()
        session.activate("group0")
        prompt, schemas = session.prompt(), session.schemas()
        copied = pickle.dumps(schemas, pickle.HIGHEST_PROTOCOL)
        runs = 2_000
        step = timeit(Host(session), number=runs) / runs * 1e6
        floor = timeit(lambda: (prompt, pickle.loads(copied)), number=runs) / runs * 1e6  # noqa: B023, S301
        size_each = bytes_per_session(app, count)
        shown = len(schemas)
        print(f"{title:34}{size_each:8.0f}{step:9.2f}{floor:8.2f}{step / floor:8.2f}{shown:7}")


if __name__ == "__main__":
    main()
