"""Questions to the process of a plugin, which is only played here."""

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from satchel.diagnostics import Where, make_diagnostic
from satchel.errors import ToolError
from satchel.tools import Text, ToolResult
from satchel.workers import worker_processes
from satchel.workers.worker_processes import WorkerHandle


class Member:
    """Answers what it is told to answer."""

    def __init__(self, answer=None, trouble=None):
        self.answer = Future()
        if answer is not None:
            self.answer.set_result(answer)
        self.snapshot = SimpleNamespace(outage=trouble)
        self.asked = []

    def call(self, tool, arguments, on_progress):
        self.asked.append((tool.name, arguments))
        return self.answer


def test_an_answer_comes_as_it_was_said():
    member = Member(ToolResult(structured={"answer": [1, 2]}))
    assert WorkerHandle(member, {}).ask("satchel:complete", key="limit") == [1, 2]
    assert member.asked == [("satchel:complete", {"key": "limit"})]


def test_a_process_that_refuses_is_quoted():
    with pytest.raises(ToolError, match="no such offer"):
        WorkerHandle(Member(ToolResult(content=(Text("no such offer"),), is_error=True)), {}).ask(
            "satchel:complete"
        )


def test_a_process_that_does_not_run_is_not_asked():
    member = Member(trouble=make_diagnostic("plugin-worker-down", Where("x"), "down"))
    with pytest.raises(ToolError, match="is not running"):
        WorkerHandle(member, {}).ask("satchel:complete")
    assert member.asked == []


def test_a_process_that_is_silent_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(worker_processes, "_ASK_TIMEOUT", 0.01)
    member = Member()
    with pytest.raises(ToolError, match=r"did not answer within 0\.01 s"):
        WorkerHandle(member, {}).ask("satchel:complete")
    assert member.answer.cancelled()


def test_why_it_does_not_run_is_reported_without_the_values_it_was_given():
    member = Member(
        trouble=make_diagnostic("plugin-worker-down", Where("x"), "key s3cr3t-canary is bad")
    )
    trouble = WorkerHandle(member, {"key": "s3cr3t-canary"}).outage
    assert trouble.code == "plugin-worker-down"
    assert "s3cr3t-canary" not in trouble.message
