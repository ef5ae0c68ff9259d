"""Measure how well and how fast skills are found.

    python benchmarks/searching.py FOLDER [REQUESTS]

FOLDER has skills, and REQUESTS is a table of a skill's name and a request in other words than its
description, with a tab between them. The odd requests were never used to choose weights.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from satchel import Satchel
from satchel.search.search_documents import documents_of
from satchel.search.search_index import SearchDocument, SearchIndex

REQUESTS = Path(__file__).with_name("search_requests.tsv")
COUNT = 10_000
"""How many skills the index has whose size and speed are measured."""


def main() -> None:
    """Measure and print tables."""
    folder, *more = sys.argv[1:]
    requests = Path(more[0]) if more else REQUESTS
    rows = [line.split("\t") for line in requests.read_text().splitlines()]
    with Satchel(skills=[folder]) as app:
        documents = [item for item in documents_of(app.catalog) if item.kind == "skill"]
    names = {item.name for item in documents}
    known = [(name, words) for name, words in rows if name in names]
    print(f"{len(known)} of {len(rows)} requests are about these {len(names)} skills")
    print(f"{'found, in percent':32}{'first':>8}{'in 3':>8}{'in 10':>8}")
    without = [
        SearchDocument(kind="skill", name=item.name, description=item.description)
        for item in documents
    ]
    for title, items in (("names and descriptions", without), ("with the instructions", documents)):
        index = index_of(items)
        for part, some in (("", known), (", even", known[::2]), (", odd", known[1::2])):
            print(f"{title + part:32}{''.join(f'{hit:8.1f}' for hit in hits(index, some))}")
    measure_many(documents)


def index_of(items: list[SearchDocument]) -> SearchIndex:
    """Return an index of documents."""
    index = SearchIndex()
    index.bring_up_to_date(items)
    return index


def hits(index: SearchIndex, rows: list[tuple[str, str]]) -> list[float]:
    """Return how many percent of the requests find their skill first, in three and in ten."""
    ranks = []
    for name, words in rows:
        found = [hit.name for hit in index.search(words, "skill", 10)]
        ranks.append(found.index(name) if name in found else 10)
    return [100 * sum(rank < most for rank in ranks) / max(len(ranks), 1) for most in (1, 3, 10)]


def measure_many(documents: list[SearchDocument]) -> None:
    """Print size and times of an index of many skills, made of copies of the real ones."""
    many = [
        SearchDocument(
            kind="skill",
            name=f"{item.name}-{at // len(documents)}",
            description=item.description,
            more=item.more,
            version=item.version,
            body=item.body,
        )
        for at in range(COUNT)
        for item in [documents[at % len(documents)]]
    ]
    index = SearchIndex()
    before = resident()
    build = timed(lambda: index.bring_up_to_date(many))
    size = resident() - before
    edited = SearchDocument(kind="skill", name=many[7].name, description="d", version="new")
    edit = timed(lambda: index.bring_up_to_date([*many[:7], edited, *many[8:]]))
    search = timed(lambda: index.search("turn a paper into plain text", "skill"))
    print(
        f"{COUNT:,} skills: index {size:.0f} MB, built in {build:.2f} s of CPU, "
        f"after one edit {edit * 1e3:.0f} ms, a search {search * 1e3:.0f} ms"
    )


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of CPU that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def resident() -> float:
    """Return the memory of this process in megabytes; Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096 / 1e6


if __name__ == "__main__":
    main()
