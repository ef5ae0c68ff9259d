"""The words for the model: the skill prompt, the notes, a loaded skill, what changed; budgets."""

from satchel.prompt.changes import render_changes
from satchel.prompt.content import render_content
from satchel.prompt.guide import GuidedTool, render_guide
from satchel.prompt.notes import render_notes, render_sections
from satchel.prompt.skills import (
    DEFAULT_BUDGET,
    Listing,
    SkillLine,
    SkillPrompt,
    render_skills,
)
from satchel.prompt.tokens import about_tokens

__all__ = [
    "DEFAULT_BUDGET",
    "GuidedTool",
    "Listing",
    "SkillLine",
    "SkillPrompt",
    "about_tokens",
    "render_changes",
    "render_content",
    "render_guide",
    "render_notes",
    "render_sections",
    "render_skills",
]
