"""The checks of adapters: a host that does all of it passes, and each fault fails its check."""

import asyncio
from types import MappingProxyType

import pytest

from satchel.adapters.model_request import ModelRequest, session_of
from satchel.provider_messages.message_parts import text_only
from satchel.testing.adapter_checks import CHECKS, Answered, run_check
from satchel.tools import Image


class PlainHost:
    """An agent of one page, over what all adapters share. Its faults can be switched on."""

    name, own_tool = "plain", "who_am_i"
    cannot = MappingProxyType({})

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def make(self, source, model, prompt):
        if self.fault == "one session for all":
            source = session_of(source, "ada")
        return source, prompt

    def user_of(self, context):
        return context

    async def run(self, agent, user, model):
        source, before = agent
        session = session_of(source, user)
        request, frozen = ModelRequest(session), self.fault == "frozen"
        kept = []
        while True:
            request = request if frozen else ModelRequest(session)
            kept += [request] if self.fault == "keeps requests" else []
            taken = [] if self.fault == "ignores a clash" else [self.own_tool]
            tools = [self.own_tool, *(tool.name for tool in request.tools(taken))]
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
        if self.fault == "judges alone":
            message = ()
        if self.fault == "checks itself" and not all(
            isinstance(value, int | float | bool) for value in call.arguments.values()
        ):
            model.answers[call.id] = Answered("Error: Argument parsing failed.", True)
            return
        note = (lambda _: None) if self.fault == "no chunks" else self._noting(model)
        result = await request.run(call, message, on_chunk=note)
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
    "one session for all": {"two_users_do_not_share_a_session"},
    "judges alone": {"a_plan_is_judged_once"},
    "keeps requests": {"many_turns_do_not_grow"},
}


@pytest.mark.parametrize(
    ("fault", "check"),
    [(fault, check) for fault, checks in FAULTS.items() for check in sorted(checks)],
)
def test_each_fault_fails_its_check(fault, check):
    with pytest.raises((AssertionError, KeyError)):
        asyncio.run(run_check(PlainHost(fault), check))
