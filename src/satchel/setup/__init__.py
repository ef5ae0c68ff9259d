"""Installing plugins: their folders and packages, and the code that an author runs then."""

from satchel.setup.setup_context import Person, SetupContext

__all__ = ["Person", "SetupContext"]
