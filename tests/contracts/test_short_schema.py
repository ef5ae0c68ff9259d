import json
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.contracts.short_schema import read_short_form
from satchel.contracts.tool_contract import ToolContract
from satchel.errors import DefinitionError
from satchel.tools.schema_validator import SchemaValidator


def read(text):
    """Return the schema of one field, and whether it is required."""
    schema = read_short_form({"it": text}, "here")
    return schema["properties"]["it"], "it" in schema.get("required", ())


def test_the_example_of_the_documentation():
    fields = {
        "query": "str - the search query",
        "ids": "Optional[list[str]] - look only at these",
    }
    assert read_short_form(fields, "here") == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "the search query"},
            "ids": {
                "type": "array",
                "items": {"type": "string"},
                "description": "look only at these",
            },
        },
        "additionalProperties": False,
        "required": ["query"],
    }


def test_no_fields_are_an_object_that_takes_nothing():
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert read_short_form({}, "here") == empty


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("str", {"type": "string"}),
        (" int ", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("list", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("string", {"type": "string"}),
        ("array", {"type": "array"}),
        ("Any", {}),
        ("any", {}),
        ("(int)", {"type": "integer"}),
        ("list[int]", {"type": "array", "items": {"type": "integer"}}),
        ("List[Any]", {"type": "array", "items": {}}),
        ("set[str]", {"type": "array", "items": {"type": "string"}}),
        (
            "list[list[int]]",
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        ),
        ("dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("typing.List[int]", {"type": "array", "items": {"type": "integer"}}),
        ("int | str", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Union[int, str]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Literal['a', 2, True, None]", {"enum": ["a", 2, True, None]}),
        ("Literal[-1]", {"enum": [-1]}),
        ("Literal['a=b']", {"enum": ["a=b"]}),
        ("Literal['a - b', '[ - ']", {"enum": ["a - b", "[ - "]}),
    ],
)
def test_a_type_and_what_it_means(text, schema):
    assert read(text) == (schema, True)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("Optional[int]", {"type": "integer"}),
        ("typing.Optional[int]", {"type": "integer"}),
        ("int | None", {"type": "integer"}),
        ("None | int", {"type": "integer"}),
        ("Optional[Optional[int]]", {"type": "integer"}),
        ("Union[int, str, None]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("Optional[int | str]", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ("None", {"type": "null"}),
    ],
)
def test_what_takes_none_may_be_left_out(text, schema):
    assert read(text) == (schema, False)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("list[Optional[int]]", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("list[None]", {"type": "null"}),
        ("list[Optional[Any]]", {}),
    ],
)
def test_none_inside_a_list_is_a_value(text, item):
    assert read(text)[0]["items"] == item


def test_none_inside_a_dict_is_a_value():
    about, _ = read("dict[str, int | None]")
    assert about["additionalProperties"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("int = 3", 3),
        ("int=3 - how many", 3),
        ("str = 'a=b'", "a=b"),
        ("dict[str, int] = {'a': 1}", {"a": 1}),
        ("str = 'a - b' - words", "a - b"),
        ("Literal['a=b', 'c'] = 'a=b'", "a=b"),
        ("float = 1", 1),
        ("Any = [1]", [1]),
        ("Optional[int] = None", None),
        ("str = None", None),
        ("bool = False", False),
    ],
)
def test_what_has_a_default_may_be_left_out(text, default):
    about, is_required = read(text)
    assert about["default"] == default
    assert not is_required


def test_the_description_is_what_stands_behind_the_first_dash():
    assert read("int - from 1 - 9 ")[0] == {"type": "integer", "description": "from 1 - 9"}
    assert read("int - ")[0] == {"type": "integer"}
    assert read("Literal['a - b'] - it's - [one")[0]["description"] == "it's - [one"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " - words",
        "the search query",
        "Strange",
        "list[int, str]",
        "dict[str]",
        "int[str]",
        "Literal",
        "Literal[()]",
        "Literal[1.5]",
        "Literal[x]",
        "list[*a]",
        "lambda: 0",
        "'str'",
        "str\x00",
        "str = ",
        "str = unquoted",
        "str = f()",
        "Literal['\ud800']",
        "0x" + "f" * 5000,
        "Literal[0x" + "f" * 5000 + "]",
        "[" * 5000,
        "-" * 5000 + "1",
        "|".join(["int"] * 20_000),
    ],
)
def test_what_is_no_type_is_refused_in_a_line(text):
    with pytest.raises(DefinitionError, match="field 'it'") as caught:
        read(text)
    assert caught.value.fix
    assert len(caught.value.message) < 150


@pytest.mark.parametrize(
    "text",
    [
        "int = 'five'",
        "int = True",
        "str = 5",
        "bool = 1",
        "list[int] = ['a']",
        "Literal['a', 'b'] = 'c'",
        "Optional[int] = 'five'",
        "list = {1, 2}",
        "str = b'x'",
        "float = 1e999",
        "int | str = []",
        "int = 0x" + "f" * 5000 + ".5",
    ],
)
def test_a_default_is_of_its_own_type(text):
    with pytest.raises(DefinitionError, match="field 'it'") as caught:
        read(text)
    assert caught.value.fix
    assert len(caught.value.message) < 200


def test_a_default_that_does_not_fit_is_reported_with_the_type():
    with pytest.raises(DefinitionError, match="the default 'five' is not of type int"):
        read("int = 'five' - how many")


def test_a_type_that_is_nearly_right_is_guessed():
    with pytest.raises(DefinitionError) as caught:
        read("strr - words")
    assert caught.value.fix == "did you mean str?"


def test_the_name_of_a_field_is_text():
    with pytest.raises(DefinitionError, match="the name of its field 1 is not a string"):
        read_short_form({1: "str"}, "here")


@pytest.mark.parametrize("message", [None, 3, {"type": "string"}, ["str"], b"str"])
def test_every_field_is_text(message):
    with pytest.raises(
        DefinitionError, match=r"here: its field 'query' is .*, not a string"
    ) as caught:
        read_short_form({"many": "int", "query": message}, "here")
    assert "write every field as a string" in caught.value.fix


_WORDS = ["str", "int", "bool", "list", "dict", "None", "Any", "Literal", "Optional", "Union"]
_VALUES = ["x", "'a'", "1", "-1", "1e999", "{1, 2}", "b'x'", "0x" + "f" * 5000, "\ud800"]
_SIGNS = ["[", "]", "(", ")", ", ", " | ", " = ", " - ", "{", "}", "...", "*", ".", "\\"]
_PIECES = (*_WORDS, *_VALUES, *_SIGNS)


@given(st.text() | st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
@example("float = 1e999")
@example("str = {1, 2}")
@example("str = b'x'")
@example("str - \ud800")
def test_any_text_gives_a_json_schema_or_a_definition_error(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of what looks wrong in the text
        try:
            contract = ToolContract(name="search", schema={"it": text}, description="Search.")
        except DefinitionError:
            return
    written = json.dumps(contract.parameters, allow_nan=False)
    assert json.loads(written) == contract.parameters
    SchemaValidator(contract.parameters, "here")
    assert list(contract.parameters["properties"]) == ["it"]


@pytest.mark.parametrize(
    "sign",
    [" - ", " \u2013 ", " \u2014 ", "\u2014", ": ", " : "],
    ids=["-", "en", "em", "tight", ":", " :"],
)
def test_a_dash_of_any_length_or_a_colon_separates_the_description(sign):
    schema, is_required = read(f"Literal['a: b', 'c \u2013 d'] = 'a: b'{sign}one - or two: parts")
    assert schema["description"] == "one - or two: parts"
    assert (schema["enum"], schema["default"]) == (["a: b", "c \u2013 d"], "a: b")
    assert not is_required
