"""The prompts of the last generations, to compare them."""

import json
from collections.abc import Mapping
from typing import Any

from satchel.lazy_dataclass import dataclass
from satchel.prompt.token_estimate import about_tokens
from satchel.reports.listing_report import listing_report
from satchel.reports.serializer import listing_json
from satchel.session.session import Session

MOST_KEPT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot:
    """The prompt of one step, with its parts."""

    generation: int
    groups: tuple[str, ...]
    skills: str
    notes: str
    sections: str
    prompt: str
    listing: Mapping[str, Any]
    report: str
    """The form of the listing, and what would change it."""
    budget: int | None
    schemas: str
    """The schemas of the tools, as JSON in the dialect `mcp`."""
    tools: int

    def sizes(self) -> list[dict[str, Any]]:
        """Return the length of each part."""
        parts = {"skills": self.skills, "notes": self.notes, "sections": self.sections}
        return [
            {"name": name, "characters": len(text), "tokens": about_tokens(text), "text": text}
            for name, text in parts.items()
        ]


def prompt_of(session: Session) -> PromptSnapshot:
    """Take a step, and return what it sends."""
    step = session.step()
    schemas = step.schemas("mcp")
    return PromptSnapshot(
        generation=step.generation,
        groups=step.active_groups,
        skills=step.skill_prompt(),
        notes=step.activated_notes(),
        sections=step.prompt_sections(),
        prompt=step.prompt(),
        listing=listing_json(step.skill_listing),
        report=listing_report(session),
        budget=session.skill_style.budget,
        schemas=json.dumps(schemas, ensure_ascii=False),
        tools=len(schemas),
    )
