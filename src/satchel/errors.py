"""The errors that Satchel raises.

SatchelError            anything that the caller can handle as one kind
├── DefinitionError     the application's code defines something invalid
├── ConflictError       a name is taken
├── NotFoundError       nothing has that name; has the near misses
└── ToolError           raised by a tool; its text goes to the model as written
    └── ContractError   a value that a tool reads or writes does not fit its contract

IsolatedToolError       what a tool in the process of its plugin raised, for middleware

Problems in skill folders and plugins are never raised: they become `Diagnostic`s in
the catalog, so that one bad unit does not affect the others.
"""

from collections.abc import Iterable


class SatchelError(Exception):
    """Base of all errors that Satchel raises on purpose.

    `where` names the cause and `fix` the remedy; both may be empty.
    """

    def __init__(self, message: str, *, where: str = "", fix: str = "") -> None:
        place = f"{where}: " if where else ""
        remedy = f" ({fix})" if fix else ""
        super().__init__(f"{place}{message}{remedy}")
        self.message, self.where, self.fix = message, where, fix


class DefinitionError(SatchelError):
    """The application's code defines an invalid tool, group or search root."""


class ConflictError(SatchelError):
    """A name is already taken by something else that the application added."""


class NotFoundError(SatchelError):
    """Nothing of this kind has that name; `near` holds similar names."""

    def __init__(self, kind: str, name: str, near: Iterable[str] = ()) -> None:
        self.kind, self.name, self.near = kind, name, tuple(near)
        hint = f"did you mean {', '.join(self.near)}?" if self.near else ""
        super().__init__(f"there is no {kind} named {name!r}", fix=hint)


class ToolError(SatchelError):
    """Raised by a tool; its text goes to the model unchanged."""


class ContractError(ToolError):
    """A value that a tool reads or writes does not fit its contract."""

    def __init__(self, tool: str, key: str, message: str) -> None:
        self.tool, self.key = tool, key
        super().__init__(f"{tool}: {message}")


class IsolatedToolError(Exception):
    """What a tool of an isolated plugin raised: its type's name, and its text, redacted.

    The exception itself stays in the plugin's process.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"{type_name}: {message}")
        self.type_name, self.message = type_name, message


def install_hint(extra: str) -> str:
    """Return how to install an optional extra.

    The index has no release yet: there, the name may be that of another package.
    """
    return f"pip install '.[{extra}]' in a clone of Satchel"
