"""The page of the prompt: what a session sends now, its parts, and what changed."""

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request

from satchel.errors import SatchelError
from satchel.prompt.token_estimate import about_tokens
from satchel.web.page_rendering import Page
from satchel.web.prompt_history import PromptSnapshot, prompt_of
from satchel.web.text_diff import diff_lines
from satchel.web.workbench import Workbench


def prompt(workbench: Workbench, request: Request) -> Page:
    """Return the prompt of a new session with some groups, and a diff to an earlier one."""
    session, problem = workbench.app.session(), ""
    for group in request.query_params.getlist("group"):
        try:
            session.activate(group)
        except SatchelError as error:
            problem = error.message
    now = prompt_of(session)
    earlier = dict(_earlier(workbench, now))
    against = request.query_params.get("against", "")
    if against not in earlier:
        against = next(iter(earlier), "")
    label, before = earlier.get(against, ("", now.prompt))
    record = {
        "generation": now.generation,
        "skills": now.skills,
        "notes": now.notes,
        "sections": now.sections,
        "prompt": now.prompt,
        "listing": now.listing,
        "report": now.report.removeprefix("skill listing: "),
        "budget": now.budget,
        "characters": len(now.prompt),
        "tokens": about_tokens(now.prompt),
        "parts": now.sizes(),
        "schemas": {
            "tools": now.tools,
            "characters": len(now.schemas),
            "tokens": about_tokens(now.schemas),
        },
        "groups": _groups(workbench, now),
        "earlier": [{"id": key, "label": name} for key, (name, _) in earlier.items()],
        "against": against,
        "against_label": label,
        "diff": diff_lines(before, now.prompt),
        "problem": problem,
    }
    return Page(template="prompt.html", title="Prompt", record=record, extra={})


def _groups(workbench: Workbench, now: PromptSnapshot) -> list[dict[str, Any]]:
    return [
        {
            "name": group.name,
            "description": group.description,
            "is_active": group.name in now.groups,
            "is_always_active": group.active or group.name == "basic",
            "missing": list(group.missing),
        }
        for group in workbench.catalog.groups.values()
    ]


def _earlier(workbench: Workbench, now: PromptSnapshot) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the earlier prompts of generations, then those of steps, by the name in the address."""
    for snapshot in tuple(workbench.prompts)[::-1]:
        if snapshot.prompt != now.prompt:
            name = f"generation {snapshot.generation}"
            yield f"g{snapshot.generation}", (name, snapshot.prompt)
    for conversation in tuple(workbench.conversations.values()):
        for step in tuple(conversation.steps)[::-1]:
            name = f"session {conversation.number}, step {step.number}"
            yield f"s{conversation.number}.{step.number}", (name, step.prompt)
