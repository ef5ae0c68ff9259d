"""Whether the official SDK is there; it is an extra, because it is large."""

from satchel.errors import SatchelError


def require_sdk() -> None:
    """Raise `SatchelError` that says how to get the SDK, if it is not there or too old."""
    try:
        # Whether they can be imported is the question; older ones lack both.
        import mcp.server.subscriptions  # noqa: F401
        import mcp_types  # noqa: F401
    except ImportError as problem:
        raise SatchelError(
            "MCP needs the official SDK, 2.3 or newer, which is not installed",
            fix="pip install 'satchel[mcp]'",
        ) from problem
