"""Full-text search: the tools and skills of a catalog, found by what they are said to do."""

from satchel.search.documents import documents_of
from satchel.search.index import Document, Hit, Index

__all__ = ["Document", "Hit", "Index", "documents_of"]
