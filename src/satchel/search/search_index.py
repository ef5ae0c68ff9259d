"""The search index: full-text search by SQLite."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, replace
from threading import Lock

from satchel.errors import ToolError
from satchel.lazy_dataclass import dataclass
from satchel.names import near_misses, split_camel_case
from satchel.search.search_terms import (
    name_terms,
    normalize_text,
    query_terms,
    without_stop_words,
)

_WEIGHTS = (10.0, 3.0, 1.0, 1.0)
"""Of name, description, further text and body; `benchmarks/searching.py` judges them."""
_MAX_CORRECTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDocument:
    """The searchable text of a tool or skill."""

    kind: str
    name: str
    description: str
    more: str = ""
    """Further text."""
    version: str = ""
    """Changes with the body."""
    body: Callable[[], str] = field(default=str, compare=False, repr=False)
    """Returns a longer text, which only whole words find. It is called once, and not kept."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A match; scores compare within one search, and a higher one is better."""

    kind: str
    name: str
    score: float


class SearchIndex:
    """An index of documents by kind and name. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._documents: dict[int, SearchDocument] = {}
        self._table: _FullText | None = None

    def bring_up_to_date(self, documents: Iterable[SearchDocument]) -> int:
        """Replace the contents by these documents, and write only the differences.

        Returns how many documents were written or removed.
        """
        current = set({(item.kind, item.name): item for item in documents}.values())
        with self._lock:
            removed = {row: item for row, item in self._documents.items() if item not in current}
            new = current.difference(self._documents.values())
            if not removed and not new:
                return 0
            added = dict(enumerate(new, max(self._documents, default=0) + 1))
            self._table = self._table or _FullText()
            self._table.write(removed, added)
            kept = {row: item for row, item in self._documents.items() if row not in removed}
            # Without the function: it may hold what has the body.
            self._documents = kept | {row: replace(item, body=str) for row, item in added.items()}
        return len({(item.kind, item.name) for item in (*removed.values(), *new)})

    def search(self, words: str, kind: str | None = None, limit: int = 10) -> list[SearchHit]:
        """Return the documents that contain any of the words, best first.

        If none does, camelCase words are split, then typing errors corrected. There are no
        operators: all of `words` is plain text.
        """
        terms = query_terms(words)
        if not terms:
            return []
        matches = (
            self._match(terms, kind)
            or self._match(query_terms(split_camel_case(words)), kind)
            or self._match(self._similar_names(terms, kind), kind)
        )
        # An exact name comes first, however often other documents mention it.
        exact = words.strip().casefold()
        best = max((score for score, _ in matches), default=0.0)
        ranked = sorted(
            (-score - best * (item.name.casefold() == exact), item.name, item.kind)
            for score, item in matches
        )
        return [SearchHit(kind_, name, -score) for score, name, kind_ in ranked[: max(limit, 0)]]

    def close(self) -> None:
        """Remove all documents and close the database; `bring_up_to_date` opens a new one."""
        with self._lock:
            table, self._table, self._documents = self._table, None, {}
            if table is not None:
                table.close()

    def __del__(self) -> None:
        self.close()

    def _match(
        self, terms: Collection[str], kind: str | None
    ) -> list[tuple[float, SearchDocument]]:
        with self._lock:
            if self._table is None or not terms:
                return []
            scored = [(score, self._documents[row]) for row, score in self._table.scores(terms)]
        return [(score, item) for score, item in scored if kind in (None, item.kind)]

    def _similar_names(self, terms: Collection[str], kind: str | None) -> list[str]:
        """Return words of names that are spelled like one of the terms."""
        with self._lock:
            items = list(self._documents.values())
        words = {
            word for item in items if kind in (None, item.kind) for word in name_terms(item.name)
        }
        checked = list(terms)[:_MAX_CORRECTED]
        return [word for term in checked for word in near_misses(term, words)]


class _FullText:
    """An FTS5 table of SQLite in memory."""

    def __init__(self) -> None:
        try:  # lazy: most hosts never search
            import sqlite3
        except ImportError:
            raise _without_fts5() from None
        # Two threads never use it at once: the index holds a lock.
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._connection.execute(
                "CREATE VIRTUAL TABLE documents USING fts5(name, description, more, body, "
                "tokenize = 'porter unicode61 remove_diacritics 2')"
            )
        except sqlite3.Error:
            self._connection.close()
            raise _without_fts5() from None

    def write(self, removed: Iterable[int], added: Mapping[int, SearchDocument]) -> None:
        rows = ((row, *_columns(item)) for row, item in added.items())
        with self._connection:
            self._connection.executemany(
                "DELETE FROM documents WHERE rowid = ?", ((row,) for row in removed)
            )
            self._connection.executemany(
                "INSERT INTO documents (rowid, name, description, more, body) "
                "VALUES (?, ?, ?, ?, ?)",
                rows,
            )

    def scores(self, terms: Collection[str]) -> list[tuple[int, float]]:
        # A term has only letters and digits, so it cannot end its quotes.
        phrases = [f'"{term}"' for term in terms]
        # A whole word counts twice, because it is also a prefix. One letter begins too many words.
        prefixes = [f'"{term}"*' for term in terms if len(term) > 1 or len(terms) == 1]
        phrases += [f"{{name description more}}: {prefix}" for prefix in prefixes]
        return self._connection.execute(
            "SELECT rowid, -bm25(documents, ?, ?, ?, ?) FROM documents WHERE documents MATCH ?",
            (*_WEIGHTS, " OR ".join(phrases)),
        ).fetchall()

    def close(self) -> None:
        self._connection.close()


def can_search() -> bool:
    """Return whether this Python has what a search needs."""
    try:
        _FullText().close()
    except ToolError:
        return False
    return True


def _without_fts5() -> ToolError:
    message = "search is not available: this Python has no module sqlite3 with FTS5"
    return ToolError(message, fix="use a Python that has it")


def _columns(item: SearchDocument) -> tuple[str, ...]:
    name = normalize_text(" ".join(name_terms(item.name)))
    texts = (item.description, item.more, without_stop_words(item.body()))
    return name, *map(normalize_text, texts)
