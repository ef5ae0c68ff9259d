"""Frameworks without a host, which use `satchel serve`: only their pages and tests are run."""

from types import MappingProxyType

from satchel.testing.adapter_checks import Cannot

NAMES = MappingProxyType({"claude_agent": "Claude Agent SDK", "crewai": "CrewAI"})

WHY = MappingProxyType(
    {
        "claude_agent": Cannot(
            "what a server in the SDK's process says by itself is dropped",
            "claude_agent_sdk._internal.sdk_mcp_bridge",
            '"Dropping %r notification from SDK MCP server %r",',
        ),
        "crewai": Cannot(
            "the tools are made once, before the first request of a run",
            "crewai.agents.agent_executor",
            "if self.state.iterations == 0:\n"
            "self.state.use_native_tools = self._check_native_tool_support()\n"
            "if self.state.use_native_tools:\n"
            "self._setup_native_tools()",
        ),
    }
)
"""Why there is no host, with the lines of source that show it."""
