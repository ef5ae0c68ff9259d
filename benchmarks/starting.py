"""Measure what a new process pays: imports, the first satchel, the first prompt, a command.

    python benchmarks/starting.py [SKILLS]

The floor of imports is `import pydantic`, which a host has usually loaded anyway. Each row is the
CPU time of a process of its own without that of an empty one, the minimum of several that take
turns.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from satchel import Satchel

ROUNDS = 15
EDITED = 10_000

EMPTY = "pass"
PYDANTIC = "import pydantic"
SATCHEL = "from satchel import Satchel; Satchel()"
FIRST_PROMPT = """
import time
from satchel import Satchel
satchel = Satchel({root!r})
begun = time.process_time()
satchel.session().prompt()
print(time.process_time() - begun)
"""


def main() -> None:
    """Measure and print the tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    costs = processes({"empty": EMPTY, "pydantic": PYDANTIC, "satchel": SATCHEL})
    floor, ours = costs["pydantic"] - costs["empty"], costs["satchel"] - costs["empty"]
    print("milliseconds of CPU")
    print(f"{'':42}{'satchel':>9}{'floor':>9}{'ratio':>8}")
    print(f"{'import and Satchel()':42}{ours * 1e3:9.1f}{floor * 1e3:9.1f}{ours / floor:8.2f}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "skills"
        write_all(root, count)
        prompt = min(float(output(FIRST_PROMPT.format(root=str(root)))) for _ in range(ROUNDS))
        print(f"{f'first prompt of {count:,} skills':42}{prompt * 1e3:9.1f}")
        few = Path(folder) / "few"
        write_all(few, 100)
        print(f"{'satchel list of 100 skills, wall':42}{listing(few) * 1e3:9.1f}")
        many = Path(folder) / "many"
        write_all(many, EDITED)
        row = f"prompt after one edit among {EDITED:,} skills"
        print(f"{row:42}{after_an_edit(many) * 1e3:9.1f}")


def processes(statements: Mapping[str, str]) -> dict[str, float]:
    """Return the least CPU time of a process for each; they take turns, so none is favoured."""
    least = dict.fromkeys(statements, float("inf"))
    for _ in range(ROUNDS):
        for name, statement in statements.items():
            least[name] = min(least[name], cpu_of(statement))
    return least


def cpu_of(statement: str) -> float:
    """Return the CPU time of a process that runs a statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output(statement)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def output(code: str) -> str:
    """Run code in a process, with cached byte code."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    line = [sys.executable, "-c", code]
    run = subprocess.run(  # noqa: S603 - our own code
        line, env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout


def write_all(root: Path, count: int) -> None:
    """Write skills."""
    for number in range(count):
        write(root / f"skill-{number:05}", f"Does the thing {number}. Use it for such things.")


def write(folder: Path, description: str) -> None:
    """Write one skill."""
    folder.mkdir(exist_ok=True, parents=True)
    text = f"---\nname: {folder.name}\ndescription: {description}\n---\n# Steps\n\nDo it.\n"
    (folder / "SKILL.md").write_text(text)


def listing(root: Path) -> float:
    """Return the least wall time of `satchel list`."""
    line = [sys.executable, "-m", "satchel", "list", "--skills", str(root)]
    least = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subprocess.run(line, capture_output=True, check=True)  # noqa: S603 - our own command
        least = min(least, time.perf_counter() - begun)
    return least


def after_an_edit(root: Path) -> float:
    """Return the least CPU time of a prompt after one skill changed."""
    satchel = Satchel(root)
    session = satchel.session()
    session.prompt()
    least = float("inf")
    for number in range(ROUNDS):
        write(root / "skill-00005", f"Edit {number}.")
        satchel.refresh()
        begun = time.process_time()
        session.prompt()
        least = min(least, time.process_time() - begun)
    return least


if __name__ == "__main__":
    main()
