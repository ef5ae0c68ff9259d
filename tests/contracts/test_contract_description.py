from dataclasses import replace
from types import MappingProxyType

import pytest
from pydantic import BaseModel

from satchel.contracts.contract_description import contract_json, fingerprint_of
from satchel.contracts.contract_parts import (
    ToolConfigParam,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.contracts.tool_contract import ToolContract

CONTRACT = ToolContract(
    name="search",
    schema={"query": "str - what", "ids": "Optional[list[str]]", "kind": "Literal['a', 'b']"},
    description="Search.",
    invariants=[
        ToolInvariant(id="brief", rule="Be brief.", check=lambda *args: True),
        ToolInvariant(
            id="alone", rule="Be alone.", check=lambda *args: True, correct=lambda *args: None
        ),
    ],
    config_params=[ToolConfigParam("limit", 3, int), ToolConfigParam("where")],
    state_reads=[ToolStateRead("seen"), ToolStateRead("known", [])],
    state_effects=[
        ToolStateEffect(
            key="found", type_hint=list[str], merge="append", preserve_across_turns=True
        ),
        ToolStateEffect(key="at", prompt_template_var="AT"),
    ],
)


def test_a_contract_says_all_its_parts():
    assert contract_json(CONTRACT) == {
        "description": "Search.",
        "arguments": "query: string, ids: array, kind",
        "rules": [
            {"id": "brief", "rule": "Be brief.", "corrects": False},
            {"id": "alone", "rule": "Be alone.", "corrects": True},
        ],
        "config": [
            {"key": "limit", "default": "3", "normalized": True},
            {"key": "where", "default": "", "normalized": False},
        ],
        "reads": [
            {"key": "seen", "default": "", "required": True},
            {"key": "known", "default": "[]", "required": False},
        ],
        "effects": [
            {
                "key": "found",
                "type": "list[str]",
                "merge": "append",
                "preserved": True,
                "variable": "",
            },
            {
                "key": "at",
                "type": "dict",
                "merge": "replace",
                "preserved": False,
                "variable": "AT",
            },
        ],
    }


def arguments(schema):
    return contract_json(ToolContract(name="search", schema=schema, description="S."))["arguments"]


def test_the_arguments_are_reported_by_name_wherever_a_schema_has_them():
    class Query(BaseModel):
        text: str

    inside = {"$ref": "#/$defs/Q", "$defs": {"Q": Query.model_json_schema()}}
    assert arguments(inside) == arguments(MappingProxyType(inside)) == "text: string"
    assert arguments(Query) == "text: string"
    assert arguments({"additionalProperties": True}) == ""
    assert arguments({"type": "object"}) == ""
    assert arguments({"properties": {"a": True, "b": {}}, "required": ["b"]}) == "a, b"


@pytest.mark.parametrize(
    ("default", "written"),
    [
        (0, "0"),
        ("", "''"),
        ((1,), "(1,)"),
        ({"a": 1}, "{'a': 1}"),
        (int, "<type>"),
        ({1}, "<set>"),
        ("a" * 300, "'" + "a" * 198 + "…"),
    ],
)
def test_a_default_is_written_as_python_does_or_by_its_type(default, written):
    contract = ToolContract(
        name="search", schema={}, description="S.", config_params=[ToolConfigParam("k", default)]
    )
    assert contract_json(contract)["config"][0]["default"] == written


@pytest.mark.parametrize("hint", ["dict", "list[str]", "dict[str, list[int]]", "int | None"])
def test_the_type_of_an_effect_is_reported_as_its_source_says_it(hint):
    effect = ToolStateEffect(key="found", type_hint=eval(hint))
    contract = ToolContract(name="search", schema={}, description="S.", state_effects=[effect])
    assert contract_json(contract)["effects"][0]["type"] == hint


def test_the_fingerprint_differs_when_the_words_do_and_is_the_same_each_time():
    assert fingerprint_of(CONTRACT) == fingerprint_of(replace(CONTRACT))
    assert fingerprint_of(replace(CONTRACT, description="Find.")) != fingerprint_of(CONTRACT)
    assert fingerprint_of(replace(CONTRACT, state_reads=())) != fingerprint_of(CONTRACT)


def test_words_that_cannot_be_sent_have_a_fingerprint():
    assert fingerprint_of(replace(CONTRACT, description="half \ud83d"))
