import copy
import pickle

import pytest

from satchel.tools.empty_mapping import NOTHING


def test_it_is_an_empty_mapping():
    assert len(NOTHING) == 0
    assert [*NOTHING] == []
    assert NOTHING == {}
    assert "key" not in NOTHING
    assert NOTHING.get("key", 3) == 3
    assert repr(NOTHING) == "{}"


def test_it_has_no_values():
    with pytest.raises(KeyError, match="key"):
        NOTHING["key"]


def test_no_one_can_put_something_in():
    with pytest.raises(TypeError):
        NOTHING["key"] = 1


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_its_copies_are_equal_and_have_the_same_hash(again):
    assert again(NOTHING) == NOTHING
    assert hash(again(NOTHING)) == hash(NOTHING)
