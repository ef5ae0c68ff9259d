import asyncio
import sys

import pytest
from pydantic import BaseModel, Field

from satchel.contracts.contract_binding import (
    ResolvedConfig,
    bind_contract,
    injected_arguments,
    resolve_config,
)
from satchel.contracts.contract_parts import ToolConfigParam, ToolStateRead
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import ContractError, DefinitionError
from satchel.tools import ArgumentError, FunctionTool, Tool, ToolCall, ToolContext, tool


@pytest.fixture
def settled(make):
    def settle_(*params, config=None, state=None):
        return resolve_config(make(config_params=params), config or {}, state or {})

    return settle_


PLAIN_LIMIT = ToolConfigParam("limit", 3)


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
    assert settled(PLAIN_LIMIT, config=config, state=state)["limit"] == value


def test_without_a_default_the_value_is_none_and_is_not_normalised(settled):
    assert settled(ToolConfigParam("limit", normalizer=int)) == {"limit": None}


def test_what_no_contract_names_is_handed_on(settled):
    assert settled(PLAIN_LIMIT, config={"other": 1}) == {"other": 1, "limit": 3}


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


LIMIT, SEEN = ToolConfigParam("limit", 3, int), ToolStateRead("seen")


def contract(schema=None, description="Search, word for word.", config=(LIMIT,), reads=(SEEN,)):
    schema = {"query": "str"} if schema is None else schema
    return ToolContract(
        name="search",
        schema=schema,
        description=description,
        config_params=config,
        state_reads=reads,
    )


def run(created, arguments, **context):
    call = ToolCall(
        name=created.name,
        arguments=created.check(arguments),
        tool=created,
        context=ToolContext(**context),
    )
    return asyncio.run(created.runner.run(call))


def search(query: str, limit: int, seen: list):
    """Say something else."""
    return query, limit, seen


# ---- what the model is shown ------------------------------------------------------------------


def test_the_contract_describes_the_tool_and_the_tool_stays_as_it_was():
    tool = FunctionTool(search)
    bound = bind_contract(tool, contract())
    assert bound.description == "Search, word for word."
    assert bound.parameters == contract().parameters
    assert list(tool.parameters["properties"]) == ["query", "limit", "seen"]
    assert tool.description == "Say something else."


def test_the_model_cannot_set_what_the_host_sets():
    for schema in ({"query": "str"}, {"properties": {"query": {}}, "required": ["query"]}):
        bound = bind_contract(FunctionTool(search), contract(schema))
        for sent in ({"query": "a", "limit": 1}, {"query": "a", "seen": []}):
            with pytest.raises(ArgumentError, match="is set by the host"):
                bound.check(sent)


def test_nor_where_the_function_takes_anything():
    bound = bind_contract(
        FunctionTool(lambda **others: others, name="search"), contract({"type": "object"})
    )
    assert bound.check({"other": 1}) == {"other": 1}
    with pytest.raises(ArgumentError, match="is set by the host"):
        bound.check({"seen": 1})


def test_a_pydantic_model_describes_what_the_function_takes():
    class Place(BaseModel):
        city: str

    class Query(BaseModel):
        query: str
        place: Place
        since: int = Field(default=0, alias="from")

    def find(query, place, **others):
        return query, place, others

    bound = bind_contract(FunctionTool(find), contract(Query, config=(), reads=()))
    sent = {"query": "a", "place": {"city": "Oslo"}, "from": 1}
    assert run(bound, sent) == ("a", {"city": "Oslo"}, {"from": 1})
    with pytest.raises(ArgumentError, match=r"place\.city: is required"):
        bound.check({"query": "a", "place": {}})


# ---- what the tool is handed ------------------------------------------------------------------


def test_the_tool_is_handed_configuration_and_state_of_its_call():
    bound = bind_contract(FunctionTool(search), contract())
    assert run(bound, {"query": "a"}, state={"seen": [1]}) == ("a", 3, [1])
    assert run(bound, {"query": "a"}, state={"seen": []}, config={"limit": "4"}) == ("a", 4, [])
    state = {"seen": [], "config": {"limit": "5"}}
    assert run(bound, {"query": "a"}, state=state) == ("a", 5, [])


def test_it_is_handed_the_value_of_the_state_itself():
    seen = []
    bound = bind_contract(FunctionTool(search), contract())
    assert run(bound, {"query": "a"}, state={"seen": seen})[2] is seen


def test_a_function_takes_the_values_however_it_takes_arguments():
    def by_place(limit, seen, /, query):
        return query, limit, seen

    def by_name(*, query, limit, seen):
        return query, limit, seen

    def further(query, **others):
        return query, others["limit"], others["seen"]

    async def later(query, seen, limit=9):
        return query, limit, seen

    class Searcher:
        def find(self, query, limit, seen):
            return query, limit, seen

        def __call__(self, query, limit, seen):
            return query, limit, seen

    for fn in (by_place, by_name, further, later, Searcher().find, Searcher()):
        bound = bind_contract(FunctionTool(fn, name="search"), contract())
        assert run(bound, {"query": "a"}, state={"seen": [1]}) == ("a", 3, [1])


def test_a_missing_read_names_the_key():
    bound = bind_contract(FunctionTool(search), contract())
    with pytest.raises(ContractError) as caught:
        run(bound, {"query": "a"})
    assert (caught.value.tool, caught.value.key) == ("search", "seen")
    assert caught.value.message == (
        "search: it needs 'seen' from the session's state, which is not set yet"
    )


def test_a_read_that_is_there_is_no_missing_one_even_if_its_value_is_none():
    bound = bind_contract(FunctionTool(search), contract())
    assert run(bound, {"query": "a"}, state={"seen": None}) == ("a", 3, None)


def test_a_missing_read_with_a_default_is_a_copy_of_that():
    default = []
    bound = bind_contract(FunctionTool(search), contract(reads=(ToolStateRead("seen", default),)))
    got = run(bound, {"query": "a"})[2]
    assert got == []
    assert got is not default


def test_a_normalizer_that_raises_names_the_tool_and_the_key():
    bound = bind_contract(FunctionTool(search), contract())
    with pytest.raises(
        ContractError, match=r"^search: the configured value of 'limit' is invalid$"
    ):
        run(bound, {"query": "a"}, config={"limit": "x"}, state={"seen": []})


def test_a_value_is_not_normalised_again_when_the_tool_is_handed_it():
    created = contract(config=(ToolConfigParam("limit", 1, lambda value: value + 1),))
    bound = bind_contract(FunctionTool(search), created)
    config = resolve_config(created, {"limit": 1}, {})
    assert run(bound, {"query": "a"}, config=config, state={"seen": []})[1] == 2


def test_what_is_handed_is_reported_by_key():
    context = ToolContext(config={"limit": "4", "other": 1}, state={"seen": [1], "more": 2})
    assert injected_arguments(contract(), context) == {"limit": 4, "seen": [1]}


def test_a_tool_that_takes_the_context_need_not_take_each_value():
    def find(query, context: ToolContext):
        return query, context.state["seen"]

    bound = bind_contract(FunctionTool(find, name="search"), contract())
    assert run(bound, {"query": "a"}, state={"seen": [1]}) == ("a", [1])
    with pytest.raises(ContractError, match="needs 'seen'"):
        run(bound, {"query": "a"})


# ---- what does not fit ------------------------------------------------------------------------


def test_a_value_that_nothing_takes_is_refused():
    def find(query, seen): ...

    with pytest.raises(DefinitionError, match="the function does not take 'limit'") as caught:
        bind_contract(FunctionTool(find), contract())
    assert "ToolContext" in caught.value.fix


def test_so_it_is_of_a_tool_that_was_bound_before():
    bound = bind_contract(FunctionTool(search), contract())
    with pytest.raises(DefinitionError, match="the function does not take 'gone'"):
        bind_contract(bound, contract(reads=(SEEN, ToolStateRead("gone"))))


def test_a_tool_can_be_bound_again():
    bound = bind_contract(FunctionTool(search), contract())
    again = bind_contract(bound, contract({"query": "str", "seen": "list[int]"}, "Anew.", reads=()))
    assert again.description == "Anew."
    assert run(again, {"query": "a", "seen": [2]}, state={"seen": [1]}) == ("a", 3, [2])


def test_an_argument_that_the_function_does_not_take_is_refused():
    with pytest.raises(DefinitionError, match="has 'page', which the function does not take"):
        bind_contract(FunctionTool(search), contract({"query": "str", "page": "int"}))


def test_a_preset_takes_an_argument_out_of_the_schema_with_its_default():
    preset = FunctionTool(search, presets={"query": "a"})
    bound = bind_contract(preset, contract({"query": "str = 'b'"}))
    assert bound.parameters["properties"] == {}
    assert run(bound, {}, state={"seen": [1]}) == ("a", 3, [1])


def test_the_defaults_of_the_schema_are_what_the_function_gets():
    bound = bind_contract(FunctionTool(search), contract({"query": "str = 'b'"}))
    assert run(bound, {}, state={"seen": [1]}) == ("b", 3, [1])
    assert run(bound, {"query": None}, state={"seen": [1]}) == ("b", 3, [1])
    assert run(bound, {"query": "c"}, state={"seen": [1]}) == ("c", 3, [1])


@pytest.mark.parametrize("schema", [{}, {"query": "Optional[str]"}, {"type": "object"}])
def test_what_the_function_needs_must_be_required_of_the_model(schema):
    with pytest.raises(DefinitionError, match="the function needs 'query'") as caught:
        bind_contract(FunctionTool(search), contract(schema))
    assert "default" in caught.value.fix


# ---- tools of classes -------------------------------------------------------------------------


class Search(Tool):
    name = "search"
    description = "Say something else."
    group = "web"
    timeout = 5.0
    idempotent = True
    annotations = {"readOnlyHint": True}  # noqa: RUF012 - as people write it
    examples = ({"query": "a"},)
    output = {"type": "object"}  # noqa: RUF012

    def __init__(self, host):
        self.host = host

    async def execute(self, query: str, limit: int, seen: list):
        return self.host, query, limit, seen


def test_a_tool_of_a_class_keeps_what_it_says_beside_its_description():
    bound = bind_contract(Search("here"), contract())
    assert run(bound, {"query": "a"}, state={"seen": [1]}) == ("here", "a", 3, [1])
    assert (bound.name, bound.description) == ("search", "Search, word for word.")
    assert (bound.group, bound.timeout, bound.output) == ("web", 5.0, {"type": "object"})
    assert bound.annotations == {"readOnlyHint": True, "idempotentHint": True}
    assert bound.examples == ({"query": "a"},)


def test_a_class_may_leave_out_what_it_returns():
    class Plain(Search):
        output = None

        async def execute(self, query: str, limit: int, seen: list) -> dict[str, int]:
            return {}

    assert bind_contract(Plain("here"), contract()).output["type"] == "object"


def test_a_tool_whose_answer_hangs_on_the_state_is_not_answered_from_memory():
    @tool(idempotent=True)
    def search(query: str, seen: list = ()): ...

    assert not bind_contract(FunctionTool(search), contract(config=())).idempotent
    assert bind_contract(FunctionTool(search), contract(config=(), reads=())).idempotent


def test_a_class_that_runs_itself_is_refused():
    class Runs(Search):
        def bind(self, call): ...

    class Checks(Search):
        def check(self, arguments): ...

    for kind in (Runs, Checks):
        with pytest.raises(DefinitionError, match="overrides bind"):
            bind_contract(kind("here"), contract())
