from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.prompt.tool_guide import ToolGuideEntry, render_guide
from satchel.text import has_hidden, one_line, visible

SEARCH = ToolGuideEntry(
    name="search",
    description="Find <things>.\nTwice.",
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to\nlook for"},
            "limit": {"type": "integer", "default": 3},
            "kind": {"enum": ["a", "b"], "default": None},
            "free": True,
        },
        "required": ["query"],
    },
    rules=(("brief", "Be brief & clear."),),
)


def test_a_guide_teaches_names_arguments_and_rules():
    assert render_guide([SEARCH]) == (
        "Plan your calls with these tools. Every call must keep all rules of its tool; a call that "
        "breaks a rule is refused, left out or corrected.\n"
        "\n"
        "<tools>\n"
        "<tool>\n"
        "<name>search</name>\n"
        "<description>Find &lt;things&gt;.\nTwice.</description>\n"
        '<argument name="query" type="string, required">what to look for</argument>\n'
        '<argument name="limit" type="integer, optional, default 3"></argument>\n'
        "<argument name=\"kind\" type=\"'a' | 'b', optional\"></argument>\n"
        '<argument name="free" type="any, optional"></argument>\n'
        '<rule id="brief">Be brief &amp; clear.</rule>\n'
        "</tool>\n"
        "</tools>"
    )


def test_a_default_is_readable_in_every_language():
    properties = {"city": {"type": "string", "default": "Zürich"}}
    tool = ToolGuideEntry(name="a", description="B.", parameters={"properties": properties})
    assert 'default &quot;Zürich&quot;"' in render_guide([tool])


def test_no_tools_need_no_guide():
    assert render_guide([]) == ""


def test_a_tool_without_arguments_and_rules_has_its_description():
    guide = render_guide(
        [ToolGuideEntry(name="now", description="Tells the time.", parameters={"type": "object"})]
    )
    assert "<argument" not in guide
    assert "<rule" not in guide


def test_tools_keep_their_order():
    names = ["b", "a", "c"]
    guide = render_guide(
        ToolGuideEntry(name=name, description="Does.", parameters={}) for name in names
    )
    tools = ET.fromstring(guide[guide.index("<tools>") :])
    assert [item.findtext("name") for item in tools] == names


@pytest.mark.parametrize("message", [None, 3, ["a"], {"a": 1}])
def test_a_description_that_is_no_text_harms_nothing(message):
    parameters = {"properties": {"a": {"description": message}}}
    assert str(message) in render_guide(
        [ToolGuideEntry(name="a", description="Does.", parameters=parameters)]
    )


TEXTS = st.text(
    st.characters(exclude_characters="\ufffe\uffff") | st.sampled_from("<>&\"'/\u200b\U000e0041\n")
)


@given(st.tuples(*[TEXTS] * 6))
@example(("", "", "", "\ud800", "", ""))
def test_no_text_of_a_tool_can_pose_as_another_part(texts):
    name, about, argument, message, id_, words = texts
    parameters = {
        "properties": {argument: {"enum": [message], "description": message, "default": message}}
    }
    guide = render_guide(
        [ToolGuideEntry(name=name, description=about, parameters=parameters, rules=((id_, words),))]
    )
    assert not has_hidden(guide)
    (tool,) = ET.fromstring(guide[guide.index("<tools>") :])
    assert [item.tag for item in tool] == ["name", "description", "argument", "rule"]
    assert tool.findtext("name") == one_line(name) or not one_line(name)
    assert (tool.findtext("description") or "") == visible(about)
    assert tool.find("argument").get("name") == one_line(argument)
    assert (tool.findtext("rule") or "") == one_line(words)
    assert tool.find("rule").get("id") == one_line(id_)
