"""Every kind of signature in every dialect: the bytes, the rules, and values that fit.

`expected/NAME.json` holds what `signatures.NAME` becomes in each dialect. To renew it after
a change that is meant, dump `made_of(name)` into it with an indent of 2 and read the difference.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
from rules import against_gemini, against_strict

from satchel.tools import ArgumentError, FunctionTool
from satchel.tools.dialects import DIALECTS, ToolShape, in_dialect, without_nulls

HERE = Path(__file__).parent


def load_signatures():
    spec = importlib.util.spec_from_file_location("signatures", HERE / "signatures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["signatures"] = module  # pydantic looks up the module of a model
    spec.loader.exec_module(module)
    return module


SIGNATURES = load_signatures()
STOP = {"name": "Oslo", "days": 2, "tags": ["a"]}
HOME = {"street": "S 1", "town": "Oslo"}
TREE = {"value": 1, "children": [{"value": 2, "children": []}]}
CAT = {"kind": "cat", "lives": 1}
SAMPLES = {
    # name: arguments that the function takes, arguments that it does not take
    "plain_string": ({"x": "a"}, {"x": 1}),
    "plain_integer": ({"x": 1}, {"x": "one"}),
    "plain_number": ({"x": 1.5}, {"x": "one"}),
    "plain_boolean": ({"x": True}, {"x": "perhaps"}),
    "plain_none": ({"x": None}, {"x": 1}),
    "plain_bytes": ({"x": "ab"}, {"x": 1}),
    "no_parameters": ({}, {"x": 1}),
    "no_annotation": ({"x": [1], "y": "z"}, {"y": 1}),
    "any_value": ({"x": {"a": [None]}}, {}),
    "literal_strings": ({"x": "b"}, {"x": "c"}),
    "literal_one": ({"x": "only"}, {"x": "other"}),
    "literal_integers": ({"x": 2}, {"x": 3}),
    "literal_mixed": ({"x": None}, {"x": "b"}),
    "literal_true": ({"x": True}, {"x": False}),
    "enum_plain": ({"x": "red"}, {"x": "RED"}),
    "enum_integer": ({"x": 2}, {"x": 3}),
    "enum_string": ({"x": "mile"}, {"x": "inch"}),
    "enum_optional": ({"x": None}, {"x": "green"}),
    "union_new": ({"x": "a"}, {"x": None}),
    "union_old": ({"x": None}, {"x": []}),
    "optional_old": ({"x": None}, {"x": "one"}),
    "optional_default": ({"x": None}, {"x": "one"}),
    "list_bare": ({"x": [1, "a", None]}, {"x": 1}),
    "list_of_strings": ({"x": ["a"]}, {"x": [1]}),
    "list_optional": ({"x": [1]}, {"x": ["one"]}),
    "dict_bare": ({"x": {"a": 1}}, {"x": 1}),
    "dict_of_integers": ({"x": {"a": 1}}, {"x": {"a": "one"}}),
    "tuple_fixed": ({"x": [1, "a"]}, {"x": [1]}),
    "tuple_open": ({"x": [1, 2, 3]}, {"x": ["one"]}),
    "tuple_empty_default": ({"x": ["a"]}, {"x": [1]}),
    "set_of_strings": ({"x": ["a", "b"]}, {"x": [1]}),
    "frozenset_default": ({"x": [2]}, {"x": ["two"]}),
    "nested_lists": ({"x": [[1], []]}, {"x": [1]}),
    "nested_dicts": ({"x": {"a": [STOP]}}, {"x": {"a": STOP}}),
    "typed_dict": ({"x": {"city": "Oslo", "zip": "1"}}, {"x": {"zip": "1"}}),
    "typed_dict_partial": ({"x": {"deep": True, "description": "d"}}, {"x": {"wide": 1}}),
    "named_tuple": ({"x": [1]}, {"x": []}),
    "a_dataclass": ({"x": STOP}, {"x": {"days": 1}}),
    "model_nested": ({"x": {"name": "n", "home": HOME, "work": None}}, {"x": {"name": "n"}}),
    "model_recursive": ({"x": TREE}, {"x": {"value": 1, "children": [{"value": "b"}]}}),
    "model_chain": ({"x": {"next": {"next": None}}}, {"x": {"next": 1}}),
    "model_described": ({"x": HOME}, {"x": {"street": "S 1"}}),
    "model_recursive_described": ({"x": TREE}, {"x": []}),
    "model_default": ({"x": HOME}, {"x": {"town": "Oslo"}}),
    "model_closed": ({"x": {"x": 1}}, {"x": {"x": 1, "y": 2}}),
    "model_open": ({"x": {"x": 1, "y": 2}}, {"x": {"y": 2}}),
    "model_empty": ({"x": {}}, {"x": 1}),
    "model_generic": ({"x": {"item": 1}}, {"x": {"item": "one"}}),
    "models_in_list": ({"x": [HOME, HOME]}, {"x": [{}]}),
    "union_of_models": ({"x": {"kind": "dog", "good": True}}, {"x": {"kind": "cow"}}),
    "discriminated": ({"x": CAT}, {"x": {"kind": "dog", "lives": 1}}),
    "discriminated_list": ({"x": [CAT]}, {"x": [{"kind": "cow"}]}),
    "bounds_integer": ({"x": 9}, {"x": 10}),
    "bounds_number": ({"x": 0.25}, {"x": 0}),
    "bounds_string": ({"x": "abc"}, {"x": "1"}),
    "bounds_list": ({"x": [1]}, {"x": []}),
    "titled": ({"x": 1}, {"x": "one"}),
    "time_datetime": ({"x": "2026-01-02T03:04:05Z"}, {"x": "yesterday"}),
    "time_date": ({"x": "2026-01-02"}, {"x": "yesterday"}),
    "time_of_day": ({"x": "03:04:05Z"}, {"x": "noon"}),
    "time_delta": ({"x": "P1DT2H"}, {"x": "a day"}),
    "path": ({"x": "a/b"}, {"x": 1}),
    "uuid": ({"x": "12345678-1234-5678-1234-567812345678"}, {"x": "1"}),
    "decimal": ({"x": "1.50"}, {"x": []}),
    "url": ({"x": "https://example.com/"}, {"x": 1}),
    "ip_address": ({"x": "127.0.0.1"}, {"x": "localhost"}),
    "keyword_only": ({"a": 1, "x": "b"}, {"x": "b"}),
    "positional_only": ({"x": 1, "y": 3}, {"y": 3}),
    "postponed": ({"x": [STOP], "later": {"when": "2026-01-02"}}, {"x": [{}]}),
    "odd_names": (
        {"schema": 1, "model_config": "m", "_x": True, "copy": 2.5, "json": "j"},
        {"schema": 1, "model_config": "m"},
    ),
    "named_description": (
        {"description": "d", "title": "t", "properties": {"deep": True, "description": "e"}},
        {"description": "d", "title": "t", "properties": {"deep": 7}},
    ),
    "google": ({"x": 1, "y": "c"}, {"y": "c"}),
    "numpy": ({"x": 1, "y": "c"}, {"y": "c"}),
    "sphinx": ({"x": 1, "y": "c"}, {"y": "c"}),
    "method": ({"context": "c", "cls": 2}, {"context": 1}),
}
NAMES = [*SAMPLES]
INEXPRESSIBLE = {
    *("no_annotation", "any_value", "list_bare", "dict_bare", "dict_of_integers", "tuple_fixed"),
    *("nested_dicts", "named_tuple", "model_open"),
}
"""What strict mode cannot say: values without a type, free keys, tuples."""


def tool_of(name):
    fn = SIGNATURES.Shop().method if name == "method" else getattr(SIGNATURES, name)
    return FunctionTool(fn)


def made_of(name):
    tool = tool_of(name)
    shape = ToolShape(name=tool.name, description=tool.description, parameters=tool.parameters)
    return {dialect: in_dialect(dialect, shape) for dialect in DIALECTS}


def parameters_of(name):
    converted = made_of(name)
    return {
        "openai": converted["openai"]["function"]["parameters"],
        "openai-strict": converted["openai-strict"]["function"]["parameters"],
        "anthropic": converted["anthropic"]["input_schema"],
        "gemini": converted["gemini"].get("parametersJsonSchema", {"type": "object"}),
        "mcp": converted["mcp"]["inputSchema"],
    }


def fits(schema, value):
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid(value)


def test_every_signature_is_in_the_table_and_has_its_file():
    functions = [
        name
        for name, value in vars(SIGNATURES).items()
        if inspect.isfunction(value) and value.__module__ == "signatures"
    ]
    assert sorted([*functions, "method"]) == sorted(NAMES)
    assert sorted(path.stem for path in (HERE / "expected").iterdir()) == sorted(NAMES)
    assert len(NAMES) > 60


@pytest.mark.parametrize("name", NAMES)
def test_a_signature_becomes_what_was_reviewed(name):
    expected = json.loads((HERE / "expected" / f"{name}.json").read_text())
    described = made_of(name)
    responses = described.pop("openai-responses")
    assert responses == {"type": "function", **described["openai"]["function"], "strict": False}
    assert described == expected
    created, own = parameters_of(name), tool_of(name).parameters
    assert created["openai"] == created["anthropic"] == created["mcp"] == own
    assert json.dumps(created["openai"]) == json.dumps(own)


def test_each_dialect_keeps_the_rules_of_its_provider():
    for name in NAMES:
        converted = made_of(name)["openai-strict"]["function"]
        assert converted["strict"] is (name not in INEXPRESSIBLE)
        if converted["strict"]:
            assert against_strict(converted["parameters"]) == []
        else:
            assert converted["parameters"] == tool_of(name).parameters


def test_gemini_reads_only_what_it_knows():
    for name in NAMES:
        gemini = parameters_of(name)["gemini"]
        assert gemini == {"type": "object"} or against_gemini(gemini) == []


def test_every_dialect_names_the_same_parameters():
    for name in NAMES:
        created, own = parameters_of(name), tool_of(name).parameters
        names, needed = list(own["properties"]), own.get("required", [])
        for dialect, schema in created.items():
            assert list(schema.get("properties", {})) == names, name
            assert schema.get("required", []) == (
                names if dialect == "openai-strict" and name not in INEXPRESSIBLE else needed
            )


@pytest.mark.parametrize("name", NAMES)
def test_what_the_function_takes_fits_every_schema_and_what_it_refuses_fits_none(name):
    good, bad = SAMPLES[name]
    tool, created = tool_of(name), parameters_of(name)
    asyncio.run(tool.execute(**good))
    with pytest.raises(ArgumentError):
        asyncio.run(tool.execute(**bad))
    for dialect in created:
        assert fits(created[dialect], good), dialect
        is_left_out = created[dialect] == {"type": "object"}
        assert is_left_out or not fits(created[dialect], bad), dialect


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_makes_the_same_bytes(seed):
    code = (
        "import json, sys; sys.path[:0] = [%r]; import test_sixty_signatures as here\n"
        "sys.stdout.write(json.dumps([here.made_of(name) for name in here.NAMES]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code % str(HERE)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.stdout == json.dumps([made_of(name) for name in NAMES])


def test_what_strict_mode_has_sent_for_nothing_is_taken_as_nothing():
    for name in (name for name in NAMES if name not in INEXPRESSIBLE):
        good, _ = SAMPLES[name]
        tool, strict = tool_of(name), parameters_of(name)["openai-strict"]
        needed = tool.parameters.get("required", [])
        sent = {key: good[key] if key in needed else None for key in strict["required"]}
        assert fits(strict, sent)
        asyncio.run(tool.execute(**without_nulls(tool.parameters, sent)))
