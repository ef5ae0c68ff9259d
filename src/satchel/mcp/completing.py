"""Completing what a user begins to type: an argument of a prompt, or a part of an address."""

from collections.abc import Iterable, Mapping
from typing import Any

import mcp_types as types

from satchel.catalog import SkillEntry
from satchel.mcp.shown import Shown
from satchel.mcp.skills import TEMPLATE
from satchel.tools.offers import Complete

_MOST = 100


def completion(params: types.CompleteRequestParams, shown: Shown) -> dict[str, Any]:
    """Answer with the words that begin so."""
    asked, begun = params.argument.name, params.argument.value
    given = (params.context.arguments if params.context else None) or {}
    words: Iterable[str] = ()
    if offered := _offered(params.ref, shown):
        words = offered(asked, begun)
    elif getattr(params.ref, "uri", None) == TEMPLATE["uriTemplate"]:
        words = _of_skills(asked, given, shown.view.skills)
    found = sorted({word for word in words if word.startswith(begun)})
    total = len(found)
    told = {"values": found[:_MOST], "total": total, "hasMore": total > _MOST}
    return {"completion": told, "resultType": "complete"}


def _offered(
    reference: types.PromptReference | types.ResourceTemplateReference, shown: Shown
) -> Complete | None:
    """Return what completes the arguments of something that a plugin offers, if it does."""
    if isinstance(reference, types.PromptReference):
        prompt = shown.offers.prompts.get(reference.name)
        return prompt.complete if prompt else None
    resource = shown.offers.resources.get(reference.uri)
    return resource.complete if resource else None


def _of_skills(asked: str, given: Mapping[str, str], skills: Iterable[SkillEntry]) -> Iterable[str]:
    """Return the words for a part of a skill's address."""
    match asked:
        case "name":
            return (skill.name for skill in skills)
        case "path":
            named = (skill for skill in skills if skill.name == given.get("name", skill.name))
            return (file.name for skill in named for file in skill.files)
    return ()
