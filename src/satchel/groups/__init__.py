"""Tool groups: which tools, skills and notes a session sees."""

from satchel.groups.group_activation import (
    Activation,
    View,
    active_in,
    stable_order,
    view_of,
    visible_skills,
)
from satchel.groups.view_digest import (
    CatalogDigest,
    ViewDigest,
    changes_between,
    digest_catalog,
    digest_view,
)

__all__ = [
    "Activation",
    "CatalogDigest",
    "View",
    "ViewDigest",
    "active_in",
    "changes_between",
    "digest_catalog",
    "digest_view",
    "stable_order",
    "view_of",
    "visible_skills",
]
