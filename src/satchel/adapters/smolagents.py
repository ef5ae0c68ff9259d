"""Skills and tools for smolagents: `agent(session, tools=[], model=model).run("Hello")`."""

from typing import Any

from satchel.adapters import framework
from satchel.adapters.model_request import ModelRequest, OfferedTool, SessionSource
from satchel.provider_messages.message_parts import call_of, text_only

with framework("smolagents"):
    from smolagents import Tool, ToolCallingAgent


def agent(source: SessionSource, **options: Any) -> "SmolagentsAgent":
    """Return a `ToolCallingAgent` with the skills and tools of a session; `options` are its own.

    A function as `source` gets the agent. An agent of smolagents has one conversation, so users
    have agents of their own.
    """
    new_agent = SmolagentsAgent(**{"tools": [], **options})
    new_agent.source = source
    return new_agent


class SmolagentsAgent(ToolCallingAgent):
    """An agent whose tools and prompt are those of a new step for each request to the model."""

    source: Any = None
    tools: dict[str, Any]
    request: ModelRequest | None = None

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[Any]:
        """Begin a step: the agent writes its messages first, then it reads its tools."""
        messages: list[Any] = super().write_memory_to_messages(summary_mode)
        request = self.request = ModelRequest(self.source, self)
        own = {
            name: tool for name, tool in self.tools.items() if not isinstance(tool, SmolagentsTool)
        }
        offered = {tool.name: SmolagentsTool(tool) for tool in request.tools(own)}
        self.tools = {**own, **offered}
        for message in messages[:1]:
            if message.role.value == "system" and (prompt := request.prompt()):
                message.content = [*message.content, {"type": "text", "text": prompt}]
        return messages

    def process_tool_calls(self, chat_message: Any, memory_step: Any) -> Any:
        """Note all calls of the answer, as rules may be about several; then run them."""
        if self.request is not None:
            self.request.message = [
                call_of(call.function.name, call.function.arguments, call.id)
                for call in chat_message.tool_calls
            ]
        return super().process_tool_calls(chat_message, memory_step)

    def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        """Run a call of the step; the host's own tools run as they did.

        A failure becomes the text of the result: raised, it would end the other calls, too.
        """
        if self.request is None or not isinstance(self.tools.get(tool_name), SmolagentsTool):
            return super().execute_tool_call(tool_name, arguments)
        call = self.request.claim(tool_name, arguments if isinstance(arguments, dict) else {})
        return text_only(self.request.run_sync(call))


class SmolagentsTool(Tool):
    """Describes a tool for the model; the agent runs it."""

    skip_forward_signature_validation = True
    output_type = "any"

    def __init__(self, tool: OfferedTool) -> None:
        required = tool.parameters.get("required", [])
        self.name, self.description = tool.name, tool.description
        self.inputs = {
            name: {
                "description": "",
                **schema,
                "type": schema.get("type", "any"),
                **({} if name in required else {"nullable": True}),
            }
            for name, schema in tool.parameters.get("properties", {}).items()
        }
        super().__init__()

    def forward(self, *_: Any, **__: Any) -> Any:
        """Refuse: the agent runs the calls."""
        raise NotImplementedError
