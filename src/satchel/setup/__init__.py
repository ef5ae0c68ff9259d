"""Install plugins: place folders, run pip, download files, and run the plugin's setup."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.setup.setup_context import Person, SetupContext
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "setup_context": "Person SetupContext",
        },
    )

__all__ = ["Person", "SetupContext"]
