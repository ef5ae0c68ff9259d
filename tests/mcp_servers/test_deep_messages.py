import asyncio
import json

import pytest
from described import described, satchel_of
from hypothesis import given
from hypothesis import strategies as st

from satchel.mcp_servers.deep_messages import CUT, cut_deep, is_too_deep, lines_within_depth


def nested(levels, inner="1"):
    return '{"a":' * levels + inner + "}" * levels


JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_a_value_that_is_not_deep_stays_as_it_is(value):
    text = json.dumps(value).encode()
    assert cut_deep(text) == text


@given(st.integers(CUT + 1, 3_000), JSON)
def test_only_what_is_too_deep_is_cut(levels, beside):
    end = '}]"\\'
    text = f"[{nested(levels)}, {json.dumps(beside)}, {json.dumps(end)}]".encode()
    cut, same, last = json.loads(cut_deep(text))
    assert (same, last) == (beside, end)
    depth = 0
    while cut is not None:
        cut, depth = cut["a"], depth + 1
    assert depth == CUT - 1


def test_what_is_no_json_does_no_harm():
    assert cut_deep(b'{"a') == b'{"a'
    assert cut_deep(b"]" * 200 + b"[" * 5) == b"]" * 200 + b"[" * 5


def test_only_too_deep_texts_are_called_so():
    assert is_too_deep(nested(400).encode())
    assert not is_too_deep(nested(100).encode())
    assert not is_too_deep(b"[" + b"x" * 1_000)


def test_events_are_cut_and_arrive_whole_however_they_are_split():
    deep = nested(400)
    text = f"event: message\ndata: {deep}\n\ndata: 1\n\n".encode()

    async def parts():
        for at in range(0, len(text), 7):
            yield text[at : at + 7]

    async def main(longest):
        return b"".join([part async for part in lines_within_depth(parts(), longest)])

    assert asyncio.run(main(10_000)) == text.replace(
        f" {deep}".encode(), cut_deep(f" {deep}".encode())
    )
    assert asyncio.run(main(100)) == text


DEEP = described(
    "deep", inputSchema={"type": "object", "properties": json.loads(nested(200, "{}"))}
)


@pytest.mark.parametrize("how", ["stdio", "http", "sse"])
def test_a_schema_of_200_levels_costs_its_tool_and_not_its_server(how, plain, on_http):
    deep = json.loads(json.dumps(DEEP))
    with satchel_of() as app:
        if how == "stdio":
            server = plain("echo", deep)
        else:
            server = on_http("echo", deep, options=["--sse"] if how == "sse" else []).server
        app.register_mcp_server(server, name="box")
        assert [*app.catalog.tools] == ["echo"]
        (problem,) = [i for i in app.catalog.diagnostics if i.code == "mcp-tool-invalid"]
        assert "'deep' is left out: one of its schemas is nested deeper than 64" in problem.message
