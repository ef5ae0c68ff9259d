"""Groups: which tools, skills and notes a conversation sees."""

from satchel.groups.activation import (
    Activation,
    View,
    active_in,
    in_order_of_appearance,
    seen_skills,
    view_of,
)
from satchel.groups.sight import Sight, Traits, changes_between, sight_of, traits_of

__all__ = [
    "Activation",
    "Sight",
    "Traits",
    "View",
    "active_in",
    "changes_between",
    "in_order_of_appearance",
    "seen_skills",
    "sight_of",
    "traits_of",
    "view_of",
]
