"""Providers: where skills, plugins, tools and groups come from that are in no given folder."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.providers.provided import Provided
    from satchel.providers.provider import Contribution, Provider, provider_fault
    from satchel.providers.skill import Skill, find_skill
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "provided": "Provided",
            "provider": "Contribution Provider provider_fault",
            "skill": "Skill find_skill",
        },
    )

__all__ = ["Contribution", "Provided", "Provider", "Skill", "find_skill", "provider_fault"]
