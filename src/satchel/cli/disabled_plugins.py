"""Say that a tool may be unknown because the code of a disabled plugin does not run."""

from typing import TYPE_CHECKING

from satchel.errors import NotFoundError, SatchelError

if TYPE_CHECKING:
    from satchel.catalog.catalog import Catalog


def of_disabled_plugin(catalog: "Catalog", problem: NotFoundError) -> SatchelError | None:
    """Return the error for a name that a disabled plugin may have, `None` without one."""
    for plugin in () if problem.near else catalog.all_plugins:
        for item in plugin.diagnostics:
            if item.code == "disabled":
                message = f"{problem.message}; {item.message}, so its tools are not known"
                return SatchelError(message, fix=item.fix)
    return None
