"""Text for the model: skill listing, notes, loaded skills, tool guide and changes."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.prompt.change_summary import render_changes
    from satchel.prompt.group_notes import render_notes, render_sections
    from satchel.prompt.skill_content import render_content
    from satchel.prompt.skill_listing import (
        DEFAULT_BUDGET,
        RenderedListing,
        SkillPrompt,
        render_skills,
    )
    from satchel.prompt.token_estimate import about_tokens
    from satchel.prompt.tool_guide import ToolGuideEntry, render_guide
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "change_summary": "render_changes",
            "group_notes": "render_notes render_sections",
            "skill_content": "render_content",
            "skill_listing": "DEFAULT_BUDGET RenderedListing SkillPrompt render_skills",
            "token_estimate": "about_tokens",
            "tool_guide": "ToolGuideEntry render_guide",
        },
    )

__all__ = [
    "DEFAULT_BUDGET",
    "RenderedListing",
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
