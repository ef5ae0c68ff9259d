"""The loader: one look at all sources, and what the catalog is built of.

Everything is compared, nothing is replayed: a look takes what the last look found, reads what
may have changed, imports what did change, and hands the whole to the catalog.
"""

from satchel.loader.found import Look
from satchel.loader.looking import look
from satchel.loader.wanted import Asked, Wanted

__all__ = ["Asked", "Look", "Wanted", "look"]
