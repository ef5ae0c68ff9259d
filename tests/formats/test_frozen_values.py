import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats.frozen_values import frozen, to_plain
from satchel.formats.skill_manifest import SkillManifest, read_skill

VALUES = st.recursive(
    st.none() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_was_frozen_thaws_to_what_it_was(value):
    ice = frozen(value)
    assert to_plain(ice) == value
    assert frozen(ice) == ice == frozen(value)
    assert json.loads(json.dumps(to_plain(ice))) == value


def test_nothing_frozen_can_be_changed_at_any_depth():
    source = {"a": {"b": [{"c": "d"}]}}
    ice = frozen(source)
    for mapping in (ice, ice["a"], ice["a"]["b"][0]):
        with pytest.raises(TypeError, match="item assignment"):
            mapping["x"] = "y"
    with pytest.raises(TypeError, match="item assignment"):
        ice["a"]["b"][0] = "y"
    source["a"]["b"][0]["c"] = "changed"
    assert ice["a"]["b"][0]["c"] == "d"
    assert repr(ice["a"]["b"]) == "(mappingproxy({'c': 'd'}),)"


def test_a_manifest_is_frozen_however_it_is_made(limits):
    data = b"---\nname: x\ndescription: d\nmetadata: {a: {b: [c]}}\nodd: {e: [f]}\n---\nbody\n"
    skill = read_skill(data, "x", "SKILL.md", limits).value
    by_hand = SkillManifest(
        name="x",
        description="d",
        license=None,
        compatibility=None,
        allowed_tools=(),
        metadata={"a": {"b": ["c"]}},
        fields=to_plain(skill.fields),
        body="body\n",
    )
    assert skill == by_hand == replace(by_hand, license=None)
    for manifest in (skill, by_hand):
        assert manifest.metadata["a"]["b"] == manifest.fields["metadata"]["a"]["b"] == ("c",)
        for mapping in (manifest.metadata, manifest.metadata["a"], manifest.fields["odd"]):
            with pytest.raises(TypeError, match="item assignment"):
                mapping["x"] = "y"
    assert "mappingproxy({'a': mappingproxy({'b': ('c',)})})" in repr(skill)
