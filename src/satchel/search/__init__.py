"""Full-text search over the tools and skills of a catalog."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.search.search_documents import documents_of
    from satchel.search.search_index import SearchDocument, SearchHit, SearchIndex
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "search_documents": "documents_of",
            "search_index": "SearchDocument SearchHit SearchIndex",
        },
    )

__all__ = ["SearchDocument", "SearchHit", "SearchIndex", "documents_of"]
