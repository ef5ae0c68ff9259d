"""Check that the official MCP SDK is installed; it is an optional extra because it is large."""

from satchel.errors import SatchelError, install_hint


def require_sdk() -> None:
    """Raise `SatchelError` if the SDK is missing or too old."""
    try:
        # Older versions of the SDK lack both modules.
        import mcp.server.subscriptions  # noqa: F401
        import mcp_types  # noqa: F401
    except ImportError as problem:
        raise SatchelError(
            "MCP needs the official SDK, 2.0 or newer, which is not installed",
            fix=install_hint("mcp"),
        ) from problem
