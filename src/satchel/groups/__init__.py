"""Groups: which tools, skills and notes a conversation sees."""

from satchel.groups.activation import Activation, View, in_order_of_appearance, view_of

__all__ = ["Activation", "View", "in_order_of_appearance", "view_of"]
