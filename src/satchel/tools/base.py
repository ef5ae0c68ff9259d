"""What a tool is, whoever wrote it."""

from abc import ABC, abstractmethod
from typing import Any

from satchel.text import visible


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
    async def execute(self, *args: Any, **arguments: Any) -> Any:
        """Run once with the arguments by name. Raise `ToolError` to tell the model what is wrong.

        Subclasses name their parameters; `args` is there so that type checkers let them.
        """

    def to_schema(self) -> dict[str, Any]:
        """Describe the tool in the shape that OpenAI made common."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": visible(self.description),
                "parameters": shown(self.parameters),
            },
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '?')}>"


def shown(schema: Any) -> Any:
    """Copy a schema as the model may see it: without invisible characters in its descriptions.

    A copy also because whoever adapts it for a provider must not change the tool.
    """
    if isinstance(schema, dict):
        return {
            key: visible(value) if key == "description" and isinstance(value, str) else shown(value)
            for key, value in schema.items()
        }
    if isinstance(schema, list | tuple):
        return [shown(item) for item in schema]
    return schema
