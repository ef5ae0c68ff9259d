"""plugin.json by the letter of Agent Plugins 1.0.0; names begin with the section they test."""

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.diagnostics import Severity, has_error, strictly
from satchel.formats.open_plugin_manifest import (
    PLUGIN_SCHEMAS,
    OpenManifest,
    read_open_plugin,
)
from satchel.settings import Limits

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"


def read(data, **limits):
    if isinstance(data, dict):
        data = json.dumps(data, indent=1)
    raw = data.encode() if isinstance(data, str) else data
    return read_open_plugin(raw, "p/plugin.json", Limits(**limits))


def minimal(**fields):
    return {"$schema": SCHEMA, "name": "demo"} | fields


def faults(data, **limits):
    """Return what is wrong with a manifest that is rejected."""
    reading = read(data, **limits)
    assert reading.value is None
    assert has_error(reading.diagnostics)
    return [(item.code, item.where.line) for item in reading.diagnostics]


def reported(data):
    """Return what is said of a manifest that loads."""
    reading = read(data)
    assert reading.value is not None
    assert not has_error(reading.diagnostics)
    return [(item.code, item.where.line) for item in reading.diagnostics]


# ---- 5.2 Manifest object ------------------------------------------------------------------


def test_5_2_the_minimal_manifest_loads_without_a_word():
    assert read(minimal()).diagnostics == ()
    assert read(minimal()).value == OpenManifest(
        spec="1.0.0",
        name="demo",
        version="",
        description="",
        author="",
        homepage="",
        repository="",
        license="",
        keywords=(),
        extensions={},
    )


def test_5_2_every_permitted_field_is_read():
    reading = read(
        minimal(
            version="1.2.0",
            description="Brief.",
            author={"name": "A", "email": "a@b", "url": "u"},
            homepage="h",
            repository="r",
            license="MIT",
            keywords=["one", "two"],
            extensions={"com.example.client": {"setting": True}},
        )
    )
    assert reading.diagnostics == ()
    assert reading.value == OpenManifest(
        spec="1.0.0",
        name="demo",
        version="1.2.0",
        description="Brief.",
        author="A",
        homepage="h",
        repository="r",
        license="MIT",
        keywords=("one", "two"),
        extensions={"com.example.client": ("setting",)},
    )


@pytest.mark.parametrize("text", ["", "{", "name: demo", "{'name': 'demo'}", '{"name": NaN}'])
def test_5_2_the_manifest_must_be_json(text):
    assert faults(text) == [("plugin-json-invalid", 1)]


@pytest.mark.parametrize("text", ["[]", "null", '"demo"', "1", "true"])
def test_5_2_the_manifest_must_be_an_object(text):
    assert faults(text) == [("plugin-json-invalid", 1)]


def test_5_2_an_unknown_field_is_reported_and_ignored_and_the_plugin_loads():
    data = minimal(skills="./elsewhere", mcpServers={"x": {"type": "stdio"}}, hooks=3)
    assert reported(data) == [("plugin-field-unknown", line) for line in (4, 5, 10)]
    assert read(data).value == read(minimal()).value


def test_5_2_an_unknown_field_is_given_no_meaning():
    same = minimal(Name="other", descripton="no", schema="no")
    assert read(same).value == read(minimal()).value


def test_5_2_a_typo_is_reported_with_what_was_meant():
    (item,) = read(minimal(descripton="x")).diagnostics
    assert (item.code, item.fix) == ("plugin-field-unknown", 'Write "description".')


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, value) for name in ("version", "description", "homepage") for value in (1, None)),
        *((name, value) for name in ("repository", "license") for value in ([], {}, True)),
        *(("author", value) for value in ("A", [], None)),
        *(("keywords", value) for value in ("a, b", [1], ["a", None], {}, None)),
    ],
)
def test_5_2_a_field_of_the_wrong_type_is_fatal(field, value):
    assert faults(minimal(**{field: value})) == [("plugin-field-type", 4)]


def test_5_2_all_problems_are_reported_at_once():
    data = {"name": "No", "version": 1, "author": {"x": 1}, "extensions": 0, "surprise": 1}
    assert faults(data) == [
        ("plugin-field-missing", 1),
        ("plugin-name-shape", 2),
        ("plugin-field-type", 3),
        ("plugin-field-type", 5),
        ("plugin-field-unknown", 7),
        ("plugin-field-unknown", 8),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA.replace("1.0.0", "1.0.1"),
        SCHEMA.replace("1.0.0", "2.0.0"),
        SCHEMA + "#",
        SCHEMA.replace("https", "http"),
        SCHEMA.replace("plugin.schema", "mcp.schema"),
        "",
    ],
)
def test_5_2_a_version_that_is_not_known_is_rejected_and_reported_alone(schema):
    data = {"$schema": schema, "name": "Not A Name", "future": {}}
    assert faults(data) == [("plugin-schema-unknown", 2)]


def test_5_2_the_canonical_identifier_selects_the_rules():
    assert PLUGIN_SCHEMAS == {SCHEMA: "1.0.0"}
    assert read(minimal()).value.spec == "1.0.0"


def test_5_2_no_schema_is_retrieved(monkeypatch):
    def refuse(*_args, **_named):
        raise AssertionError("somebody went to the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert read(minimal()).value
    assert read(minimal() | {"$schema": "https://agent-plugins.org/other.json"}).value is None


# ---- 5.3 Required fields ------------------------------------------------------------------


@pytest.mark.parametrize("field", ["$schema", "name"])
def test_5_3_a_missing_required_field_is_fatal_and_named(field):
    data = minimal()
    del data[field]
    assert faults(data) == [("plugin-field-missing", 1)]
    assert field in read(data).diagnostics[0].message


@pytest.mark.parametrize("field", ["$schema", "name"])
@pytest.mark.parametrize("value", [None, 1, [], {}, True])
def test_5_3_a_required_field_of_the_wrong_type_is_fatal(field, value):
    data = minimal(**{field: value})
    assert [code for code, _ in faults(data)] == ["plugin-field-type"]
    assert field in read(data).diagnostics[0].message


# ---- 5.4 Metadata fields ------------------------------------------------------------------


@pytest.mark.parametrize("author", [{"name": 1}, {"email": None}, {"url": []}, {"twitter": "@a"}])
def test_5_4_an_author_has_only_name_email_and_url_and_all_are_text(author):
    assert faults(minimal(author=author)) == [("plugin-field-type", 5)]


@pytest.mark.parametrize("author", [{}, {"name": ""}, {"email": "e"}, {"url": "u"}])
def test_5_4_each_field_of_an_author_is_optional(author):
    assert reported(minimal(author=author)) == []


@pytest.mark.parametrize(
    "field",
    [
        {"version": "latest, mostly"},
        {"version": ""},
        {"homepage": "not a url"},
        {"repository": "git@host:x"},
        {"author": {"url": "::", "email": "nobody"}},
        {"license": "Mine, all mine"},
        {"keywords": []},
        {"description": "x" * 10_000},
    ],
)
def test_5_4_metadata_is_judged_by_its_type_alone(field):
    assert reported(minimal(**field)) == []


# ---- 5.5 Plugin name constraints ----------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["my-plugin", "acme.tools", "lint3r", "a", "9", "a.-b", "x" * 64, "basic"]
)
def test_5_5_a_valid_name_is_accepted(name):
    assert read(minimal(name=name)).value.name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "My-Plugin",
        "-start",
        "end-",
        ".a",
        "a.",
        "has--double",
        "too.many..dots",
        "x" * 65,
        "a b",
        "a_b",
        "a/b",
        "é",
        "a\n",
        "\uff11",
        "a\ud800",
    ],
)
def test_5_5_an_invalid_name_is_fatal(name):
    assert faults(minimal(name=name)) == [("plugin-name-shape", 3)]


# ---- 8.1 Manifest extension data ----------------------------------------------------------


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
def test_8_1_extensions_that_are_no_object_are_reported_and_ignored(value):
    assert reported(minimal(extensions=value)) == [("plugin-field-unknown", 4)]


@pytest.mark.parametrize(
    "data", [{}, {"a": [1, {"b": None}]}, {"skills": "../../etc"}, {"name": 1, "": {}}]
)
def test_8_1_what_another_namespace_holds_is_not_validated(data):
    assert reported(minimal(extensions={"com.example.client": data})) == []


def test_8_1_not_even_a_key_that_it_gives_twice():
    text = '{"$schema": "%s", "name": "demo", "extensions": {"com.x": {"a": 1, "a": 2}}}'
    assert reported(text % SCHEMA) == []


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
def test_8_1_the_value_of_a_namespace_must_be_an_object(value):
    assert faults(minimal(extensions={"com.example.client": value})) == [("plugin-field-type", 5)]


# ---- beyond the letter --------------------------------------------------------------------


@pytest.mark.parametrize(
    "twice",
    ['"name": "other"', '"extensions": {}, "extensions": {}', '"author": {"url": "", "url": ""}'],
)
def test_a_key_that_is_given_twice_is_fatal_as_two_clients_could_read_two_plugins(twice):
    text = f'{{"$schema": "{SCHEMA}",\n"name": "demo",\n{twice}}}'
    assert faults(text) == [("plugin-json-invalid", 3)]


def test_data_of_another_client_that_is_given_twice_is_only_reported():
    text = (
        f'{{"$schema": "{SCHEMA}", "name": "demo",\n"extensions": {{"a.b": {{}},\n"a.b": {{}}}}}}'
    )
    assert reported(text) == [("plugin-field-unknown", 3)]


def test_large_and_deep_data_of_another_client_rejects_nothing():
    data = {"deep": json.loads("[" * 150 + "]" * 150), "large": "x" * 900_000}
    assert reported(minimal(extensions={"com.example.client": data})) == []


def test_a_manifest_that_is_too_large_or_too_deep_is_fatal():
    assert faults(minimal(description="x" * 3000), json_file=2048) == [
        ("plugin-json-invalid", None)
    ]
    deep = '{"a":' * 10_000
    assert faults(deep) == [("plugin-json-invalid", 1)]


def test_an_author_is_held_to_the_letter_where_loading_is_lenient():
    result = strictly(read(minimal(surprise=1, extensions=[])).diagnostics)
    assert {item.severity for item in result} == {Severity.ERROR}


@given(
    st.binary()
    | st.dictionaries(
        st.sampled_from(["$schema", "name", "author", "keywords", "extensions", "version", "x"]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.sampled_from([SCHEMA, "demo"])
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_bytes_raise_and_nothing_is_rejected_without_a_reason(data):
    reading = read(data)
    assert (reading.value is None) is has_error(reading.diagnostics)


def test_real_manifests_load(shared):
    paths = sorted((shared / "corpus" / "github-awesome-copilot" / "plugins").glob("*/plugin.json"))
    assert len(paths) > 50
    for path in paths:
        reading = read_open_plugin(path.read_bytes(), str(path), Limits())
        assert (reading.value and reading.value.name, reading.diagnostics) == (path.parent.name, ())
