"""Remote MCP servers: how they are reached, kept, and called."""
