"""The checks of adapters: a host that does all of it passes, and each fault fails its check."""

import asyncio
from pathlib import Path
from types import MappingProxyType

import pytest

from satchel import ConflictError
from satchel.adapters.model_request import ModelRequest, session_of
from satchel.provider_messages.message_parts import text_only
from satchel.testing.adapter_checks import CHECKS, Answered, Cannot, run_check
from satchel.tools import Image


class PlainHost:
    """An agent of one page, over what all adapters share. Its faults can be switched on."""

    name, own_tool, provider_tool = "plain", "who_am_i", "web_search"
    cannot = MappingProxyType({})

    def __init__(self, fault: str = "") -> None:
        self.fault, self.says = fault, None

    def make(self, source, model, prompt, tools):
        if self.fault in {"one session for all", "the newest session"}:
            # With the second fault, the two are mixed up only after a while.
            one, seen = session_of(source, "ada"), []
            late, of_run = self.fault == "the newest session", source

            def source(context):
                seen.append(context)
                return one if not late or len(seen) > LATE else session_of(of_run, context)

        if self.fault == "needs own tools" and not tools:
            raise AssertionError("an agent needs a tool")
        return source, prompt, tools

    async def run_asking(self, session, model, *, answer):
        self.asks = 0
        self.says = (lambda: True) if self.fault == "never asks" else (lambda: answer)
        await self.run((session(), "", ()), "ada", model)
        return self.asks

    def user_of(self, context):
        return context

    async def run(self, agent, user, model):
        source, before, own = agent
        session = session_of(source, user)
        request, frozen = ModelRequest(session), self.fault == "frozen"
        kept = []
        while True:
            session = session_of(source, user)
            request = request if frozen else ModelRequest(session)
            kept += [request] if self.fault == "keeps requests" else []
            taken = [] if self.fault == "ignores a clash" else [self.own_tool]
            kept_own = [name for name in own if name != self.fault]
            tools = [*kept_own, *(tool.name for tool in request.tools(taken))]
            if self.fault == "one plan for all":
                request = self.shared = getattr(self, "shared", request)
            prompt = request.prompt(before)
            if self.fault == "own is lost":
                tools, prompt = tools[1:], request.prompt()
            calls = model.answer(tools, prompt)
            if not calls:
                return
            if self.fault == "cannot cancel":
                await asyncio.to_thread(self._wait, request, calls)
            elif self.fault == "one after the other":
                for call in calls:
                    await self._call(request, call, calls, model)
            else:
                await asyncio.gather(*(self._call(request, c, calls, model) for c in calls))

    def _wait(self, request, calls):
        for call in calls:
            request.run_sync(call)

    async def _call(self, request, call, message, model):
        if call.name == self.own_tool and self.fault != "ignores a clash":
            model.answers[call.id] = Answered("the host's own")
            return
        request.message = () if self.fault == "judges alone" else message
        if self.fault == "checks itself" and not all(
            isinstance(value, int | float | bool) for value in call.arguments.values()
        ):
            model.answers[call.id] = Answered("Error: Argument parsing failed.", True)
            return
        approved = False
        if self.says is not None and request.needs_approval(call):
            self.asks += self.fault != "never asks"
            if not (approved := self.says()):
                model.answers[call.id] = Answered("refused", True)
                return
        note = (lambda _: None) if self.fault == "no chunks" else self._noting(model)
        result = await request.run(call, on_chunk=note, approved=approved)
        text, is_error = text_only(result), result.is_error
        media = sum(isinstance(block, Image) for block in result.content)
        if self.fault == "pictures are lost":
            text, media = result.text, 0
        if self.fault == "hides errors":
            text, is_error = ("Error: Function failed." if is_error else text), False
        model.answers[call.id] = Answered(text, is_error, media)

    def _noting(self, model):
        return lambda chunk: model.chunks.append(chunk.text)


@pytest.mark.parametrize("check", CHECKS)
def test_a_host_that_does_all_of_it_passes(check):
    asyncio.run(run_check(PlainHost(), check))


LATE = 8
"""Requests after which a fault shows that a short run does not see."""

FAULTS = {
    "frozen": {"tools_and_prompt_are_of_one_step", "an_edit_is_in_the_next_request"},
    "own is lost": {"the_hosts_own_stays"},
    "ignores a clash": {"the_hosts_own_stays", "a_name_clash_is_reported"},
    "hides errors": {"errors_are_word_for_word", "errors_are_marked"},
    "checks itself": {"bad_arguments_are_explained"},
    "pictures are lost": {"pictures_arrive", "a_result_is_never_empty"},
    "no chunks": {"chunks_reach_the_host"},
    "one after the other": {"calls_of_a_message_run_together"},
    "cannot cancel": {"cancelling_reaches_the_tool"},
    "one session for all": {"two_users_do_not_share_a_session", "trouble_of_one_user_stays_there"},
    "judges alone": {"a_plan_is_judged_once"},
    "keeps requests": {"many_turns_do_not_grow", "two_users_run_for_long"},
    "the newest session": {"two_users_run_for_long"},
    "never asks": {"the_framework_asks_for_approval", "an_approval_survives_a_restart"},
    "needs own tools": {"an_agent_without_own_tools_runs"},
    "web_search": {"a_tool_of_the_provider_stays"},
    "one plan for all": {"parallel_agents_do_not_mix"},
}


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        pytest.param(fault, check, marks=pytest.mark.slow if fault == "keeps requests" else ())
        for fault, checks in FAULTS.items()
        for check in sorted(checks)
    ],
)
def test_each_fault_fails_its_check(fault, check):
    # What grows only within a run shows in longer ones.
    turns = 200 if fault == "keeps requests" else 60
    with pytest.raises((AssertionError, KeyError, ConflictError)):
        asyncio.run(run_check(PlainHost(fault), check, turns=turns))


LAST = "return await loop.run_in_executor(None, func_call)"
TWO = "func_call = functools.partial(ctx.run, func, *args, **kwargs)\n" + LAST


@pytest.mark.parametrize("lines", [LAST, TWO])
def test_what_a_framework_cannot_do_has_lines_of_its_source(lines):
    module, _, number = Cannot("it waits", "asyncio.threads", lines).place().rpartition(":")
    assert module == "asyncio.threads"
    source = Path(asyncio.threads.__file__).read_text(encoding="utf-8").splitlines()
    assert source[int(number) - 1].strip() == lines.split("\n")[0]


@pytest.mark.parametrize(
    ("module", "says"), [("asyncio.threads", "can the framework do it"), ("asyncio.x", "no module")]
)
def test_a_line_that_the_framework_no_longer_has_is_noticed(module, says):
    with pytest.raises(AssertionError, match=says):
        Cannot("it waits", module, "return the_answer_of_old()").place()


def test_a_line_that_was_added_between_is_noticed():
    with pytest.raises(AssertionError, match="can the framework do it"):
        Cannot("it waits", "asyncio.threads", f"loop = events.get_running_loop()\n{LAST}").place()
