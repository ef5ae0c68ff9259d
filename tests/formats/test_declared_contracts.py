"""Contracts as their source says them, read and never run."""

from dataclasses import MISSING, fields, replace
from itertools import pairwise
from textwrap import dedent
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.contracts import (
    ToolConfigParam,
    ToolContract,
    ToolInvariant,
    ToolStateEffect,
    ToolStateRead,
)
from satchel.errors import DefinitionError
from satchel.formats import (
    DeclaredConfig,
    DeclaredContract,
    DeclaredEffect,
    DeclaredRead,
    DeclaredRule,
    arguments_of,
    declared_contracts,
)
from satchel.formats.contract_code import KINDS
from satchel.formats.declared_contracts import is_short_form

WHOLE = '''
    import textwrap
    from typing import Optional
    from satchel import DROP_STEP, ToolConfigParam, ToolContract
    from satchel import ToolInvariant, ToolStateEffect, ToolStateRead

    MOST = 5
    EXCLUSIVE = ToolInvariant(id="exclusive", rule="Give 'query' or 'ids', not both.", check=lambda *_: True)
    RULES = (
        EXCLUSIVE,
        ToolInvariant(
            id="bundled",
            rule="Bundled steps need "
            "a web search.",
            check=is_bundled,
            correct=add_search,
        ),
    )

    SEARCH: ToolContract = ToolContract(
        name="search",
        schema={"query": "str - what to look for", "ids": "Optional[list[str]] - or these"},
        description=textwrap.dedent("""
            Find documents.

            As many as there are.
        """).strip(),
        invariants=RULES,
        config_params=[ToolConfigParam("most", MOST, int), ToolConfigParam("region")],
        state_reads=[ToolStateRead("user"), ToolStateRead("seen", default=None)],
        state_effects=(
            ToolStateEffect(key="found"),
            ToolStateEffect(key="notes", type_hint=list[str], merge="append", preserve_across_turns=True, prompt_template_var="NOTES"),
        ),
    )
'''


def read(source):
    return declared_contracts(dedent(source).encode(), "tools.py")


def one(source):
    reading = read(source)
    assert reading.diagnostics == ()
    (contract,) = reading.value
    return contract


def faults(source):
    """The problems of a source, each with its line."""
    found = read(source).diagnostics
    assert {item.code for item in found} <= {"contract-invalid"}
    return [(item.where.line, item.message.partition(": ")[2]) for item in found]


def contract(**parts):
    """A source with one contract, which says what it must and these parts."""
    usual = {"name": "'search'", "schema": "{'query': 'str'}", "description": "'Find.'"}
    told = ", ".join(f"{key}={value}" for key, value in (usual | parts).items())
    return f"C = ToolContract({told})"


def test_a_contract_is_read_with_all_its_parts():
    read = one(WHOLE)
    assert read == DeclaredContract(
        tool="search",
        description="Find documents.\n\nAs many as there are.",
        arguments="query: str, ids: Optional[list[str]]",
        rules=(
            DeclaredRule("exclusive", "Give 'query' or 'ids', not both."),
            DeclaredRule("bundled", "Bundled steps need a web search.", corrects=True),
        ),
        config=(DeclaredConfig("most", "5", is_normalized=True), DeclaredConfig("region")),
        reads=(DeclaredRead("user"), DeclaredRead("seen", "None", is_required=False)),
        effects=(
            DeclaredEffect(key="found"),
            DeclaredEffect(
                key="notes", merge="append", type="list[str]", is_preserved=True, variable="NOTES"
            ),
        ),
    )
    assert (read.line, read.path, read.name) == (20, "tools.py", "SEARCH")


@pytest.mark.parametrize(
    ("imported", "written"),
    [
        ("import satchel", "satchel.ToolContract"),
        ("import satchel as s", "s.ToolContract"),
        ("from satchel import ToolContract", "ToolContract"),
        ("from satchel import ToolContract as TC", "TC"),
        ("from satchel import contracts", "contracts.ToolContract"),
        ("from satchel.contracts import ToolContract as TC", "TC"),
        ("from satchel import *", "ToolContract"),
        ("if True:\n    from satchel import ToolContract", "ToolContract"),
    ],
)
def test_a_contract_is_found_however_it_is_imported(imported, written):
    assert one(f"{imported}\nC = {written}('search', {{}}, 'Find.')").tool == "search"


@pytest.mark.parametrize(
    "source",
    [
        "from elsewhere import ToolContract\nC = ToolContract(name='search', schema={}, description='Find.')",
        "C = other.ToolContract('search', {}, 'Find.')",
        "def f():\n    c = ToolContract(name='search', schema={}, description='Find.')",
        "class Keeper:\n    c = ToolContract(name='search', schema={}, description='Find.')",
        "ToolContract(name='search', schema={}, description='Find.')",
        "C = register(ToolContract(name='search', schema={}, description='Find.'))",
        "C = [it for it in ToolContract(name='search', schema={}, description='Find.')]",
        "C = ToolContract(name='search', schema={}, description='Find.')\nC = None",
        "C = ToolContract(name='search', schema={}, description='Find.')\ndef C(): ...",
        "C: 'ToolContract'",
        "class ToolContract: ...\nC = ToolContract('search')",
        "def ToolContract(name): ...\nC = ToolContract('search')",
        "ToolContract = make()\nC = ToolContract(name='search')",
        "",
    ],
)
def test_what_no_variable_of_the_module_holds_is_no_contract_of_it(source):
    assert read(source).value == ()


def test_contracts_in_a_list_are_found_in_the_order_of_the_text():
    source = """
        B = ToolContract(name="second", schema={}, description="B.")
        ALL = [ToolContract(name="third", schema={}, description="C."), B]
        PAIR = (ToolContract(name="fourth", schema={}, description="D."),)
        A = ALIAS = ToolContract(name="fifth", schema={}, description="E.")
    """
    found = [(it.tool, it.name) for it in read(source).value]
    assert found == [
        ("second", "B"),
        ("third", "ALL[0]"),
        ("fourth", "PAIR[0]"),
        ("fifth", "A"),
    ]


def test_where_a_contract_stands_makes_it_no_other():
    moved = one("\n\n" + contract())
    assert moved == one(contract().replace("C =", "D ="))
    assert moved != one(contract(description="'Look.'"))


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ("{}", ""),
        ("{'a': 'int - how many - at most', 'b': 'list[str]'}", "a: int, b: list[str]"),
        ("{'a': '', 'b': None}", "a, b"),
        ("{'type': 'object', 'properties': {'a': {}, 'b': {}}}", "a, b"),
        ("{'properties': {'a': {}}, 'required': ['a']}", "a"),
        ("{'type': 'object'}", ""),
        ("{'type': 'array'}", "type: array"),
        ("{'properties': 'str - of the house'}", "properties: str"),
        ("{'additionalProperties': False}", ""),
        ("{'anyOf': [{'required': ['a']}]}", ""),
        ("{'$comment': 'none'}", ""),
        ("{'$ref': '#/$defs/Q', '$defs': {'Q': {'properties': {'a': {}}}}}", "a"),
        ("{'$ref': '#/$defs/Gone', '$defs': {}}", ""),
        ('{"a": "Literal[\'b - c\'] - words"}', "a: Literal['b - c']"),
        ("Query", "Query"),
        ("models.Query", "models.Query"),
        ("SCHEMA", "a: int"),
        ("{**SCHEMA, 'b': 'str'}", "a: int, b: str"),
    ],
)
def test_the_arguments_are_told_in_words(schema, arguments):
    source = "SCHEMA = {'a': 'int - how many'}\n" + contract(schema=schema)
    assert one(source).arguments == arguments


def test_the_arguments_are_known_by_name():
    assert arguments_of({"type": "object", "properties": {"a": {}}}) == ("a", {"a"})
    assert arguments_of({"a": "int - x", "type": "str"}) == ("a: int, type: str", {"a", "type"})


@pytest.mark.parametrize(
    ("schema", "is_short"),
    [
        ({}, True),
        ({"query": "str"}, True),
        ({"query": {"type": "string"}}, True),
        ({"type": "str - which kind"}, True),
        ({"type": "array"}, True),
        ({"type": ["object", "null"]}, True),
        ({"properties": "list[str] - those of the house"}, True),
        ({"required": ["a"]}, True),
        ({1: "str"}, True),
        ({"type": "object"}, False),
        ({"properties": {}}, False),
        ({"properties": MappingProxyType({})}, False),
        ({"$comment": "str"}, False),
        *(({key: "str"}, False) for key in ("$ref", "allOf", "anyOf", "oneOf")),
        ({"additionalProperties": False}, False),
    ],
)
def test_what_has_no_sign_of_json_schema_is_the_short_form(schema, is_short):
    assert is_short_form(schema) is is_short


def test_a_literal_schema_is_kept_and_makes_it_no_other():
    read = one(contract(schema="{'a': 'int'}"))
    assert read.schema == {"a": "int"}
    assert "schema" not in repr(read)
    assert read == replace(read, schema=None)
    assert one(contract(schema="Query")).schema is None
    assert one(contract(schema="make()")).schema is None


RECORDS = [ToolContract, ToolInvariant, ToolConfigParam, ToolStateRead, ToolStateEffect]


@pytest.mark.parametrize("record", RECORDS)
def test_the_parameters_of_each_record_are_known_here(record):
    taken = [field for field in fields(record) if field.init]
    needed = [it for it in taken if it.default is MISSING and it.default_factory is MISSING]
    kind = KINDS[record.__name__]
    assert kind.parameters == tuple(field.name for field in taken)
    assert kind.parameters[: kind.needed] == tuple(field.name for field in needed)
    assert set(KINDS) == {it.__name__ for it in RECORDS}


def check(call, state, config): ...


@pytest.mark.parametrize(
    "parts",
    [
        {"name": "''"},
        {"name": "'a b'"},
        {"description": "' '"},
        {"description": "3"},
        {"invariants": "[ToolInvariant(id='', rule='R.', check=check)]"},
        {"invariants": "[ToolInvariant(id='a', rule='', check=check)]"},
        {
            "invariants": "[ToolInvariant(id='a', rule='R.', check=check), ToolInvariant(id='a', rule='S.', check=check)]"
        },
        {"config_params": "[ToolConfigParam(1)]"},
        {"config_params": "[ToolConfigParam('k'), ToolConfigParam('k')]"},
        {"config_params": "[ToolConfigParam('k')]", "state_reads": "[ToolStateRead('k')]"},
        {"state_reads": "[ToolStateRead('query')]"},
        {"state_effects": "[ToolStateEffect(key='k', merge='add')]"},
        {"state_effects": "[ToolStateEffect(key='k', merge='apend')]"},
        {"state_effects": "[ToolStateEffect(key='k', prompt_template_var='a')]"},
    ],
)
def test_who_reads_a_contract_and_who_makes_it_refuse_it_in_the_same_words(parts):
    source = contract(**parts)
    with pytest.raises(DefinitionError) as caught:
        exec(source)
    (found,) = read(source).diagnostics
    assert found.message.partition(": ")[2] == caught.value.message
    assert found.fix == caught.value.fix or not caught.value.fix


@pytest.mark.parametrize(
    "text",
    [
        "'Find.'",
        "'Fi' 'nd.'",
        "'Fi' + 'nd.'",
        "TEXT",
        "FI + 'nd.'",
        "' Find. '.strip()",
        "textwrap.dedent('  Find.')",
        "dedent('  Find.')",
        "inspect.cleandoc(' Find.')",
    ],
)
def test_a_text_is_put_together_as_python_would(text):
    head = "import inspect, textwrap\nfrom textwrap import dedent\nTEXT = 'Find.'\nFI = 'Fi'\n"
    assert one(head + contract(description=text)).description == "Find."


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ("name", "NAME"),
        ("schema", "make()"),
        ("schema", "SCHEMA"),
        ("schema", "{'a': kind}"),
        ("schema", "{[]: 'str'}"),
        ("schema", "{**make()}"),
        ("schema", "{**'ab'}"),
        ("description", "f'{x}'"),
        ("description", "TEXT.strip('.')"),
        ("description", "'a' * 3"),
        ("description", "'a' + 3"),
        ("description", "(3).strip()"),
        ("description", "make('a')"),
        ("description", "not 'a'"),
        ("description", "LOOP"),
        ("description", "GROWN"),
        ("invariants", "make()"),
        ("invariants", "[make()]"),
        ("invariants", "[*make()]"),
        ("invariants", "(UNKNOWN,)"),
        ("invariants", "LOOP"),
        ("invariants", "[it for it in RULES]"),
        ("invariants", "[ToolInvariant(*parts)]"),
        ("invariants", "[ToolInvariant(id=name, rule='rule', check=check)]"),
        ("invariants", "[ToolInvariant(id='id', rule=make(), check=check)]"),
        ("config_params", "[ToolConfigParam(**more)]"),
        ("config_params", "[ToolStateRead('a')]"),
        ("state_reads", "[ToolStateRead(NAME)]"),
        ("state_effects", "[ToolStateEffect(key='a', merge=how)]"),
        ("state_effects", "[ToolStateEffect(key='a', **more)]"),
    ],
)
def test_what_only_the_code_can_tell_is_said_to_be_unread(part, written):
    head = "LOOP = POOL\nPOOL = LOOP\nGROWN = 'a'\nGROWN += 'b'\n"
    assert one(head + contract(**{part: written})).unread == (part,)


def test_what_is_known_beside_the_unread_is_told():
    rule = "ToolInvariant(id='a', rule='Rule.', check=check)"
    both = one(contract(invariants=f"({rule}, make())", config_params="[*KEYS, more]"))
    assert both.rules == (DeclaredRule("a", "Rule."),)
    assert both.unread == ("invariants", "config_params")
    joined = one(f"MORE = [{rule}]\n" + contract(invariants="MORE + [*MORE][:0]"))
    assert (joined.rules, joined.unread) == ((DeclaredRule("a", "Rule."),), ("invariants",))


def test_a_contract_that_is_given_things_from_elsewhere_is_unread_where_it_says_nothing():
    read = one("C = ToolContract('search', *more, config_params=(), **rest)")
    assert (read.tool, read.unread) == (
        "search",
        ("schema", "description", "invariants", "state_reads", "state_effects"),
    )


def test_a_default_is_told_as_python_writes_it():
    defaults = ("'a'", "-1", "[1, 2]", "None", "MOST", "Path('/x')", "1 if x else 2")
    config = "".join(f"ToolConfigParam('k{n}', {it})," for n, it in enumerate(defaults))
    reads = "".join(f"ToolStateRead('r{n}', {it})," for n, it in enumerate(defaults))
    source = "MOST = {'a': 1}\n" + contract(config_params=f"[{config}]", state_reads=f"[{reads}]")
    told = ["'a'", "-1", "[1, 2]", "None", "{'a': 1}", "Path('/x')", "1 if x else 2"]
    assert [it.default for it in one(source).reads] == told
    assert [it.default for it in one(source).config] == [*told[:3], "", *told[4:]]


def test_none_is_no_corrector_and_no_normalizer():
    source = "NONE = None\n" + contract(
        invariants="[ToolInvariant(id='a', rule='Rule.', check=check, correct=None), ToolInvariant(id='b', rule='R.', check=c, correct=NONE)]",
        config_params="[ToolConfigParam('k', normalizer=None)]",
    )
    assert not any(rule.corrects for rule in one(source).rules)
    assert not one(source).config[0].is_normalized


RULE = "ToolInvariant(id='a', rule='Rule.', check=check)"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (contract(name="''"), "the name of the contract is empty"),
        (contract(name="7"), "the name of the contract is no text"),
        (contract(description="' '"), "the description of the contract is empty"),
        (contract(schema="[1]"), "the schema is neither JSON Schema, nor a model, nor a mapping"),
        (contract(invariants=f"[{RULE}, {RULE}]"), "two invariants have the id 'a'"),
        (
            contract(invariants="[ToolInvariant(id='', rule='R.', check=c)]"),
            "the id of an invariant is empty",
        ),
        (
            contract(invariants="[ToolInvariant(id='a', rule='', check=c)]"),
            "the rule of an invariant is empty",
        ),
        (
            contract(invariants="[ToolInvariant(id=1, rule='R.', check=c)]"),
            "the id of an invariant is no text",
        ),
        (contract(invariants="[ToolInvariant(id='a', rule='R.')]"), "ToolInvariant lacks 'check'"),
        (
            contract(config_params="[ToolConfigParam('k'), ToolConfigParam('k')]"),
            "two config params have the key 'k'",
        ),
        (
            contract(state_reads="[ToolStateRead('k'), ToolStateRead('k', 1)]"),
            "two state reads have the key 'k'",
        ),
        (
            contract(state_effects="[ToolStateEffect(key='k'), ToolStateEffect(key='k')]"),
            "two state effects have the key 'k'",
        ),
        (
            contract(config_params="[ToolConfigParam('k')]", state_reads="[ToolStateRead('k')]"),
            "'k' is both a config param and a state read",
        ),
        (
            contract(config_params="[ToolConfigParam('query')]"),
            "'query' is an argument too, which would let the model set it",
        ),
        (
            contract(
                schema="{'type': 'object', 'properties': {'k': {}}}",
                state_reads="[ToolStateRead('k')]",
            ),
            "'k' is an argument too",
        ),
        (
            contract(state_effects="[ToolStateEffect(key='k', merge='add')]"),
            "'merge' of 'k' is 'add'",
        ),
        (
            contract(state_effects="[ToolStateEffect(key='k', merge=1)]"),
            "'merge' of 'k' is no text",
        ),
        (
            contract(state_effects="[ToolStateEffect(key='k', prompt_template_var='Notes')]"),
            "'prompt_template_var' of 'k' is 'Notes'",
        ),
        (
            contract(state_effects="[ToolStateEffect(key='k', prompt_template_var='')]"),
            "'prompt_template_var' of 'k' is empty",
        ),
        (
            contract(state_effects="[ToolStateEffect(key='k', prompt_template_var=1)]"),
            "'prompt_template_var' of 'k' is no text",
        ),
        (contract(invariant="[]"), "ToolContract has no parameter 'invariant'"),
        ("C = ToolContract(name='search', schema={})", "ToolContract lacks 'description'"),
        (
            "C = ToolContract(name='search', schema={}, description='F.', name='a')",
            "ToolContract is given 'name' twice",
        ),
        (
            "C = ToolContract('s', {}, 'F.', (), (), (), (), 8)",
            "ToolContract takes 7 arguments at most, not 8",
        ),
    ],
)
def test_what_the_record_itself_would_refuse_is_an_error(source, fault):
    ((line, message),) = faults("\n" + source)
    assert line == 2
    assert message.startswith(fault)


def test_a_bad_name_of_a_tool_is_an_error_that_names_it():
    (found,) = read(contract(name="'look up'")).diagnostics
    assert found.message.startswith("contract 'look up': the tool's name must start with a letter")


def test_the_fault_of_a_record_is_told_on_its_line():
    source = f"""
        A = {RULE}
        B = ToolInvariant(
            "a", "Another.", check)
        {contract(invariants="[A, B]")}
    """
    assert faults(source) == [(3, "two invariants have the id 'a'")]


def test_a_misspelt_word_is_told_with_the_likely_one():
    effect = "ToolStateEffect(key='k', merge='apend', preserve_accross_turns=True)"
    fixes = {it.fix for it in read(contract(state_effects=f"[{effect}]")).diagnostics}
    assert fixes == {"Write 'append'.", "Write 'preserve_across_turns='."}


def test_what_is_wrong_is_told_all_at_once_and_the_rest_is_read():
    reading = read(contract(name="'a b'", state_effects="[ToolStateEffect(key='k', merge='add')]"))
    assert len(reading.diagnostics) == 2
    assert reading.value[0].effects == (DeclaredEffect(key="k"),)


@pytest.mark.parametrize("source", ["C = ToolContract(", "x = '\\ud800", "\0", "(" * 5_000])
def test_a_module_that_does_not_compile_is_told_as_such(source):
    reading = declared_contracts(source.encode("utf-8", "surrogatepass"), "tools.py")
    assert reading.value is None
    assert {it.code for it in reading.diagnostics} == {"plugin-syntax"}


@pytest.mark.parametrize("joint", [" + ", ", "])
def test_names_that_unfold_without_end_are_unread_soon(joint):
    names = [f"N{at}" for at in range(60)]
    lines = [f"{name} = ({after}{joint}{after})" for name, after in pairwise(names)]
    source = "\n".join([*lines, "N59 = 'abc'"])
    assert "description" in one(f"{source}\n{contract(description='N0')}").unread
    assert "invariants" in one(f"{source}\n{contract(invariants='N0')}").unread


def test_a_long_text_that_is_joined_again_and_again_is_unread_soon():
    lines = [f"T{at} = T{at + 1} + T{at + 1}" for at in range(30)]
    source = "\n".join([*lines, f"T30 = {'x' * 10_000!r}", contract(description="T0")])
    assert "description" in one(source).unread


def test_what_is_nested_very_deeply_is_unread_and_no_fault():
    chain = "\n".join(f"N{at} = N{at + 1}" for at in range(3_000))
    read = one(f"{chain}\nN3000 = 'a'\n" + contract(description="N0 + 'b'", invariants="[*N0]"))
    assert read.unread == ("description", "invariants")


PIECES = st.sampled_from(
    [
        *("ToolContract", "ToolInvariant", "ToolConfigParam", "ToolStateRead", "ToolStateEffect"),
        *("(", ")", "[", "]", "{", "}", ",", ":", "=", "**", "*", "+", "-", ".", "\n", " "),
        *("A", "B", "'a'", "'search'", "1", "None", "name=", "key=", "schema=", "merge="),
        *("invariants=", "import satchel as s\n", "s.", "lambda: 1", "f'{A}'", "'''x", "not "),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
def test_no_source_text_makes_it_raise(text):
    reading = declared_contracts(text.encode("utf-8", "surrogatepass"), "tools.py")
    assert reading.value is not None or reading.diagnostics


EXPRESSIONS = st.recursive(
    st.sampled_from(
        ["A", "B", "'a'", "(1)", "None", "True", "x.y", "make()", "f'{A}'", "{}", "()"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda its: f"[{', '.join(its)}]"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} + {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"{{{two[0]}: {two[1]}}}"),
        inner.map(lambda it: f"{it}.strip()"),
        inner.map(lambda it: f"[*{it}]"),
        st.tuples(
            st.sampled_from(["Invariant", "ConfigParam", "StateRead", "StateEffect"]),
            st.lists(inner, max_size=5),
        ).map(lambda two: f"Tool{two[0]}({', '.join(two[1])})"),
    ),
    max_leaves=12,
)


@given(st.lists(EXPRESSIONS, min_size=2, max_size=8), EXPRESSIONS, EXPRESSIONS)
def test_whatever_a_contract_is_given_it_is_read(given, one_value, other_value):
    source = f"A = {one_value}\nB = {other_value}\nC = ToolContract({', '.join(given)})\n"
    reading = declared_contracts(source.encode(), "tools.py")
    (found,) = [it for it in reading.value if it.name == "C"]
    texts = (found.tool, found.description, found.arguments)
    assert all(isinstance(text, str) for text in texts)
