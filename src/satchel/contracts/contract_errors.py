"""The error of a contract's configuration or state."""

from satchel.errors import ToolError


class ContractError(ToolError):
    """A value that a tool reads or writes does not fit its contract."""

    def __init__(self, tool: str, key: str, message: str) -> None:
        self.tool, self.key = tool, key
        super().__init__(f"{tool}: {message}")
