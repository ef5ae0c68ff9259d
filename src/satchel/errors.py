"""The errors that Satchel raises.

SatchelError            anything that the caller can handle as one kind
├── DefinitionError     the host's own code describes something that cannot be
├── ConflictError       a name is taken
├── NotFoundError       nothing has that name; carries the near misses
└── ToolError           raised by a tool; its text goes to the model as written

What other people's files and plugins do wrong is never raised: it becomes a
`Diagnostic` in the catalog, so that one bad unit takes no other with it.
"""

from collections.abc import Iterable


class SatchelError(Exception):
    """Base of all errors that Satchel raises on purpose.

    `where` names the thing at fault and `fix` says how to mend it; both may be empty.
    """

    def __init__(self, message: str, *, where: str = "", fix: str = "") -> None:
        place = f"{where}: " if where else ""
        mend = f" ({fix})" if fix else ""
        super().__init__(f"{place}{message}{mend}")
        self.message, self.where, self.fix = message, where, fix


class DefinitionError(SatchelError):
    """The host's own code describes a tool, group or place that cannot be."""


class ConflictError(SatchelError):
    """A name is already taken by something else that the host added."""


class NotFoundError(SatchelError):
    """Nothing of this kind has that name; `near` holds names that look alike."""

    def __init__(self, kind: str, name: str, near: Iterable[str] = ()) -> None:
        self.kind, self.name, self.near = kind, name, tuple(near)
        hint = f"did you mean {', '.join(self.near)}?" if self.near else ""
        super().__init__(f"there is no {kind} named {name!r}", fix=hint)


class ToolError(SatchelError):
    """Raised by a tool to tell the model what went wrong, word for word."""
