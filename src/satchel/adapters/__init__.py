"""Connects a session to agent frameworks: one module for each, which imports only its framework.

`from satchel.adapters.pydantic_ai import toolset`, and so on. `model_request` is what all share.
"""
