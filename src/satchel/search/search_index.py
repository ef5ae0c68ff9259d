"""The index: documents in, and for some words the documents that tell of them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from satchel.names import near_misses
from satchel.search.search_terms import name_terms, normalize_text, query_terms, split_camel_case

_NAME_WEIGHT, _DESCRIPTION_WEIGHT, _MORE_WEIGHT = 10.0, 3.0, 1.0
_MOST_MISTYPED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """A tool or skill as it is searched."""

    kind: str
    name: str
    description: str
    more: str = ""
    """Further words, which count least."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found; a higher score is better, within one search."""

    kind: str
    name: str
    score: float


class SearchIndex:
    """Holds documents by kind and name, and finds them by their words. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[int, SearchDocument] = {}
        self._table: _FullText | _Scan | None = None

    def bring_up_to_date(self, documents: Iterable[SearchDocument]) -> int:
        """Hold these documents and no others; only what differs is written.

        Returns how many were written or removed.
        """
        wanted = set({(item.kind, item.name): item for item in documents}.values())
        with self._lock:
            gone = {row: item for row, item in self._held.items() if item not in wanted}
            fresh = wanted.difference(self._held.values())
            if not gone and not fresh:
                return 0
            come = dict(enumerate(fresh, max(self._held, default=0) + 1))
            self._table = self._table or _open()
            self._table.write(gone, come)
            kept = {row: item for row, item in self._held.items() if row not in gone}
            self._held = kept | come
        return len({(item.kind, item.name) for item in (*gone.values(), *fresh)})

    def search(self, words: str, kind: str | None = None, limit: int = 10) -> list[SearchHit]:
        """Return what tells of any of the words, best first, if need be as if mistyped.

        Words are text and nothing else: there are no operators.
        """
        terms = query_terms(words)
        if not terms:
            return []
        found = (
            self._matching(terms, kind)
            or self._matching(query_terms(split_camel_case(words)), kind)
            or self._matching(self._alike(terms, kind), kind)
        )
        # Whoever knows the name gets what has it, however often others mention it.
        name = words.strip().casefold()
        best = max((score for score, _ in found), default=0.0)
        ranked = sorted(
            (-score - best * (item.name.casefold() == name), item.name, item.kind)
            for score, item in found
        )
        return [
            SearchHit(its_kind, name, -score) for score, name, its_kind in ranked[: max(limit, 0)]
        ]

    def close(self) -> None:
        """Let go of everything; what is then brought up to date begins anew."""
        with self._lock:
            table, self._table, self._held = self._table, None, {}
            if table is not None:
                table.close()

    def __del__(self) -> None:
        self.close()

    def _matching(
        self, terms: Collection[str], kind: str | None
    ) -> list[tuple[float, SearchDocument]]:
        with self._lock:
            if self._table is None or not terms:
                return []
            found = [(score, self._held[row]) for row, score in self._table.scores(terms)]
        return [pair for pair in found if kind in (None, pair[1].kind)]

    def _alike(self, terms: Collection[str], kind: str | None) -> list[str]:
        """Return the words of names that look like what was asked for."""
        with self._lock:
            items = list(self._held.values())
        known = {
            word for item in items if kind in (None, item.kind) for word in name_terms(item.name)
        }
        mistyped = list(terms)[:_MOST_MISTYPED]
        return [word for term in mistyped for word in near_misses(term, known)]


class _FullText:
    """The table in which SQLite finds words; it is in memory."""

    def __init__(self) -> None:
        # Lazy: most hosts never search, and some Pythons come without it.
        import sqlite3

        # Two threads never use it at once: the index has a lock.
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._connection.execute(
                "CREATE VIRTUAL TABLE documents USING fts5(name, description, more, "
                "tokenize = 'porter unicode61 remove_diacritics 2')"
            )
        except sqlite3.Error:
            self._connection.close()
            raise

    def write(self, gone: Iterable[int], come: Mapping[int, SearchDocument]) -> None:
        rows = ((row, *_columns(item)) for row, item in come.items())
        with self._connection:
            self._connection.executemany(
                "DELETE FROM documents WHERE rowid = ?", ((row,) for row in gone)
            )
            self._connection.executemany(
                "INSERT INTO documents (rowid, name, description, more) VALUES (?, ?, ?, ?)", rows
            )

    def scores(self, terms: Collection[str]) -> list[tuple[int, float]]:
        # A term holds letters and digits only, so that nothing ends its quotes.
        phrases = [f'"{term}"' for term in terms]
        # A whole word counts twice, being also a prefix. One letter begins too many words.
        phrases += [f'"{term}"*' for term in terms if len(term) > 1 or len(terms) == 1]
        return self._connection.execute(
            "SELECT rowid, -bm25(documents, ?, ?, ?) FROM documents WHERE documents MATCH ?",
            (_NAME_WEIGHT, _DESCRIPTION_WEIGHT, _MORE_WEIGHT, " OR ".join(phrases)),
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


class _Scan:
    """What stands in where SQLite is missing: it looks into every text."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[str, ...]] = {}

    def write(self, gone: Iterable[int], come: Mapping[int, SearchDocument]) -> None:
        for row in gone:
            del self._texts[row]
        self._texts.update((row, _columns(item)) for row, item in come.items())

    def scores(self, terms: Collection[str]) -> list[tuple[int, float]]:
        weights = (_NAME_WEIGHT, _DESCRIPTION_WEIGHT, _MORE_WEIGHT)
        scores = (
            (
                row,
                sum(w for w, text in zip(weights, texts, strict=True) for t in terms if t in text),
            )
            for row, texts in self._texts.items()
        )
        return [(row, score) for row, score in scores if score]

    def close(self) -> None:
        self._texts.clear()


def _open() -> _FullText | _Scan:
    try:
        return _FullText()
    except Exception:  # an ImportError, or an error of a SQLite that was built without FTS5
        return _Scan()


def _columns(item: SearchDocument) -> tuple[str, ...]:
    name = normalize_text(" ".join(name_terms(item.name)))
    return name, normalize_text(item.description), normalize_text(item.more)
