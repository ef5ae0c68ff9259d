"""The fields of a plugin's configuration, declared and applied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import DefinitionError
from satchel.formats.config_fields import ConfigField
from satchel.formats.toolkit_manifest import read_plugin
from satchel.settings import Limits

CANARY = "s3cr3t-canary"


def read(text):
    return read_plugin(f"name: maps\n{text}".encode(), "maps", "toolkit.yaml", Limits())


def places(reading):
    return [(item.code, item.where.line) for item in reading.diagnostics]


def test_a_field_without_a_word_is_a_text_that_is_required():
    reading = read("config:\n  base:\n")
    assert reading.diagnostics == ()
    assert reading.value.config == (ConfigField(name="base"),)


def test_every_key_of_a_field_is_read():
    reading = read(
        "config:\n"
        "  api_key: {type: secret, description: The key., min: 4}\n"
        "  retries: {type: integer, default: 2, min: -1, max: 9}\n"
        "  rate: {type: float, default: '0.5', max: 1.5}\n"
        "  loud: {type: boolean, default: off}\n"
        "  unit: {type: choice, options: [C, F, C], required: false}\n"
        "  root: {type: path, must_exist: yes, default: ~/x}\n"
    )
    assert reading.diagnostics == ()
    assert reading.value.config == (
        ConfigField(name="api_key", type="secret", description="The key.", min=4),
        ConfigField(name="retries", type="integer", default=2, required=False, min=-1, max=9),
        ConfigField(name="rate", type="float", default=0.5, required=False, max=1.5),
        ConfigField(name="loud", type="boolean", default=False, required=False),
        ConfigField(name="unit", type="choice", required=False, options=("C", "F")),
        ConfigField(name="root", type="path", default="~/x", required=False, must_exist=True),
    )


def test_a_list_says_the_same_as_a_mapping():
    listed = read("config:\n  - name: a\n    type: integer\n  - {name: b}\n")
    assert listed.value.config == read("config:\n  a: {type: integer}\n  b:\n").value.config


def test_a_default_makes_a_field_optional_unless_it_says_otherwise():
    (field,) = read("config: {a: {default: x, required: true}}\n").value.config
    assert field.required


def test_everything_that_is_wrong_is_reported_at_once_with_its_line_and_the_nearest_word():
    reading = read(
        "config:\n"
        "  a: {type: intger}\n"
        "  b: {optons: [x]}\n"
        "  c: {type: integer, min: low}\n"
        "  d: {type: choice}\n"
        "  e: {type: integer, default: many}\n"
        "  f: word\n"
        "  g-h: {}\n"
        "  i: {type: integer, min: 5, max: 1}\n"
        "  j: {required: maybe, default: [x]}\n"
        "  A: {}\n"
    )
    assert reading.value is None
    wrong, unknown = "plugin-field-type", "plugin-field-unknown"
    assert sorted(places(reading), key=str) == sorted(
        [
            (wrong, 2),  # two fields that differ by capitals
            (wrong, 3),
            (unknown, 4),
            (wrong, 5),
            (wrong, 6),
            (wrong, 7),
            (wrong, 8),
            (wrong, 9),
            (wrong, 10),
            (wrong, 11),
            (wrong, 11),
        ],
        key=str,
    )
    fixes = "\n".join(item.fix for item in reading.diagnostics)
    assert "Write 'type: integer'." in fixes
    assert "Write 'options:'." in fixes


def test_a_secret_has_no_default_and_it_is_neither_used_nor_shown():
    reading = read(f"config: {{key: {{type: secret, default: {CANARY}}}}}\n")
    assert places(reading) == [("plugin-field-unknown", 2)]
    assert reading.value.config == (ConfigField(name="key", type="secret"),)
    assert CANARY not in repr(reading)


@pytest.mark.parametrize("spelling", ["secret: true", "secret: yes", "secret: 1, type: integer"])
def test_a_field_that_is_called_secret_otherwise_is_one_and_the_right_form_is_named(spelling):
    reading = read(f"config: {{key: {{{spelling}}}}}\n")
    assert reading.value.config == (ConfigField(name="key", type="secret"),)
    (warning,) = reading.diagnostics
    assert (warning.code, warning.severity) == ("plugin-field-unknown", "warning")
    assert "Write 'type: secret'" in warning.fix


def test_a_field_that_is_not_called_secret_is_none():
    reading = read("config: {key: {secret: false}, other: {secret: }}\n")
    assert [field.type for field in reading.value.config] == ["string", "string"]


def test_a_bound_that_means_nothing_for_the_type_is_a_warning():
    reading = read("config: {a: {type: boolean, min: 1, options: [x]}, b: {must_exist: true}}\n")
    assert reading.value
    assert {code for code, _ in places(reading)} == {"plugin-field-unknown"}
    assert len(reading.diagnostics) == 3


@pytest.mark.parametrize("value", ["text", "[word]", "{a: [x]}"])
def test_what_is_no_table_of_fields_is_refused(value):
    assert {code for code, _ in places(read(f"config: {value}\n"))} == {"plugin-field-type"}


BOUNDED = ConfigField(name="n", type="integer", min=0, max=9)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (ConfigField(name="a"), " as it is ", " as it is "),
        (ConfigField(name="a", type="secret"), "x", "x"),
        (BOUNDED, "7", 7),
        (BOUNDED, " +7 ", 7),
        (ConfigField(name="a", type="float"), "1", 1.0),
        (ConfigField(name="a", type="float"), "-.5e1", -5.0),
        *(
            (ConfigField(name="a", type="boolean"), word, True)
            for word in ("true", "YES", "on", "1")
        ),
        *(
            (ConfigField(name="a", type="boolean"), word, False)
            for word in ("false", "No", "off", "0")
        ),
        (ConfigField(name="a", type="choice", options=("C", "F")), "F", "F"),
        (ConfigField(name="a", type="path"), "~/x", "~/x"),
    ],
)
def test_text_becomes_a_value_of_the_type(field, text, value):
    assert field.parsed(text) == value
    assert type(field.parsed(text)) is type(value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((BOUNDED, value) for value in ("x", "", "1.5", "1_0", "٣", "10", "-1", 10, True, 1.0)),
        *(
            (ConfigField(name="a", type="float"), text)
            for text in ("nan", "inf", "1e999", "x", True)
        ),
        (ConfigField(name="a", type="float"), float("nan")),
        *((ConfigField(name="a", type="boolean"), value) for value in ("ja", "2", 1)),
        (ConfigField(name="a", type="choice", options=("C",)), "c"),
        (ConfigField(name="a", type="path"), "a\0b"),
        (ConfigField(name="a", type="path"), 5),
        (ConfigField(name="a"), 5),
        (ConfigField(name="a", min=3), "ab"),
        (ConfigField(name="a", type="secret", max=3), "abcd"),
    ],
)
def test_what_is_no_such_value_is_refused_with_what_is_allowed(field, value):
    with pytest.raises(DefinitionError) as caught:
        field.parsed(value)
    assert caught.value.fix == f"allowed is {field.allowed}"


def test_values_of_the_right_type_are_taken_as_they_are():
    assert BOUNDED.parsed(3) == 3
    assert ConfigField(name="a", type="boolean").parsed(True) is True
    secret = object()  # such as a SecretStr
    assert ConfigField(name="a", type="secret", min=3).parsed(secret) is secret


def test_what_is_allowed_is_said_in_words():
    assert BOUNDED.allowed == "a whole number from 0 to 9"
    assert ConfigField(name="a", type="float", min=0.5).allowed == "a number of at least 0.5"
    assert ConfigField(name="a", min=1, max=3).allowed == "text of 1 to 3 characters"
    assert ConfigField(name="a", type="secret", max=3).allowed == "text of at most 3 characters"
    assert ConfigField(name="a", type="choice", options=("C", "F")).allowed == "one of C, F"


@given(st.integers())
def test_every_whole_number_is_read_as_python_does(number):
    assert ConfigField(name="n", type="integer").parsed(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_read_as_python_does(number):
    assert ConfigField(name="n", type="float").parsed(repr(number)) == number


@given(st.sampled_from(["integer", "float", "boolean", "choice"]), st.text())
def test_an_invalid_text_is_refused_and_not_quoted(kind, text):
    with pytest.raises(DefinitionError) as caught:
        ConfigField(name="n", type=kind).parsed(text + CANARY)
    assert CANARY not in str(caught.value)
