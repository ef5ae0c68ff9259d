"""The words for the model: the skill prompt, the notes, and their budget."""

from satchel.prompt.notes import render_notes
from satchel.prompt.skills import SkillLine, SkillPrompt, render_skills

__all__ = ["SkillLine", "SkillPrompt", "render_notes", "render_skills"]
