"""Install plugins: place folders, run pip, download files, and run the plugin's setup."""

from satchel.setup.setup_context import Person, SetupContext

__all__ = ["Person", "SetupContext"]
