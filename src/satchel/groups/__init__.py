"""Tool groups: which tools, skills and notes a session sees."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
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
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "group_activation": "Activation View active_in stable_order view_of visible_skills",
            "view_digest": "CatalogDigest ViewDigest changes_between digest_catalog digest_view",
        },
    )
