"""A provider's messages: the calls in them, and the messages for their results."""
