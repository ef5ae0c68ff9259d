"""Groups: which tools, skills and notes a conversation sees."""

from satchel.groups.activation import Activation, View, in_order_of_appearance, view_of
from satchel.groups.sight import Sight, changes_between, sight_of

__all__ = [
    "Activation",
    "Sight",
    "View",
    "changes_between",
    "in_order_of_appearance",
    "sight_of",
    "view_of",
]
