from dataclasses import replace
from types import MappingProxyType

import pytest
from pydantic import BaseModel

from satchel.contracts import (
    ToolConfigParam,
    ToolContract,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
    declared_of,
    fingerprint_of,
)
from satchel.formats import (
    DeclaredConfig,
    DeclaredContract,
    DeclaredEffect,
    DeclaredRead,
    DeclaredRule,
)
from satchel.formats.contract_code import declared_contracts

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
        ToolStateEffect(key="found", type_hint=list, merge="append", preserve_across_turns=True),
        ToolStateEffect(key="at", prompt_template_var="AT"),
    ],
)


def test_a_contract_says_all_its_parts():
    assert declared_of(CONTRACT) == DeclaredContract(
        tool="search",
        description="Search.",
        arguments="query: str, ids: Optional[list[str]], kind: Literal['a', 'b']",
        rules=(DeclaredRule("brief", "Be brief.", False), DeclaredRule("alone", "Be alone.", True)),
        config=(DeclaredConfig("limit", "3", True), DeclaredConfig("where", "", False)),
        reads=(DeclaredRead("seen", "", True), DeclaredRead("known", "[]", False)),
        effects=(
            DeclaredEffect(
                key="found", merge="append", type="list", is_preserved=True, variable=""
            ),
            DeclaredEffect(
                key="at", merge="replace", type="dict", is_preserved=False, variable="AT"
            ),
        ),
    )


def test_the_least_contract_says_little():
    assert declared_of(
        ToolContract(name="search", schema={"type": "object"}, description="S.")
    ) == DeclaredContract(tool="search", description="S.", arguments="")
    free = ToolContract(
        name="search",
        schema={"properties": {"a": True, "b": {}}, "required": ["b"]},
        description="S.",
    )
    assert declared_of(free).arguments == "a, b"


def test_the_arguments_are_told_by_name_wherever_a_schema_has_them():
    class Query(BaseModel):
        text: str

    inside = {"$ref": "#/$defs/Q", "$defs": {"Q": Query.model_json_schema()}}
    assert (
        declared_of(ToolContract(name="search", schema=inside, description="S.")).arguments
        == "text"
    )
    assert (
        declared_of(
            ToolContract(name="search", schema=MappingProxyType(inside), description="S.")
        ).arguments
        == "text"
    )
    assert (
        declared_of(
            ToolContract(name="search", schema={"additionalProperties": True}, description="S.")
        ).arguments
        == ""
    )
    assert (
        declared_of(ToolContract(name="search", schema=Query, description="S.")).arguments
        == "Query"
    )


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
    assert declared_of(contract).config[0].default == written


@pytest.mark.parametrize("hint", ["dict", "list[str]", "dict[str, list[int]]", "int | None"])
def test_the_type_of_an_effect_is_told_as_its_source_says_it(hint):
    source = (
        "from satchel import ToolContract, ToolStateEffect\n"
        f"FOUND = ToolStateEffect('found', {hint})\n"
        "C = ToolContract('search', {}, 'S.', state_effects=[FOUND])\n"
    )
    read = declared_contracts(source.encode(), "tool.py").value
    effect = ToolStateEffect(key="found", type_hint=eval(hint))
    run = declared_of(
        ToolContract(name="search", schema={}, description="S.", state_effects=[effect])
    )
    assert run.effects == read[0].effects
    assert run.effects[0].type == hint


def test_the_fingerprint_differs_when_the_words_do_and_is_the_same_each_time():
    assert fingerprint_of(CONTRACT) == fingerprint_of(replace(CONTRACT))
    assert fingerprint_of(replace(CONTRACT, description="Find.")) != fingerprint_of(CONTRACT)
    assert fingerprint_of(replace(CONTRACT, state_reads=())) != fingerprint_of(CONTRACT)


def test_words_that_cannot_be_sent_have_a_fingerprint():
    assert fingerprint_of(replace(CONTRACT, description="half \ud83d"))
