"""Replay a recorded conversation, and report what the model would now see and get differently."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from satchel.errors import SatchelError
from satchel.lazy_dataclass import dataclass
from satchel.names import SESSION_TOOLS
from satchel.session.recording import CUT_OFF, describe_step
from satchel.text import unified_lines
from satchel.tools import ToolCall, ToolResult
from satchel.tools.callables import in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from satchel.session.recording import Recording
    from satchel.session.session import Session
    from satchel.session.step import Step

_NOT_REPEATED = frozenset({"run_skill_script"})
"""Tools of the session that run code of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    """One thing that is not as it was recorded."""

    entry: int
    """The place of the entry in the recording, from 0."""
    kind: str
    """`groups`, `prompt`, `tools`, `call` or `result`."""
    message: str
    diff: str = ""
    """The lines that differ, in the unified format, or `""`."""


async def replay(
    recording: Recording, session: Session, *, run: bool = False
) -> tuple[ReplayDifference, ...]:
    """Go through a recording with a new session, and return what is not as it was.

    Before each step, what the host loaded or switched for it is repeated. Then the step is taken
    and compared.
    Calls of the session's own tools, such as `load_skill`, are made again. Any other call is only
    checked: whether its tool is there and takes its arguments. With `run`, these calls are made
    again too, with all their effects, and their results compared.
    """
    step, differences = session.step(), list[ReplayDifference]()
    switched: Mapping[str, list[str]] = {}
    own_answers = ""
    for kind, group in groupby(enumerate(recording), lambda item: item[1]["kind"]):
        if kind == "call":
            # The calls of one message are judged together.
            calls = [_RecordedCall.of(*item) for item in group]
            # A call that was cut off was not run, and is incomplete.
            calls = [item for item in calls if item.result.error_code != CUT_OFF]
            own_answers += "".join(_answer_text(item) for item in calls)
            differences += await _replay_calls(calls, step, run)
            continue
        for place, entry in group:
            if kind == "step":
                now = entry.get("switched", {})
                # In a thread: a skill of a server is fetched.
                await in_thread(partial(_switch_as_host, session, switched, now, own_answers))
                switched, own_answers = now, ""
                step = session.step()
                differences += _step_differences(place, entry, describe_step(step))
    return tuple(differences)


def _switch_as_host(
    session: Session,
    before: Mapping[str, list[str]],
    now: Mapping[str, list[str]],
    own_answers: str,
) -> None:
    """Repeat what the host loaded and switched since the step before.

    What the model's calls switched is left out, because they are made again: `own_answers` has
    the texts of these calls, which name it.
    """
    changes = (
        (session.load_skill, "skills", before, now),
        (session.activate, "on", before, now),
        (session.deactivate, "off", before, now),
        (session.activate_tools, "tools", before, now),
        (session.deactivate_tools, "tools", now, before),
    )
    for change, key, without, having in changes:
        for name in having.get(key, ()):
            if name in without.get(key, ()) or re.search(rf"\b{re.escape(name)}\b", own_answers):
                continue
            with suppress(SatchelError):  # it is gone, which the step shows
                change(name)


def _answer_text(item: _RecordedCall) -> str:
    """Return what a call of the session's own tools asks for and answers, `""` for another."""
    if item.call.name not in SESSION_TOOLS:
        return ""
    return f"{item.call.arguments}\n{item.result.text}\n"


@dataclass(frozen=True, slots=True)
class _RecordedCall:
    place: int
    call: ToolCall
    result: ToolResult

    @classmethod
    def of(cls, place: int, entry: Mapping[str, Any]) -> _RecordedCall:
        return cls(place, ToolCall.from_dict(entry["call"]), ToolResult.from_dict(entry["result"]))


async def _replay_calls(
    calls: list[_RecordedCall], step: Step, run: bool
) -> list[ReplayDifference]:
    repeated = [item for item in calls if run or _is_own(item.call, step)]
    results = await step.execute(item.call for item in repeated)
    differences = [
        difference
        for item, result in zip(repeated, results, strict=True)
        for difference in _result_differences(item, result)
    ]
    for verdict in step.validate(item.call for item in calls).rejected:
        item = calls[verdict.index]
        if item not in repeated and item.result.error_code != verdict.code:
            message = f"the call of {item.call.name!r} would be refused now: {verdict.message}"
            differences.append(ReplayDifference(entry=item.place, kind="call", message=message))
    return sorted(differences, key=lambda difference: difference.entry)


def _is_own(call: ToolCall, step: Step) -> bool:
    names = SESSION_TOOLS - _NOT_REPEATED
    return call.name in names and any(tool.name == call.name for tool in step.own_tools)


def _step_differences(
    place: int, before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[ReplayDifference]:
    if before["groups"] != now["groups"]:
        yield ReplayDifference(
            entry=place,
            kind="groups",
            message=f"active groups were {_listed(before['groups'])}, "
            f"and are {_listed(now['groups'])}",
        )
    if before["prompt"] != now["prompt"]:
        yield ReplayDifference(
            entry=place,
            kind="prompt",
            message="the prompt is different",
            diff=_diff(before["prompt"], now["prompt"]),
        )
    old, new = ({tool["name"]: tool for tool in step["tools"]} for step in (before, now))
    for name in sorted({*old, *new}):
        if name not in new:
            message = f"tool {name!r} is gone"
        elif name not in old:
            message = f"tool {name!r} is new"
        elif old[name] != new[name]:
            message = f"tool {name!r} is described differently"
        else:
            continue
        diff = _diff(_shown(old.get(name)), _shown(new.get(name)))
        yield ReplayDifference(entry=place, kind="tools", message=message, diff=diff)


def _result_differences(item: _RecordedCall, now: ToolResult) -> Iterator[ReplayDifference]:
    before = item.result
    if (before.is_error, before.text) == (now.is_error, now.text):
        return
    was, is_now = ("an error" if result.is_error else "an answer" for result in (before, now))
    change = "answers differently" if was == is_now else f"gave {was}, and gives {is_now}"
    yield ReplayDifference(
        entry=item.place,
        kind="result",
        message=f"the call of {item.call.name!r} {change}",
        diff=_diff(before.text, now.text),
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _shown(tool: Mapping[str, Any] | None) -> str:
    import json

    return "" if tool is None else json.dumps(tool, indent=1, ensure_ascii=False, sort_keys=True)


def _diff(before: str, now: str) -> str:
    return "\n".join(unified_lines(before, now, ("recorded", "now"), context=1))
