"""The JSON Schemas for editors say what the readers take."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from satchel.configuration.selection_reader import parse_selection
from satchel.diagnostics import Severity
from satchel.errors import DefinitionError
from satchel.formats import config_fields, open_plugin_manifest
from satchel.formats import toolkit_manifest as reader
from satchel.formats.manifest_schemas import MANIFEST_SCHEMAS
from satchel.formats.mcp_json import MCP_SCHEMAS
from satchel.formats.mcp_json_reader import read_mcp
from satchel.formats.open_plugin_manifest import PLUGIN_SCHEMAS
from satchel.formats.table_model import validated
from satchel.formats.toolkit_manifest import read_plugin
from satchel.formats.worker_table import WorkerTable
from satchel.mcp_servers import server_declarations
from satchel.settings import Limits
from satchel.sources.search_roots import Precedence

ROOT = Path(__file__).parents[2]
TOOLKIT = MANIFEST_SCHEMAS["toolkit"]()
SATCHEL = MANIFEST_SCHEMAS["satchel"]()


def accepts(schema, value):
    return jsonschema_rs.validator_for(schema).is_valid(value)


def errors(text):
    result = read_plugin(text.encode(), "demo", "toolkit.yaml", Limits())
    return [item for item in result.diagnostics if item.severity is Severity.ERROR]


def fields(schema):
    return set(schema["properties"])


def test_each_schema_has_the_fields_that_its_reader_knows():
    later = set(reader._LATER_FIELDS)
    assert fields(TOOLKIT) == {*reader._FIELDS, *later}
    assert fields(TOOLKIT["$defs"]["group"]) == set(reader._GROUP_FIELDS)
    assert fields(TOOLKIT["$defs"]["field"]) == set(config_fields._ALL_KEYS)
    plugin = MANIFEST_SCHEMAS["plugin"]()
    assert fields(plugin) == set(open_plugin_manifest._FIELDS)


def test_the_keys_of_satchel_toml_are_those_that_the_reader_names():
    for scope in (Precedence.USER, Precedence.PROJECT):
        (problem,) = parse_selection("satchel.toml", scope, b"zoo = 1").diagnostics
        named_keys = set(re.findall(r"[a-z_]+", problem.fix.removeprefix("the keys are "))) - {
            "and"
        }
        assert named_keys <= fields(SATCHEL)


def test_an_editor_shows_a_sentence_in_place_of_a_pattern():
    shown = TOOLKIT["properties"]["dependencies"]["items"]["patternErrorMessage"]
    assert shown == "It is not valid here. Expected: A requirement, such as httpx>=0.28."
    assert "letters and digits" in TOOLKIT["properties"]["name"]["patternErrorMessage"]


@pytest.mark.parametrize("schema", MANIFEST_SCHEMAS)
def test_every_field_is_described_in_a_schema_that_is_valid(schema):
    created = MANIFEST_SCHEMAS[schema]()
    jsonschema_rs.meta.validate(created)
    assert json.loads(json.dumps(created)) == created
    for name, part in created["properties"].items():
        assert part.get("description") or part.get("properties") or name == "mcpServers", name


def test_the_manifests_that_we_ship_are_accepted():
    paths = [*ROOT.glob("plugins/**/toolkit.yaml"), *ROOT.glob("src/**/toolkit.yaml")]
    assert len(paths) >= 2
    for path in paths:
        assert accepts(TOOLKIT, yaml.safe_load(path.read_text())), path


def test_the_examples_of_the_documentation_are_accepted():
    pages = (ROOT / "docs/reference").glob("*.md")
    blocks = [
        (language, text)
        for page in pages
        for language, text in re.findall(r"```(yaml|toml)\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    examples = [
        (TOOLKIT, value)
        for language, text in blocks
        if language == "yaml" and (value := yaml.safe_load(text.split("---\n")[-1]))
        if isinstance(value, dict) and value.keys() <= fields(TOOLKIT) and "name" not in value
    ]
    examples += [
        (SATCHEL, value)
        for language, text in blocks
        if language == "toml" and (value := tomllib.loads(text)).keys() <= fields(SATCHEL)
    ]
    assert len(examples) >= 4
    for schema, value in examples:
        assert accepts(schema, value), value


WORDS = st.sampled_from(
    ["a", "demo", "two words", "a:b", "a, b", "x.y", "", "3", "-1", "${HOME}", "./x", "../x", " "]
)
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)
PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)
ANYTHING = st.sampled_from(
    [None, 3, 1.5, True, "", "x", "yes", "a, b", "x y", [], ["x"], [3], [None], {}, {"a": None}]
)


def accepted(schema):
    """Generate values that one field's schema accepts, from the schema itself."""
    whole = {**schema, "$defs": TOOLKIT["$defs"]}
    return _generated(schema).filter(jsonschema_rs.validator_for(whole).is_valid)


def _generated(schema):
    if "$ref" in schema:
        return _generated(_meant(schema))
    if "allOf" in schema:
        return st.one_of(*map(_generated, _joined(schema)))
    if "anyOf" in schema and "properties" not in schema:
        return st.one_of(*map(_generated, schema["anyOf"]))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", "string")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return st.one_of(*(GENERATED[kind](schema) for kind in kinds))


def _joined(schema):
    """Return the one part of an `allOf`, or the parts of that, with the required keys of both."""
    part = _meant(*schema["allOf"])
    return [
        {**each, "required": [*each.get("required", ()), *schema["required"]]}
        for each in part.get("anyOf", [part])
    ]


def _meant(reference):
    return TOOLKIT["$defs"][reference["$ref"].removeprefix("#/$defs/")]


def _texts(schema):
    return _matching(schema["pattern"]) if "pattern" in schema else WORDS


def _lists(schema):
    return st.lists(_generated(schema["items"]), max_size=3)


def _objects(schema):
    if "properties" in schema:
        created = {key: _generated(part) for key, part in schema["properties"].items()}
        needed = {key: created.pop(key) for key in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional=created)
    names, values = schema.get("propertyNames", {}), schema.get("additionalProperties")
    keys = _matching(names["pattern"]) if "pattern" in names else NAMES
    return st.dictionaries(keys, _generated(values) if values else st.just({}), max_size=2)


GENERATED = {
    "string": _texts,
    "array": _lists,
    "object": _objects,
    "number": lambda _: st.floats(0.125, 99),
    "integer": lambda _: st.integers(-5, 99),
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}


def _matching(pattern):
    # In Python, `$` also matches before a last line end.
    return st.from_regex(pattern, alphabet=PRINTABLE).filter(lambda text: "\n" not in text)


def _toolkit_faults(value):
    text, name = yaml.safe_dump(value).encode(), value.get("name")
    result = read_plugin(text, name or "demo", "t", Limits(), entry_point="" if name else "demo")
    return [item.message for item in result.diagnostics]


def _satchel_faults(value):
    text = "".join(f"{key} = {_toml(part)}\n" for key, part in value.items()).encode()
    results = [parse_selection("s", scope, text).diagnostics for scope in Precedence]
    faults = [item.message for item in min(results, key=len)]
    for name, table in value.get("mcp", {}).items() if not faults else ():
        try:
            server_declarations.user_server(name, table, "s", {"HOME": "/home"})
        except DefinitionError as error:
            faults.append(error.message)
    if not faults:
        _, results = validated(WorkerTable, value.get("worker", {}))
        faults = list(results.values())
    return faults


def _toml(value):
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)} = {_toml(part)}" for key, part in value.items()]
        return "{" + ", ".join(parts) + "}"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


def _plugin_faults(value):
    result = open_plugin_manifest.read_open_plugin(json.dumps(value).encode(), "p", Limits())
    return [item.message for item in result.diagnostics]


def _mcp_faults(value):
    result = read_mcp(json.dumps(value).encode(), "m", Limits(), "1.0.0")
    return [item.message for item in result.diagnostics]


FAULTS = {
    "toolkit": (_toolkit_faults, {}),
    "satchel": (_satchel_faults, {}),
    "plugin": (_plugin_faults, {"$schema": next(iter(PLUGIN_SCHEMAS)), "name": "demo"}),
    "mcp": (_mcp_faults, {"$schema": next(iter(MCP_SCHEMAS)), "mcpServers": {}}),
}
"""What each reader says, and the smallest manifest that it takes."""

# Rules about two values, about hosts, and about fields of later versions.
BEYOND_A_SCHEMA = re.compile(
    "is called .* above|two .* are named|'min' is greater|the default is|not a field of 'config'"
    "|not read by this version|its url |needs a URL that|has a header twice"
    "|is not used for a field of type|a choice has no options|'(min|max)' is not a"
    "|a secret cannot have a default"
    "|cannot be forwarded|OAuth client|client credentials need|env-file cannot be read"
)
# An editor marks these although the reader takes them, because nobody means them: a switch, a
# number or an empty text where a reference, a module, a folder, a name or a choice belongs.
STRICTER = {"contract", "setup", "skills", "tools", "name", "pin"}
# The reader of servers ignores the values of these in a server of the other kind.
OF_ONE_KIND = {"headers", "oauth"}

FIELDS = [(name, key) for name, make in MANIFEST_SCHEMAS.items() for key in make()["properties"]]


@pytest.mark.parametrize(("name", "key"), FIELDS)
@given(data=st.data())
def test_what_a_schema_accepts_its_reader_takes(name, key, data):
    schema, (faults, smallest) = MANIFEST_SCHEMAS[name](), FAULTS[name]
    value = {**smallest, key: data.draw(accepted(schema["properties"][key]))}
    if name == "toolkit" and key == "dependencies":
        value["isolation"] = "process"
    assert accepts(schema, value)
    assert [fault for fault in faults(value) if not BEYOND_A_SCHEMA.search(fault)] == []


@pytest.mark.parametrize(("name", "key"), FIELDS)
@given(data=st.data())
def test_what_a_reader_takes_its_schema_accepts(name, key, data):
    schema, (faults, smallest) = MANIFEST_SCHEMAS[name](), FAULTS[name]
    created = data.draw(accepted(schema["properties"][key]))
    at, part, changed = data.draw(_one_value_changed(created, (key,)))
    value = {**smallest, key: changed}
    if name == "satchel" and (None in _leaves(value) or not _has_tables(value)):
        return  # there is no null in TOML; the file's reader leaves servers to another one
    if STRICTER & {*at} and not (part and isinstance(part, str | list | dict)):
        return
    if not (key == "mcp" and OF_ONE_KIND & {*at}) and not faults(value):
        assert accepts(schema, value)


@st.composite
def _one_value_changed(draw, value, at):
    """Generate a path in a value, the new part at that path, and the value with it."""
    parts = [*value.items()] if isinstance(value, dict) else []
    parts = [*enumerate(value)] if isinstance(value, list) else parts
    if not parts or draw(st.booleans()):
        part = draw(ANYTHING)
        return at, part, part
    step, below = draw(st.sampled_from(parts))
    item, part, changed = draw(_one_value_changed(below, (*at, str(step))))
    copy = value.copy()
    copy[step] = changed
    return item, part, copy


def _leaves(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] if not isinstance(value, dict | list) else [x for p in parts for x in _leaves(p)]


def _has_tables(value):
    servers = value.get("mcp", {})
    return isinstance(servers, dict) and all(isinstance(part, dict) for part in servers.values())


@pytest.mark.parametrize(
    "text",
    [
        "name: a b",
        "name: demo\nactive: perhaps",
        "name: demo\nisolation: container",
        "name: demo\ngroups: many",
        "name: demo\ngroups: {git: 3}",
        "name: demo\nconfig: {a: {type: text}}",
        "name: demo\ndependencies: httpx",
        "name: demo\nisolation: process\ndependencies: [--pre]",
        "name: demo\ntools: [{contract: a}]",
        "name: demo\nsetup: a b",
        "name: demo\nskills: ../other",
        "name: demo\nconfig: {a: {type: integer, min: b}}",
        "name: demo\nconfig: {a-b: {}}",
        "name: demo\nkeywords: {a: b}",
        "name: demo\ncompatible-with: [1.2.0]",
        "name: demo\ndescription: [a]",
    ],
)
def test_what_the_reader_refuses_the_schema_marks(text):
    assert errors(text)
    assert not accepts(TOOLKIT, yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "enable = 'pdf'",
        "[skills]\nlast = []",
        "find_folders = 0",
        "mcp = 3",
        "[mcp.a]\ncommand = 'x'\npin = 'never'",
        "[mcp.a]\ncommand = 'x'\nargs = 'y'",
        "[mcp.a]\ntimeout = 3",
        "[mcp.a]\ncommand = 'x'\nurl = 'https://example.com'",
    ],
)
def test_a_wrong_satchel_toml_is_marked(text):
    assert not accepts(SATCHEL, tomllib.loads(text))
