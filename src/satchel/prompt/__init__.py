"""Text for the model: skill listing, notes, loaded skills, tool guide and changes."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.prompt.change_summary import render_changes
    from satchel.prompt.group_notes import render_notes, render_sections
    from satchel.prompt.listing_words import ListingForm
    from satchel.prompt.skill_content import render_content
    from satchel.prompt.skill_listing import PromptListing, SkillTexts, render_skills
    from satchel.prompt.skill_prompt import DEFAULT_BUDGET, SkillPrompt
    from satchel.prompt.token_estimate import about_tokens
    from satchel.prompt.tool_guide import ToolGuideEntry, render_guide
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "change_summary": "render_changes",
            "group_notes": "render_notes render_sections",
            "skill_content": "render_content",
            "listing_words": "ListingForm",
            "skill_listing": "PromptListing SkillTexts render_skills",
            "skill_prompt": "DEFAULT_BUDGET SkillPrompt",
            "token_estimate": "about_tokens",
            "tool_guide": "ToolGuideEntry render_guide",
        },
    )
