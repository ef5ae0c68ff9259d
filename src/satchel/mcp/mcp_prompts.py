"""Offer the skill prompt, the notes and each skill as MCP prompts."""

from collections.abc import Iterable
from typing import Any

from satchel.catalog.catalog_entries import SkillEntry
from satchel.formats.skill_arguments import takes_arguments
from satchel.text import visible

WORDS = "arguments"
"""The argument of a skill's prompt: the user's request."""

_TEXTS = {
    "skill_prompt": "The skills that there are, for a system prompt.",
    "activated_notes": "How to use the active tool groups well, for a system prompt.",
}


def prompts_of(
    skills: Iterable[SkillEntry], texts: Iterable[str], offered: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Describe all prompts; if names are equal, ours win, then those of plugins, then skills."""
    ours = [{"name": name, "description": _TEXTS[name]} for name in texts]
    argument = {"name": WORDS, "description": "What to do with it.", "required": False}
    of_skills = [
        {
            "name": skill.name,
            "description": visible(skill.description),
            "arguments": [argument],
        }
        for skill in skills
        if skill.manifest
    ]
    prompts: dict[str, dict[str, Any]] = {}
    for prompt in (*ours, *offered, *of_skills):
        prompts.setdefault(prompt["name"], prompt)
    return list(prompts.values())


def has_place_for_words(skill: SkillEntry | None) -> bool:
    """Return whether the user's request is put into the text of a skill, not after it."""
    return bool(skill and skill.manifest and takes_arguments(skill.manifest.body))


def prompt_result(description: str, text: str, words: str) -> dict[str, Any]:
    """Return a prompt as user messages: its text, then the user's request, if there is one."""
    return {
        "resultType": "complete",
        "description": description,
        "messages": [
            {"role": "user", "content": {"type": "text", "text": message}}
            for message in (text, words)
            if message
        ],
    }
