from hypothesis import given
from hypothesis import strategies as st

from satchel.mcp_servers.tool_naming import names_for
from satchel.names import SESSION_TOOLS, tool_name_fault


def test_a_free_name_is_kept_and_the_first_server_has_the_first_choice():
    named = names_for([("one", ["a", "b"]), ("two", ["a", "c"])], ["b"])
    assert named == {"one": {"a": "a", "b": "one_b"}, "two": {"a": "two_a", "c": "c"}}


def test_what_providers_reject_gets_another_name_after_all_good_ones():
    assert names_for([("box", ["a.b", "a_b"])], []) == {"box": {"a_b": "a_b", "a.b": "box_a_b"}}
    assert names_for([("box", ["1st"])], []) == {"box": {"1st": "box_1st"}}


def test_the_tools_of_sessions_keep_their_names():
    named = names_for([("box", [*SESSION_TOOLS])], [])
    assert SESSION_TOOLS.isdisjoint(named["box"].values())


def test_no_server_can_take_the_last_name_of_another():
    (last,) = names_for([("b", ["x"])], ["x", "b_x"])["b"].values()
    named = names_for([("a", ["x", "b_x", last]), ("b", ["x"])], [])
    names = [name for own in named.values() for name in own.values()]
    assert len({*names}) == 4


@given(
    st.dictionaries(st.from_regex(r"[a-zA-Z0-9][a-z.-]{0,70}", fullmatch=True), st.sets(st.text())),
    st.sets(st.text()),
)
def test_every_tool_gets_a_name_that_is_good_and_its_own(servers, taken):
    named = names_for(servers.items(), taken)
    names = [name for own in named.values() for name in own.values()]
    assert len({*names}) == len(names) == sum(map(len, servers.values()))
    assert taken.isdisjoint(names)
    assert [name for name in names if tool_name_fault(name)] == []
