"""The page of a session: a conversation by hand, with its steps, plans and saved state."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from satchel.contracts.plan import Validation
from satchel.errors import DefinitionError, NotFoundError
from satchel.session.conversation_replay import replay
from satchel.session.recording import Recording
from satchel.tools import ToolCall
from satchel.web.call_records import result_record
from satchel.web.conversation import Conversation, StepRecord
from satchel.web.page_rendering import Page, diff_lines, lines_of_diff
from satchel.web.page_routes import object_of, text_of
from satchel.web.workbench import Workbench

_MOST_SKILLS = 500
"""How many skills are suggested; any other can be typed."""


# ---- pages --------------------------------------------------------------------------------------


def session(workbench: Workbench, request: Request) -> Page:
    """Return a conversation: its groups, skills, steps and state."""
    conversation = workbench.conversation(request.path_params["number"])
    held = conversation.session
    active, loaded = held.active_groups, held.loaded_skills
    served = workbench.catalog.skills
    record = {
        "number": conversation.number,
        "groups": [
            {
                "name": group.name,
                "description": group.description,
                "is_active": group.name in active,
                "is_fixed": group.name == "basic" or bool(group.missing),
                "missing": list(group.missing),
            }
            for group in workbench.catalog.groups.values()
        ],
        "loaded_skills": list(loaded),
        "steps": [item.as_dict() for item in tuple(conversation.steps)[::-1]],
        "pending": held.changes().text if conversation.steps else "",
        "state": _state_of(conversation),
        "tools": [entry.name for entry in conversation.newest_view()],
        "entries": len(conversation.recording),
    }
    extra = {
        "others": sorted(workbench.conversations),
        "skills": [name for name in list(served)[:_MOST_SKILLS] if name not in loaded],
        "first_call": [{"name": next(iter(record["tools"]), "load_skill"), "arguments": {}}],
    }
    title = f"Session {conversation.number}"
    return Page(template="session.html", title=title, record=record, extra=extra)


def step(workbench: Workbench, request: Request) -> Page:
    """Return one step in full, with what differs from the step before."""
    conversation = workbench.conversation(request.path_params["number"])
    number = request.path_params["step"]
    now, before = conversation.step(number), conversation.step(number - 1)
    if now is None:
        raise NotFoundError("step", str(number), ())
    record = {
        **now.as_dict(),
        "session": conversation.number,
        "prompt": now.prompt,
        "schemas": list(now.tools),
        "prompt_diff": diff_lines(before.prompt, now.prompt) if before else [],
        "tools_added": _difference(now, before),
        "tools_removed": _difference(before, now),
        "has_next": conversation.step(number + 1) is not None,
        "has_last": before is not None,
    }
    return Page(template="step.html", title=f"Step {number}", record=record, extra={})


def _difference(one: StepRecord | None, other: StepRecord | None) -> list[str]:
    if one is None or other is None:
        return []
    names = {tool["name"] for tool in other.tools}
    return [tool["name"] for tool in one.tools if tool["name"] not in names]


def _state_of(conversation: Conversation) -> Any:
    try:
        return conversation.session.state_dict()
    except DefinitionError as problem:
        return {"error": problem.message}


def recording(workbench: Workbench, request: Request) -> Response:
    """Return the recording of a conversation as a file."""
    number = request.path_params["number"]
    try:
        text = workbench.conversation(number).recording.dumps()
    except NotFoundError as problem:
        return Response(problem.message, 404, media_type="text/plain")
    headers = {"content-disposition": f'attachment; filename="session-{number}.jsonl"'}
    data = text.encode("utf-8", "surrogatepass")
    return Response(data, headers=headers, media_type="application/x-ndjson")


# ---- actions ------------------------------------------------------------------------------------


def _of(workbench: Workbench, fields: Mapping[str, Any]) -> Conversation:
    return workbench.conversation(fields["number"])


async def _done(workbench: Workbench, work: Callable[[], Any]) -> Any:
    """Do what may block in a thread, and notify the pages."""
    answer = await asyncio.to_thread(work)
    workbench.wake()
    return answer


async def new_session(workbench: Workbench, _fields: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a conversation."""
    return {"number": workbench.new_conversation().number}


async def switch_group(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Activate or deactivate a group."""
    held, group = _of(workbench, fields).session, text_of(fields, "group")
    switch = held.activate if fields.get("on") is True else held.deactivate
    await _done(workbench, lambda: switch(group))
    return {"groups": list(held.active_groups)}


async def load_skill(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Load a skill, as for a slash command, and return what the model reads."""
    conversation, name = _of(workbench, fields), text_of(fields, "skill").strip()
    arguments = text_of(fields, "arguments") or None
    skill = await _done(workbench, lambda: conversation.load_skill(name, arguments))
    return {"name": skill.name, "text": skill.text}


async def take_step(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Take a step, as for a model request."""
    conversation = _of(workbench, fields)
    await _done(workbench, conversation.take_step)
    return conversation.steps[-1].as_dict()


async def new_turn(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Begin the next turn of the user."""
    await _done(workbench, _of(workbench, fields).session.new_turn)
    return {}


async def check_plan(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Say what tools and contracts make of the calls of one message; nothing is run."""
    conversation, calls = _of(workbench, fields), _calls(fields)
    validation = await _done(workbench, lambda: conversation.newest_step.validate(calls))
    return _verdicts(validation)


async def run_plan(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Run the calls of one message, and return their results in order.

    Calls that the approval middleware asks about run only if they are `approved`.
    """
    conversation, calls = _of(workbench, fields), _calls(fields)
    ready = [call if call.id else call.changed(id=workbench.calls.new_id()) for call in calls]
    verdicts = _verdicts(conversation.newest_step.validate(ready))
    plan = conversation.newest_step.plan(ready)
    asked = [at for at, _ in enumerate(ready) if plan.needs_approval(at)]
    if asked and fields.get("approved") is not True:
        return {**verdicts, "needs_approval": [ready[at].name for at in asked]}
    ready = [call.changed(approved=at in asked) for at, call in enumerate(ready)]
    results = await conversation.run(ready)
    workbench.wake()
    shown = [
        result_record(result, workbench.calls.add(workbench.calls.new_id(), result.content))
        for result in results
    ]
    return {**verdicts, "results": shown}


async def restore_state(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Restore a saved state in place of the current one."""
    held, state = _of(workbench, fields).session, object_of(fields, "state")
    diagnostics = await _done(workbench, lambda: held.load_state_dict(state))
    return {"diagnostics": [item.as_dict() for item in diagnostics]}


async def replay_recording(workbench: Workbench, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Replay a recording in a new session, and return what is not as it was."""
    recorded = Recording.loads(text_of(fields, "recording"))
    differences = await replay(recorded, workbench.app.session(), run=fields.get("calls") is True)
    return {
        "entries": len(recorded),
        "differences": [{**asdict(item), "diff": lines_of_diff(item.diff)} for item in differences],
    }


def _calls(fields: Mapping[str, Any]) -> list[ToolCall]:
    calls = fields.get("calls")
    if not isinstance(calls, list) or not calls:
        raise DefinitionError(
            "a plan is a list of calls", fix='write [{"name": "...", "arguments": {...}}]'
        )
    return [ToolCall.from_dict(call if isinstance(call, dict) else {}) for call in calls]


def _verdicts(validation: Validation) -> dict[str, Any]:
    """Return the verdicts on the calls that are corrected, pruned or rejected."""
    kinds = {
        "corrected": validation.corrected,
        "pruned": validation.pruned,
        "rejected": validation.rejected,
    }
    verdicts = [
        {
            "kind": kind,
            "index": verdict.index,
            "name": verdict.sent.name,
            "sent": verdict.sent.arguments,
            "now": verdict.call.arguments if verdict.call else None,
            "rules": list(verdict.ids),
            "message": verdict.message,
            "problem": verdict.problem,
        }
        for kind, verdicts in kinds.items()
        for verdict in verdicts
    ]
    return {"verdicts": sorted(verdicts, key=lambda verdict: verdict["index"])}
