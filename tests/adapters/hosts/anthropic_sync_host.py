"""The loop over Anthropic's own library: sync."""

from anthropic_host import BlockingHost as Host  # noqa: F401
