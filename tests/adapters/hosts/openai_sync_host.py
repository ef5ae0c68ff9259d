"""The loop over OpenAI's own library, without an event loop."""

from openai_host import BlockingHost as Host  # noqa: F401
