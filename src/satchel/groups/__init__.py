"""Groups: which tools, skills and notes a conversation sees."""

from satchel.groups.activation import Activation, View, view_of

__all__ = ["Activation", "View", "view_of"]
