from dataclasses import FrozenInstanceError, replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel

from satchel.contracts.contract_parts import (
    ToolConfigParam,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.tools import ArgumentError, ToolCall


def kept(call, state, config):
    return True


RULE = ToolInvariant(id="brief", rule="Be brief.", check=kept)


class Filter(BaseModel):
    field: str


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="what to look for")
    since: int = Field(default=0, alias="from")
    filters: list[Filter] = []


class Folder(BaseModel):
    name: str
    folders: list["Folder"] = []


def test_the_name_and_the_description_are_kept_word_for_word():
    words = " Find <things>.\n\n  Twice,  if need be. "
    contract = ToolContract(name="search", schema={"query": "str"}, description=words)
    assert (contract.name, contract.description) == ("search", words)


@pytest.mark.parametrize("name", ["", "has blank", "a" * 200, None, 3, b"search"])
def test_a_name_that_providers_refuse_is_refused(name):
    with pytest.raises(DefinitionError, match="name"):
        ToolContract(name=name, schema={}, description="Search.")


@pytest.mark.parametrize("description", ["", " \n", None, 3])
def test_a_description_is_text(description):
    with pytest.raises(
        DefinitionError, match="contract 'search': the description of the contract is"
    ):
        ToolContract(name="search", schema={}, description=description)


def test_it_is_frozen():
    contract = ToolContract(name="search", schema={}, description="Search.")
    with pytest.raises(FrozenInstanceError):
        contract.name = "other"


def test_it_equals_one_of_the_same_parts_and_has_its_hash():
    one, other = (
        ToolContract(name="search", schema={"q": "str"}, description="Search.", invariants=[RULE])
        for _ in "ab"
    )
    assert one == other
    assert hash(one) == hash(other)
    assert one != ToolContract(
        name="search", schema={"q": "int"}, description="Search.", invariants=[RULE]
    )


def test_a_copy_with_another_part_is_checked_as_well():
    contract = ToolContract(name="search", schema={"q": "str"}, description="Search.")
    assert replace(contract, schema={"n": "int"}).parameters["properties"] == {
        "n": {"type": "integer"}
    }
    with pytest.raises(DefinitionError):
        replace(contract, description="")


# ---- the schema -------------------------------------------------------------------------------


def test_the_short_form_becomes_json_schema():
    contract = ToolContract(name="search", schema={"query": "str - what"}, description="Search.")
    assert contract.schema == {"query": "str - what"}
    assert contract.parameters["properties"]["query"] == {"type": "string", "description": "what"}


def test_json_schema_is_taken_as_it_is_and_copied():
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    contract = ToolContract(name="search", schema=schema, description="Search.")
    assert contract.parameters == schema
    schema["properties"]["query"]["type"] = "integer"
    assert contract.parameters["properties"]["query"]["type"] == "string"


def test_a_schema_without_a_type_is_of_an_object():
    schema = {"properties": {"anything": True, "nothing": False}}
    assert ToolContract(name="search", schema=schema, description="Search.").parameters == {
        **schema,
        "type": "object",
    }


def test_a_frozen_schema_with_tuples_becomes_plain_json():
    frozen = MappingProxyType(
        {"properties": MappingProxyType({"q": {"enum": ("a", "b")}}), "required": ("q",)}
    )
    assert ToolContract(name="search", schema=frozen, description="Search.").parameters == {
        "properties": {"q": {"enum": ["a", "b"]}},
        "required": ["q"],
        "type": "object",
    }


def test_a_pydantic_model_gives_its_schema_by_alias_with_what_it_nests():
    contract = ToolContract(name="search", schema=Query, description="Search.")
    assert list(contract.parameters["properties"]) == ["text", "from", "filters"]
    assert contract.parameters["required"] == ["text"]
    assert contract.parameters["additionalProperties"] is False
    contract.validator.check("search", {"text": "a", "from": 1, "filters": [{"field": "b"}]})
    for sent in ({}, {"text": "a", "since": 1}, {"text": "a", "filters": [{}]}):
        with pytest.raises(ArgumentError):
            contract.validator.check("search", sent)


@pytest.mark.parametrize(
    "schema",
    [
        Folder,
        {"$ref": "#/$defs/Folder", "$defs": Folder.model_json_schema()["$defs"]},
    ],
)
def test_a_schema_that_holds_itself_has_its_properties_at_its_top(schema):
    contract = ToolContract(name="search", schema=schema, description="Search.")
    assert list(contract.parameters["properties"]) == ["name", "folders"]
    assert contract.parameters["required"] == ["name"]
    contract.validator.check("search", {"name": "a", "folders": [{"name": "b"}]})
    with pytest.raises(ArgumentError):
        contract.validator.check("search", {"name": "a", "folders": [{}]})
    with pytest.raises(DefinitionError, match="'folders' is also an argument"):
        ToolContract(
            name="search",
            schema=schema,
            description="Search.",
            state_reads=[ToolStateRead("folders")],
        )


def test_a_reference_to_what_is_not_there_is_refused():
    with pytest.raises(DefinitionError):
        ToolContract(
            name="search", schema={"$ref": "#/$defs/Gone", "$defs": {}}, description="Search."
        )


_CYCLE: dict = {}
_CYCLE["properties"] = _CYCLE


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "str",
        ["str"],
        object,
        RootModel[list[int]],
        {1: "str"},
        {"query": "nonsense - x"},
        {"type": "array", "items": {}},
        {"query": {"type": "string"}},
        {"query": "str", "ids": None},
        {"$ref": "#/$defs/Ids", "$defs": {"Ids": {"type": "array"}}},
        {"type": ["object", "null"]},
        {"properties": None},
        {"properties": {"q": {"type": "strin"}}},
        {"properties": {"q": {"default": object()}}},
        {"properties": {"q": {"default": float("inf")}}},
        {"properties": {"q": {"$ref": "https://example.org/schema"}}},
        {"properties": {"q": {"$ref": "#/$defs/Gone"}}},
        {"properties": {}, "required": None},
        _CYCLE,
    ],
)
def test_what_is_no_schema_of_an_object_is_refused(schema):
    with pytest.raises(DefinitionError, match="contract 'search'"):
        ToolContract(name="search", schema=schema, description="Search.")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "$ref", "$defs", "enum", "a"])
            | st.integers(0, 2),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_value_is_a_schema_or_a_definition_error(value):
    try:
        contract = ToolContract(name="search", schema=value, description="Search.")
    except DefinitionError:
        return
    assert contract.parameters["type"] == "object"
    assert contract.validator.faults({"unlike": object()}) is not None


# ---- its parts --------------------------------------------------------------------------------


def test_parts_may_come_as_lists_as_generators_or_alone():
    for given_ in ([RULE], (RULE,), {RULE}, iter([RULE]), RULE):
        assert ToolContract(
            name="search", schema={}, description="Search.", invariants=given_
        ).invariants == (RULE,)


@pytest.mark.parametrize("part", ["invariants", "config_params", "state_reads", "state_effects"])
@pytest.mark.parametrize("given_", [None, "text", 3, ["text"], [object()], {"key": "value"}])
def test_parts_of_another_kind_are_refused(part, given_):
    with pytest.raises(DefinitionError, match=" is not a Tool"):
        ToolContract(name="search", schema={}, description="Search.", **{part: given_})


@pytest.mark.parametrize(
    ("part", "item", "message"),
    [
        ("invariants", RULE, "two invariants have the id 'brief'"),
        ("config_params", ToolConfigParam("limit"), "two config params have the key 'limit'"),
        ("state_reads", ToolStateRead("seen"), "two state reads have the key 'seen'"),
        ("state_effects", ToolStateEffect(key="seen"), "two state effects have the key 'seen'"),
    ],
)
def test_two_parts_of_one_name_are_refused(part, item, message):
    with pytest.raises(DefinitionError, match=message):
        ToolContract(name="search", schema={}, description="Search.", **{part: [item, item]})


def test_unhashable_defaults_do_not_keep_a_contract_from_being_hashed():
    contract = ToolContract(
        name="search",
        schema={},
        description="Search.",
        config_params=[ToolConfigParam("limit", [])],
        state_reads=[ToolStateRead("seen", {})],
        state_effects=[ToolStateEffect(key="found", type_hint={"a": int})],
    )
    assert hash(contract) == hash(replace(contract))


# ---- what only the host sets ------------------------------------------------------------------


def test_what_the_host_supplies_is_the_configuration_and_what_is_read_of_the_state():
    contract = ToolContract(
        name="search",
        schema={"query": "str"},
        description="Search.",
        config_params=[ToolConfigParam("limit")],
        state_reads=[ToolStateRead("seen")],
        state_effects=[ToolStateEffect(key="found")],
    )
    assert contract.injected_names == ("limit", "seen")
    for sent in ({"query": "a", "limit": 1}, {"query": "a", "seen": []}):
        with pytest.raises(ArgumentError, match="is set by the host"):
            contract.validator.check("search", sent)


def test_a_model_cannot_set_it_where_the_schema_takes_anything():
    contract = ToolContract(
        name="search",
        schema={"type": "object"},
        description="S.",
        state_reads=[ToolStateRead("seen")],
    )
    contract.validator.check("search", {"other": 1})
    with pytest.raises(ArgumentError, match="is set by the host"):
        contract.validator.check("search", {"seen": 1})


@pytest.mark.parametrize("part", [{"config_params": ToolConfigParam("query")}])
@pytest.mark.parametrize("schema", [{"query": "str"}, {"properties": {"query": True}}])
def test_a_schema_that_lets_the_model_set_it_is_refused(schema, part):
    with pytest.raises(DefinitionError, match="'query' is also an argument"):
        ToolContract(name="search", schema=schema, description="Search.", **part)


def test_one_key_for_two_values_is_refused():
    with pytest.raises(DefinitionError, match="'limit' is both a config param and a state read"):
        ToolContract(
            name="search",
            schema={},
            description="Search.",
            config_params=[ToolConfigParam("limit")],
            state_reads=[ToolStateRead("limit")],
        )


def test_a_contract_sees_the_plan_if_one_of_its_rules_does():
    alone = ToolInvariant(
        id="alone", rule="Be alone.", check=lambda call, state, config, plan: True
    )
    assert not ToolContract(
        name="search", schema={}, description="Search.", invariants=[RULE]
    ).sees_plan
    assert ToolContract(
        name="search", schema={}, description="Search.", invariants=[RULE, alone]
    ).sees_plan


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"type": "integer", "default": "abc"}}},
        {"x": "int = 'abc'"},
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/N", "default": "abc"}},
            "$defs": {"N": {"type": "integer"}},
        },
    ],
)
def test_a_default_that_its_own_schema_refuses_is_refused(schema):
    with pytest.raises(DefinitionError, match="default") as caught:
        ToolContract(name="search", schema=schema, description="S.")
    assert "'x'" in str(caught.value)
    assert caught.value.fix


def test_null_is_the_default_only_where_it_is_no_value_of_its_own():
    properties = {
        "whole": {"type": "integer", "default": 4},
        "listed": {"type": ["integer", "null"], "default": 4},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 4},
        "any": {"default": 4},
    }
    created = ToolContract(
        name="search", schema={"type": "object", "properties": properties}, description="S."
    )
    assert created.with_defaults(dict.fromkeys(properties)) == {
        "whole": 4,
        "listed": None,
        "either": None,
        "any": None,
    }
    assert created.with_defaults({}) == dict.fromkeys(properties, 4)


def asks_for(word):
    return ToolInvariant(
        id=word,
        rule=f"Ask for {word}.",
        check=lambda call, state, config: word in call.arguments["text"],
        correct=lambda call, state, config: (call, True),
    )


def test_validating_one_call_gives_the_message_of_each_rule_that_it_breaks():
    contract = ToolContract(
        name="find",
        schema={"text": "str"},
        description="Find.",
        invariants=[asks_for("tea"), asks_for("cake")],
    )
    assert contract.validate(ToolCall(name="find", arguments={"text": "tea and cake"})) == ()
    assert contract.validate(ToolCall(name="find", arguments={"text": "milk"})) == (
        "find was refused: Ask for tea.",
        "find was refused: Ask for cake.",
    )
    [message] = contract.validate(ToolCall(name="find", arguments={}))
    assert message.startswith("invalid arguments for find: ")


def test_a_rule_of_one_call_reads_the_state_and_the_configuration():
    def is_known(call, state, config):
        return call.arguments["text"] in state["known"] and config["strict"]

    contract = ToolContract(
        name="find",
        schema={"text": "str"},
        description="Find.",
        config_params=[ToolConfigParam("strict", default=True)],
        invariants=[ToolInvariant(id="known", rule="Ask for known words.", check=is_known)],
    )
    call = ToolCall(name="find", arguments={"text": "tea"})
    assert contract.validate(call, {"known": ["tea"]}) == ()
    assert contract.validate(call, {"known": ["tea"]}, {"strict": False}) == (
        "find was refused: Ask for known words.",
    )
    assert contract.validate(call) == ("find was refused: its rule 'known' could not be checked",)
