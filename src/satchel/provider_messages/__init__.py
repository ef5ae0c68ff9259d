"""A provider's messages: the calls in them, and the messages for their results."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.provider_messages.message_formats import calls_in, result_messages
else:
    __getattr__ = lazy_exports(__name__, {"message_formats": "calls_in result_messages"})

__all__ = ["calls_in", "result_messages"]
