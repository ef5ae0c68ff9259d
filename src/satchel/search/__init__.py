"""Full-text search over the tools and skills of a catalog."""

from satchel.search.search_documents import documents_of
from satchel.search.search_index import SearchDocument, SearchHit, SearchIndex

__all__ = ["SearchDocument", "SearchHit", "SearchIndex", "documents_of"]
