"""The page of the prompt: what a session sends now, its parts, and what changed."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request

from satchel.errors import SatchelError
from satchel.prompt.token_estimate import about_tokens
from satchel.reports.listing_report import listing_report
from satchel.reports.serializer import listing_json
from satchel.session.step import Step
from satchel.web.page_rendering import Page, diff_lines
from satchel.web.workbench import Workbench


def prompt(workbench: Workbench, request: Request) -> Page:
    """Return the prompt of a new session with some groups, and a diff to an earlier one."""
    session, problem = workbench.app.session(), ""
    for group in request.query_params.getlist("group"):
        try:
            session.activate(group)
        except SatchelError as error:
            problem = error.message
    step = session.step()
    now, tools = step.prompt(), step.schemas("mcp")
    parts = {
        "skills": step.skill_prompt(),
        "notes": step.activated_notes(),
        "sections": step.prompt_sections(),
    }
    earlier = dict(_earlier(workbench, now))
    against = request.query_params.get("against", "")
    if against not in earlier:
        against = next(iter(earlier), "")
    label, before = earlier.get(against, ("", now))
    record = {
        "generation": step.generation,
        **parts,
        "prompt": now,
        "listing": listing_json(step.skill_listing),
        "report": listing_report(session).removeprefix("skill listing: "),
        "budget": session.skill_style.budget,
        **_size(now),
        "parts": [{"name": name, **_size(text), "text": text} for name, text in parts.items()],
        "schemas": {"tools": len(tools), **_size(json.dumps(tools, ensure_ascii=False))},
        "groups": _groups(workbench, step),
        "earlier": [{"id": key, "label": name} for key, (name, _) in earlier.items()],
        "against": against,
        "against_label": label,
        "diff": diff_lines(before, now),
        "problem": problem,
    }
    return Page(template="prompt.html", title="Prompt", record=record, extra={})


def _size(text: str) -> Mapping[str, int]:
    return {"characters": len(text), "tokens": about_tokens(text)}


def _groups(workbench: Workbench, step: Step) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "description": group.description,
            "is_active": group.name in step.active_groups,
            "is_always_active": group.active or group.name == "basic",
            "missing": list(group.missing),
        }
        for group in workbench.catalog.groups.values()
    ]


def _earlier(workbench: Workbench, now: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the earlier prompts of generations, then those of steps, by the name in the address."""
    for generation, text in tuple(workbench.prompts)[::-1]:
        if text != now:
            yield f"g{generation}", (f"generation {generation}", text)
    for conversation in tuple(workbench.conversations.values()):
        for step in tuple(conversation.steps)[::-1]:
            name = f"session {conversation.number}, step {step.number}"
            yield f"s{conversation.number}.{step.number}", (name, step.prompt)
