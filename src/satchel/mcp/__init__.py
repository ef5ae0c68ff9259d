"""MCP: a satchel as a server of the Model Context Protocol.

The official SDK is imported in this room only, and takes a second; so import a module of it where
it is needed.
"""
