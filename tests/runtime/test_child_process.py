"""Options of a run; how it ends is tested with the built-in tools."""

import asyncio
import os

import pytest

from satchel.errors import ToolError
from satchel.runtime.child_process import STREAM_LIMIT, run_program


def ran(*arguments, **options):
    return asyncio.run(run_program(arguments, os.getcwd(), 60, **options))


def test_without_an_environment_it_gets_what_is_harmless_of_the_host_s(monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", "hush-hush")
    monkeypatch.setenv("LC_TIME", "C")
    lines = ran("/usr/bin/env")["stdout"].splitlines()
    assert {f"PATH={os.environ['PATH']}", "LC_TIME=C"} <= set(lines)
    assert not [line for line in lines if "hush-hush" in line]


@pytest.mark.parametrize("limit", [0, 10, STREAM_LIMIT + 10])
def test_the_limit_says_how_much_of_the_output_is_kept(limit):
    result = ran("/bin/sh", "-c", f"head -c {limit + 7} /dev/zero | tr '\\0' x", limit=limit)
    assert result["stdout"] == f"{'x' * limit}\n[cut: 7 more bytes]"


def test_who_cannot_be_started_gets_advice_only_where_there_is_some():
    with pytest.raises(ToolError, match=r"^It could not be started \(No such file or directory\)"):
        ran("/find_no_tool/at/all")
    with pytest.raises(ToolError, match="try a shorter one"):
        ran("/bin/echo", "x" * 3_000_000)
