"""The error of a contract whose configuration or state is not as it should be."""

from satchel.errors import ToolError


class ContractError(ToolError):
    """A value that a tool is to be handed, or wants to write, is not as its contract says."""

    def __init__(self, tool: str, key: str, message: str) -> None:
        self.tool, self.key = tool, key
        super().__init__(f"{tool}: {message}")
