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

from satchel.diagnostics import Severity
from satchel.formats import config_fields, mcp_json, open_plugin_manifest, read_plugin
from satchel.formats import toolkit_manifest as reader
from satchel.formats.manifest_schemas import MANIFEST_SCHEMAS
from satchel.mcp_servers import server_declarations
from satchel.settings import Limits
from satchel.sources import Precedence
from satchel.sources.selection import parse_selection

ROOT = Path(__file__).parents[2]
TOOLKIT = MANIFEST_SCHEMAS["toolkit"]()
SATCHEL = MANIFEST_SCHEMAS["satchel"]()


def accepts(schema, value):
    return jsonschema_rs.validator_for(schema).is_valid(value)


def errors(text):
    found = read_plugin(text.encode(), "demo", "toolkit.yaml", Limits())
    return [item for item in found.diagnostics if item.severity is Severity.ERROR]


def fields(schema):
    return set(schema["properties"])


def test_each_schema_has_the_fields_that_its_reader_knows():
    later = set(reader._LATER_FIELDS)
    assert fields(TOOLKIT) == {*reader._FIELDS, *later}
    group = TOOLKIT["properties"]["groups"]["anyOf"][1]["items"]
    assert fields(group) == set(reader._GROUP_FIELDS)
    config = TOOLKIT["properties"]["config"]["anyOf"][1]["items"]
    assert fields(config) == set(config_fields._ALL_KEYS)
    server = SATCHEL["properties"]["mcp"]["additionalProperties"]
    assert fields(server) == set(server_declarations._KEYS)
    plugin = MANIFEST_SCHEMAS["plugin"]()
    assert fields(plugin) == set(open_plugin_manifest._FIELDS)
    local, remote = MANIFEST_SCHEMAS["mcp"]()["properties"]["mcpServers"]["additionalProperties"][
        "anyOf"
    ]
    assert fields(local) == set(mcp_json._FIELDS["stdio"])
    assert fields(remote) == set(mcp_json._REMOTE)


def test_the_keys_of_satchel_toml_are_those_that_the_reader_names():
    for scope in (Precedence.USER, Precedence.PROJECT):
        (problem,) = parse_selection("satchel.toml", scope, b"zoo = 1").diagnostics
        known = set(re.findall(r"[a-z_]+", problem.fix.removeprefix("the keys are "))) - {"and"}
        assert known <= fields(SATCHEL)


@pytest.mark.parametrize("schema", MANIFEST_SCHEMAS)
def test_every_field_is_described_in_a_schema_that_is_valid(schema):
    made = MANIFEST_SCHEMAS[schema]()
    jsonschema_rs.meta.validate(made)
    assert json.loads(json.dumps(made)) == made
    for name, part in made["properties"].items():
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


TEXT = st.text(alphabet="abc xyz-", max_size=9)
SWITCH = st.sampled_from([True, False, "yes", "off"])
NAME = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True).filter(
    lambda name: name not in {"basic", "no", "on", "off", "yes", "true", "false", "null"}
)
GROUP = st.fixed_dictionaries(
    {},
    optional={
        "description": TEXT,
        "notes": TEXT,
        "active": SWITCH,
        "tools": st.lists(TEXT, max_size=3),
        "skills": TEXT,
    },
)
FIELD = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "secret", "path", "boolean"])},
        optional={"description": TEXT, "required": SWITCH},
    ),
    st.fixed_dictionaries({"type": st.just("integer"), "min": st.integers(0, 5)}),
    st.fixed_dictionaries(
        {"type": st.just("choice"), "options": st.lists(NAME, min_size=1, max_size=3)}
    ),
    st.none(),
)
MANIFEST = st.fixed_dictionaries(
    {"name": NAME},
    optional={
        "version": st.floats(0, 9, allow_nan=False) | TEXT,
        "description": TEXT,
        "keywords": st.lists(TEXT, max_size=3) | TEXT,
        "active": SWITCH,
        "groups": st.dictionaries(NAME, GROUP | st.none(), max_size=3),
        "config": st.dictionaries(st.from_regex(r"[a-z_]{2,8}", fullmatch=True), FIELD, max_size=3),
        "isolation": st.sampled_from(["none", "process"]),
    },
)


@given(MANIFEST)
def test_what_the_schema_accepts_the_reader_takes(value):
    assert accepts(TOOLKIT, value)
    assert errors(yaml.safe_dump(value)) == []


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
        "name: demo\nkeywords: {a: b}",
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
    ],
)
def test_a_wrong_satchel_toml_is_marked(text):
    assert not accepts(SATCHEL, tomllib.loads(text))
