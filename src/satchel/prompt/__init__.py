"""Text for the model: skill listing, notes, loaded skills, tool guide and changes."""

from satchel.prompt.change_summary import render_changes
from satchel.prompt.group_notes import render_notes, render_sections
from satchel.prompt.skill_content import render_content
from satchel.prompt.skill_listing import (
    DEFAULT_BUDGET,
    RenderedListing,
    SkillLine,
    SkillPrompt,
    render_skills,
)
from satchel.prompt.token_estimate import about_tokens
from satchel.prompt.tool_guide import ToolGuideEntry, render_guide

__all__ = [
    "DEFAULT_BUDGET",
    "RenderedListing",
    "SkillLine",
    "SkillPrompt",
    "ToolGuideEntry",
    "about_tokens",
    "render_changes",
    "render_content",
    "render_guide",
    "render_notes",
    "render_sections",
    "render_skills",
]
