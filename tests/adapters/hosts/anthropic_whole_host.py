"""The loop over Anthropic's own library: whole."""

from anthropic_host import WholeHost as Host  # noqa: F401
