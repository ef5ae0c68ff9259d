"""Providers: where skills, plugins, tools and groups come from that are in no given folder."""

from satchel.providers.provided import Provided
from satchel.providers.provider import Contribution, Provider, provider_fault
from satchel.providers.skill import Skill, find_skill

__all__ = ["Contribution", "Provided", "Provider", "Skill", "find_skill", "provider_fault"]
