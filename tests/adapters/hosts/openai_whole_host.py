"""The loop over OpenAI's own library."""

from openai_host import WholeHost as Host  # noqa: F401
