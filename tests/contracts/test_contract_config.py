import sys

import pytest

from satchel.contracts.contract_config import ResolvedConfig, resolve_config
from satchel.contracts.contract_parts import ToolConfigParam
from satchel.errors import ContractError


@pytest.fixture
def settled(make):
    def settle_(*params, config=None, state=None):
        return resolve_config(make(config_params=params), config or {}, state or {})

    return settle_


LIMIT = ToolConfigParam("limit", 3)


@pytest.mark.parametrize(
    ("config", "state", "value"),
    [
        ({}, {}, 3),
        ({}, {"config": {"limit": 4}}, 4),
        ({"configurable": {"limit": 5}}, {"config": {"limit": 4}}, 5),
        ({"limit": 6, "configurable": {"limit": 5}}, {"config": {"limit": 4}}, 6),
        ({"limit": 0}, {"config": {"limit": 4}}, 0),
        ({"limit": None}, {"config": {"limit": 4}}, 4),
        ({"limit": None}, {"config": {"limit": None}}, 3),
        ({"configurable": "nonsense"}, {"config": ["nonsense"]}, 3),
        ({}, {"limit": 7}, 3),
    ],
)
def test_the_call_comes_before_the_state_and_that_before_the_default(settled, config, state, value):
    assert settled(LIMIT, config=config, state=state)["limit"] == value


def test_without_a_default_the_value_is_none_and_is_not_normalised(settled):
    assert settled(ToolConfigParam("limit", normalizer=int)) == {"limit": None}


def test_what_no_contract_names_is_handed_on(settled):
    assert settled(LIMIT, config={"other": 1}) == {"other": 1, "limit": 3}


def test_a_default_is_copied_for_each_call(settled):
    default = {"hosts": []}
    param = ToolConfigParam("where", default)
    settled(param)["where"]["hosts"].append("a")
    assert settled(param) == {"where": {"hosts": []}}
    assert default == {"hosts": []}


def test_the_value_that_was_chosen_is_normalised_also_if_it_is_the_default(settled):
    param = ToolConfigParam("limit", "3", int)
    assert settled(param) == {"limit": 3}
    assert settled(param, config={"limit": "4"}) == {"limit": 4}


def test_a_value_is_normalised_once(make):
    contract = make(config_params=[ToolConfigParam("limit", 1, lambda value: value + 1)])
    once = resolve_config(contract, {"limit": 1}, {})
    assert once == {"limit": 2}
    assert resolve_config(contract, once, {}) is once


def test_another_contract_begins_with_what_the_host_gave(make):
    one, other = (
        make(name=name, config_params=[ToolConfigParam("limit", 1, lambda value: value + 1)])
        for name in ("one", "other")
    )
    again = resolve_config(other, resolve_config(one, {"limit": 1}, {}), {})
    assert again == {"limit": 2}
    assert isinstance(again, ResolvedConfig)
    assert again.contract is other


async def later():
    return 1


@pytest.mark.parametrize(
    ("normalizer", "cause"),
    [
        (int, ValueError),
        (lambda value: sys.exit(), SystemExit),
        (lambda value: later(), TypeError),
        (lambda: 1, TypeError),
    ],
)
def test_a_normalizer_that_raises_names_the_tool_and_the_key_and_never_the_value(
    settled, normalizer, cause
):
    with pytest.raises(ContractError, match=r"^search: .*'limit'") as caught:
        settled(ToolConfigParam("limit", normalizer=normalizer), config={"limit": "secret"})
    assert (caught.value.tool, caught.value.key) == ("search", "limit")
    assert "secret" not in caught.value.message
    assert isinstance(caught.value.__cause__, cause)


def test_the_user_can_still_interrupt_a_normalizer(settled):
    def interrupt(value):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        settled(ToolConfigParam("limit", 1, interrupt))


def test_neither_the_configuration_nor_the_state_is_changed(settled):
    config, state = {"limit": "4"}, {"config": {"limit": "5"}}
    settled(ToolConfigParam("limit", 1, int), config=config, state=state)
    assert (config, state) == ({"limit": "4"}, {"config": {"limit": "5"}})
