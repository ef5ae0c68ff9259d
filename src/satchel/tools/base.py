"""What a tool is, whoever wrote it."""

from abc import ABC, abstractmethod
from copy import deepcopy
from typing import Any


class Tool(ABC):
    """Something the model can call.

    Subclass it for a tool that holds resources; a plain function needs only `@tool`.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema, of type object, of the arguments that the model may send."""
    group: str | None = None
    timeout: float | None = None
    """Seconds that one call may take; `None` leaves it to the host's limits."""

    @abstractmethod
    async def execute(self, /, **arguments: Any) -> Any:
        """Run once. Raise `ToolError` to tell the model what went wrong."""

    def to_schema(self) -> dict[str, Any]:
        """Describe the tool in the shape that OpenAI made common."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                # A copy: whoever adapts it for a provider must not change the tool.
                "parameters": deepcopy(self.parameters),
            },
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '?')}>"
