"""MCP: a satchel as a server of the Model Context Protocol.

Only this package and `mcp_servers` import the official SDK, which takes a second; so import a
module of this package where it is needed.
"""
