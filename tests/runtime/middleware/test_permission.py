import asyncio
from dataclasses import replace

import pytest
from layer_stage import Inside, a_call, a_tool, answer

from satchel.errors import DefinitionError
from satchel.runtime.middleware import authorize


def is_allowed(name, *groups, tool=None, **rules):
    inside = Inside()
    call = a_call(tool or a_tool(name=name), name=name, groups=groups or ("basic",))
    result = asyncio.run(answer(authorize(**rules), inside, call))
    assert len(inside.calls) == (not result.is_error)
    assert result.error_code in (None, "not_allowed")
    return not result.is_error


@pytest.mark.parametrize(
    ("name", "allow", "allowed"),
    [
        ("read_file", ["read_file"], True),
        ("read_file", ["read_*"], True),
        ("read_file", ["tool:read_*"], True),
        ("read_file", ["tool:write_*"], False),
        ("read_file", ["basic"], False),
        ("read_file", ["write_*", "read_????"], True),
        ("read_file", ["read"], False),
        ("Read_file", ["read_*"], False),
        ("read_file", [], False),
        ("geocode", ["group:maps"], True),
        ("geocode", ["group:m*"], True),
        ("geocode", ["group:map"], False),
        ("maps", ["group:other", "geo*"], False),
    ],
)
def test_allowed_is_what_a_pattern_names(name, allow, allowed):
    assert is_allowed(name, "maps", allow=allow) == allowed


def test_everything_is_allowed_that_is_not_denied():
    assert is_allowed("rm")
    assert not is_allowed("rm", deny=["rm"])
    assert not is_allowed("rm", "shell", deny=["group:shell"])


def test_a_tool_of_several_groups_is_met_by_a_pattern_for_any_of_them():
    assert is_allowed("route", "geo", "maps", allow=["group:maps"])
    assert not is_allowed("route", "geo", "maps", allow=["group:web"])
    assert not is_allowed("route", "geo", "maps", deny=["group:maps"])
    assert not is_allowed("route", "geo", "maps", allow=["group:geo"], deny=["group:maps"])


def test_what_is_denied_wins_over_what_is_allowed():
    assert not is_allowed("rm", allow=["rm"], deny=["r*"])
    assert not is_allowed("rm", allow=["group:basic"], deny=["rm"])


def test_a_call_that_was_sent_to_another_tool_is_denied_by_either_and_allowed_by_no_group():
    own = a_tool(name="rm")
    assert is_allowed("acme_rm", "maps", tool=own)
    assert not is_allowed("acme_rm", "maps", tool=own, allow=["group:maps"])
    assert not is_allowed("acme_rm", "maps", tool=own, deny=["group:maps"])
    assert not is_allowed("acme_rm", tool=own, deny=["rm"])
    assert not is_allowed("acme_rm", tool=own, deny=["acme_rm"])
    assert not is_allowed("acme_rm", tool=own, allow=["rm"])


def test_a_name_that_is_no_tool_is_judged_by_that_name():
    inside, unknown = Inside(), replace(a_call(name="rm"), tool=None)
    result = asyncio.run(answer(authorize(deny=["rm"]), inside, unknown))
    assert result.error_code == "not_allowed"


def test_the_model_gets_one_sentence_and_the_inside_never_runs():
    inside = Inside()
    call = a_call(name="rm\n\x1b" + "x" * 100)
    result = asyncio.run(answer(authorize(deny=["*"]), inside, call))
    assert result.call_id == "call-1"
    assert result.text.startswith("rm xxx")
    assert result.text.endswith("… is not allowed here; continue without it, and do not retry")
    assert inside.calls == []


def test_the_rules_do_not_change_with_the_list_that_they_were_given_in():
    deny = ["rm"]
    layer = authorize(deny=deny)
    deny.clear()
    assert asyncio.run(answer(layer, Inside(), a_call(a_tool(name="rm")))).is_error


@pytest.mark.parametrize("rules", [{"allow": "rm"}, {"deny": "rm"}])
def test_a_text_instead_of_a_list_is_refused(rules):
    with pytest.raises(DefinitionError, match=r"write \('rm',\)"):
        authorize(**rules)
