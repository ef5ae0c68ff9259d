import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.diagnostics import has_error
from satchel.formats.code_references import ContractReference
from satchel.formats.toolkit_manifest import GroupManifest, PluginManifest, read_plugin
from satchel.settings import Limits


def read(text, folder="maps"):
    return read_plugin(text.encode(), folder, "maps/toolkit.yaml", Limits())


def places(reading):
    return [(item.code, item.where.line) for item in reading.diagnostics]


def group(name, **given_fields):
    plain = {"description": "", "notes": "", "active": False}
    plain |= dict.fromkeys(["tools", "skills", "requires"], ())
    return GroupManifest(name=name, **(plain | given_fields))


def test_a_name_is_all_that_a_plugin_needs():
    reading = read("name: maps\n")
    assert reading.diagnostics == ()
    assert reading.value == PluginManifest(
        name="maps",
        version="",
        description="",
        author="",
        license="",
        homepage="",
        keywords=(),
        notes="",
        active=False,
        groups=(),
        tools="tools",
        skills="skills",
    )


def test_every_field_is_read():
    reading = read(
        "name: maps\nversion: 1.10\ndescription: Maps.\nauthor: Me\nlicense: MIT\n"
        "homepage: here\nkeywords: [geo, routes]\n"
        f"compatible-with: [{'0a' * 32}]\nnotes: |\n  Geocode first.\nactive: on\n"
        "groups:\n  routes:\n    description: Routes.\n    notes: n\n    active: yes\n"
        "    tools: [route, distance]\n    skills: [driving]\n"
        "    requires: [KEY]\n  empty:\ntools: code.geo.py\nskills: ./docs/skills/\n"
    )
    assert reading.diagnostics == ()
    assert reading.value == PluginManifest(
        name="maps",
        version="1.10",
        description="Maps.",
        author="Me",
        license="MIT",
        homepage="here",
        keywords=("geo", "routes"),
        compatible_with=("0a" * 32,),
        notes="Geocode first.",
        active=True,
        groups=(
            group(
                "routes",
                description="Routes.",
                notes="n",
                active=True,
                tools=("route", "distance"),
                skills=("driving",),
                requires=("KEY",),
            ),
            group("empty"),
        ),
        tools="code.geo",
        skills="docs/skills",
    )


def test_groups_may_be_a_list_and_words_may_be_text_with_commas():
    plugin = read(
        "name: maps\nkeywords: a, b,\ngroups:\n- name: x\n  tools: f\n"
        "  skills: a, b\n  requires: ONE,TWO\n- name: y\n"
    ).value
    assert plugin.keywords == ("a", "b")
    assert plugin.groups == (
        group("x", tools=("f",), skills=("a", "b"), requires=("ONE", "TWO")),
        group("y"),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version: 1\n", [("plugin-field-missing", None)]),
        ("name:\n", [("plugin-field-missing", 1)]),
        ("name: ' '\n", [("plugin-field-missing", 1)]),
        ("name: [a]\n", [("plugin-field-type", 1)]),
        ("name: -x\n", [("plugin-name-shape", 1)]),
        ("name: a/b\n", [("plugin-name-shape", 1)]),
        ("name: basic\n", [("plugin-name-shape", 1)]),
        ("name: maps\ngroups:\n  basic: {}\n", [("plugin-field-type", 3)]),
        ("name: maps\ngroups:\n- name: basic\n", [("plugin-field-type", 3)]),
        ("name: a: b\n", [("yaml-repaired", 1), ("plugin-name-shape", 1)]),
        ("name: maps\ngroups:\n  a:\n    notes: b: c\n", [("yaml-invalid", 4)]),
        ("name: maps\nkeywords: [a\nversion: 1\n", [("yaml-invalid", 3)]),
        ("name: maps\ntools: [a: b\n", [("yaml-invalid", 3)]),
        ("name: maps\nrequires: {a\nversion: 1\n", [("yaml-invalid", 3)]),
        ("name: maps\nversion: [1]\n", [("plugin-field-type", 2)]),
        ("name: maps\nactive: maybe\n", [("plugin-field-type", 2)]),
        ("name: maps\nactive: [yes]\n", [("plugin-field-type", 2)]),
        ("name: maps\nkeywords: {a: b}\n", [("plugin-field-type", 2)]),
        ("name: maps\nkeywords: [a, [b]]\n", [("plugin-field-type", 2)]),
        ("name: maps\ncompatible-with: ['1.2']\n", [("plugin-field-type", 2)]),
        ("name: maps\ngroups: x\n", [("plugin-field-type", 2)]),
        ("name: maps\ngroups:\n  a: x\n", [("plugin-field-type", 3)]),
        ("name: maps\ngroups:\n- x\n", [("plugin-field-type", 3)]),
        ("name: maps\ngroups:\n-\n", [("plugin-field-type", 3)]),
        ("name: maps\ngroups:\n- notes: x\n", [("plugin-field-type", 3)]),
        ("name: maps\ngroups:\n  -a: {}\n", [("plugin-field-type", 3)]),
        ("name: maps\ngroups:\n  a:\n    name: b\n", [("plugin-field-type", 4)]),
        ("name: maps\ngroups:\n  a:\n    notes: []\n", [("plugin-field-type", 4)]),
        ("name: maps\ngroups:\n  a:\n    skills: {b: c}\n", [("plugin-field-type", 4)]),
        ("name: maps\ngroups:\n  a:\n    requires: [[K]]\n", [("plugin-field-type", 4)]),
        ("name: maps\ngroups:\n- name: a\n- name: a\n", [("plugin-field-type", 2)]),
        ("name: maps\ntools: ../tools\n", [("plugin-field-type", 2)]),
        ("name: maps\ntools: ''\n", [("plugin-field-type", 2)]),
        ("name: maps\ntools: .tools\n", [("plugin-field-type", 2)]),
        ("name: maps\nskills: /etc\n", [("plugin-field-type", 2)]),
        ("name: maps\nskills: a/../../b\n", [("plugin-field-type", 2)]),
        ("name: maps\nskills: a\\b\n", [("plugin-field-type", 2)]),
        ("name: maps\nskills: C:x\n", [("plugin-field-type", 2)]),
        ("name: maps\nskills: ''\n", [("plugin-field-type", 2)]),
        ("name: maps\nskills: a\u202eb\n", [("plugin-field-type", 2)]),
        ("- a\n", [("yaml-not-a-mapping", 1)]),
        ("name: &a maps\n", [("yaml-unsafe", 1)]),
        ("name: a\0\n", [("plugin-unreadable", 1)]),
    ],
)
def test_a_plugin_that_cannot_be_understood_is_refused_with_its_line(text, expected):
    reading = read(text)
    assert reading.value is None
    assert places(reading) == expected
    assert all(item.fix for item in reading.diagnostics)


def test_another_name_than_the_folders_is_only_worth_a_note():
    reading = read("name: maps\n", folder="acme-maps")
    assert reading.value
    assert places(reading) == [("plugin-name-folder", 1)]


def test_a_value_that_wants_quotes_is_read_as_if_it_had_them():
    reading = read("name: maps\ndescription: Maps: all of them\nnotes: [beta] b: c\nactive: on\n")
    assert (reading.value.description, reading.value.notes) == ("Maps: all of them", "[beta] b: c")
    assert reading.value.active
    assert places(reading) == [("yaml-repaired", 2), ("yaml-repaired", 3)]


def test_an_unknown_field_is_reported_and_a_typo_is_recognised():
    reading = read("name: maps\nverison: 1\nodd: x\ngroups:\n  a:\n    tool: [x]\n    config: y\n")
    assert reading.value
    assert places(reading) == [("plugin-field-unknown", line) for line in (2, 3, 6, 7)]
    fixes = [item.fix for item in reading.diagnostics]
    assert fixes == ["Write 'version:'.", "Remove it.", "Write 'tools:'.", "Remove it."]


def test_a_field_of_a_later_version_says_so():
    reading = read("name: maps\nrequires: {a: b}\n")
    assert reading.value
    assert places(reading) == [("plugin-field-unknown", 2)]
    assert "not read by this version" in reading.diagnostics[0].message


def test_every_problem_is_reported_at_once():
    reading = read("nmae: maps\nactive: maybe\nskills: /x\ngroups:\n  a: [b]\n")
    assert [line for _, line in places(reading)] == [None, 1, 2, 3, 5]


@given(st.binary() | st.text().map(lambda text: ("name: x\n" + text).encode("utf-8", "replace")))
def test_no_bytes_make_the_reader_raise(data):
    reading = read_plugin(data, "x", "toolkit.yaml", Limits())
    assert (reading.value is None) == has_error(reading.diagnostics)


def test_tools_may_be_a_list_of_names_and_functions():
    reading = read(
        "name: maps\ntools:\n- route\n- {name: far, function: 'code.geo.py:distance'}\n"
        "- function: near\n"
    )
    assert reading.diagnostics == ()
    assert [(t.name, t.module, t.function) for t in reading.value.listed_tools] == [
        ("route", "tools", ""),
        ("far", "code.geo", "distance"),
        ("near", "tools", "near"),
    ]
    assert reading.value.modules == ("tools", "code.geo")


@pytest.mark.parametrize(
    "item",
    [
        "[x]",
        "{}",
        "a b",
        "{name: a, function: '../x:y'}",
        "{function: ''}",
        "{name: a, function: 'm:'}",
    ],
)
def test_an_item_of_the_tools_that_names_none_is_refused_with_its_line(item):
    reading = read(f"name: maps\ntools:\n- ok\n- {item}\n")
    assert reading.value is None
    assert {(code, line) for code, line in places(reading)} == {("plugin-field-type", 4)}


def test_two_chosen_tools_of_one_name_are_refused():
    assert places(read("name: maps\ntools: [a, {name: a, function: b}]\n")) == [
        ("plugin-field-type", 2)
    ]


@pytest.mark.parametrize(
    ("text", "module"), [("", ""), ("setup: prepare.py\n", "prepare"), ("setup: a.b\n", "a.b")]
)
def test_the_module_that_is_run_at_installation_may_be_named(text, module):
    reading = read(f"name: maps\n{text}")
    assert (reading.value.setup, reading.diagnostics) == (module, ())


@pytest.mark.parametrize("value", ["../x", "a b", "[a]", "/x"])
def test_a_setup_that_is_no_module_is_refused(value):
    assert places(read(f"name: maps\nsetup: {value}\n")) == [("plugin-field-type", 2)]


# ---- as an extension of an open plugin ----------------------------------------------------


def test_an_extension_has_the_name_of_its_plugin_and_no_say_in_its_description():
    text = (
        "name: other\nversion: 2\nauthor: me\nkeywords: [a]\nskills: more\n"
        "notes: n\nactive: yes\ntools: code\ngroups:\n  g:\n"
    )
    reading = read_plugin(text.encode(), "demo", "x", Limits(), extends="demo")
    plugin = reading.value
    assert (plugin.name, plugin.notes, plugin.active, plugin.tools) == ("demo", "n", True, "code")
    assert [item.name for item in plugin.groups] == ["g"]
    assert places(reading) == [("plugin-field-unknown", line) for line in (1, 2, 3, 4, 5)]


def test_a_version_in_an_extension_is_reported():
    reading = read_plugin(b"version: 2\nskills: x\n", "demo", "x", Limits(), extends="demo")
    assert ["plugin.json has it" in item.message for item in reading.diagnostics] == [True, False]


def test_an_extension_may_say_nothing():
    reading = read_plugin(b"{}", "demo", "x", Limits(), extends="demo")
    assert (reading.value.name, reading.diagnostics) == ("demo", ())


# ---- where its code runs ------------------------------------------------------------------


def test_a_plugin_may_ask_for_a_process_of_its_own_and_what_is_installed_there():
    reading = read("name: maps\nisolation: process\ndependencies: [httpx>=0.28, rich]\n")
    assert reading.diagnostics == ()
    assert (reading.value.isolation, reading.value.dependencies) == (
        "process",
        ("httpx>=0.28", "rich"),
    )
    assert (read("name: maps\n").value.isolation, read("name: maps\n").value.dependencies) == (
        "none",
        (),
    )


def test_another_word_for_it_is_refused():
    assert places(read("name: maps\nisolation: thread\n")) == [("plugin-field-type", 2)]


def test_an_empty_list_serves_no_tools():
    reading = read("name: maps\ntools: []\n")
    assert reading.diagnostics == ()
    assert (reading.value.modules, reading.value.listed_tools) == (("",), ())


@pytest.mark.parametrize(
    "requirement",
    [
        "httpx",
        "httpx>=0.28,<1",
        "a[b, c-d] == 1.* ; python_version < '3.13'",
        "a (>=1)",
        "a @ https://example.com/a-1.whl ; os_name == 'posix'",
    ],
)
def test_a_dependency_is_a_requirement(requirement):
    reading = read(f'name: maps\nisolation: process\ndependencies: ["{requirement}"]\n')
    assert (reading.value.dependencies, reading.diagnostics) == ((requirement,), ())


@pytest.mark.parametrize(
    "requirement",
    [
        *("-e .", "--index-url https://x", "-rfile", "not one", "", "a;", "a>=", ">=1"),
        *("a @ http://x/a.whl", "a @ file:///a", "git+https://x/a", "../a", "a --hash=x"),
    ],
)
def test_what_is_no_requirement_is_refused_with_its_line(requirement):
    text = f'name: maps\nisolation: process\ndependencies:\n- httpx\n- "{requirement}"\n'
    assert places(read(text)) == [("plugin-field-type", 5)]


@pytest.mark.parametrize("value", ["httpx>=0.28,<1", "{a: b}"])
def test_dependencies_are_a_list_and_no_text_that_is_taken_apart(value):
    text = f"name: maps\nisolation: process\ndependencies: {value}\n"
    assert places(read(text)) == [("plugin-field-type", 3)]


def test_dependencies_without_isolation_are_reported():
    reading = read("name: maps\ndependencies: [httpx]\n")
    assert [(d.code, d.where.line) for d in reading.diagnostics] == [("plugin-field-unknown", 2)]
    assert reading.value.dependencies == ("httpx",)


def test_a_group_that_requires_what_is_not_declared_is_reported_with_the_near_name():
    text = "name: maps\nconfig: {api_key: {}}\ngroups:\n  g:\n    requires: [API_KEY, apikey]\n"
    (problem,) = read(text).diagnostics
    assert (problem.code, problem.severity, problem.where.line, problem.fix) == (
        "plugin-field-unknown",
        "warning",
        5,
        "Write 'api_key'.",
    )


def test_a_group_may_require_anything_where_nothing_is_declared():
    assert read("name: maps\ngroups: {g: {requires: [apikey]}}\n").diagnostics == ()


def test_what_could_be_read_of_a_manifest_that_cannot_be_used_is_kept():
    text = "name: maps\nactive: maybe\nnotes: guide.md\nsetup: 5x\ntools: 5x\nskills: /\n"
    reading = read(text)
    assert (reading.value, reading.partial.notes, reading.partial.modules) == (
        None,
        "guide.md",
        ("tools",),
    )
    assert (reading.partial.setup, reading.partial.skills) == ("", "skills")


def test_the_lines_of_what_a_manifest_names_are_known():
    text = "name: m\nnotes: a.md\ngroups:\n  - name: g\n    notes: b.md\ntools:\n  - x\n"
    manifest = read(text).value
    assert manifest.notes_files == {"a.md": 2, "b.md": 5}
    assert manifest.line(*manifest.listed_tools[0].at) == 7
    assert (manifest.line("tools", "5", "name"), manifest.line("skills")) == (6, None)


@pytest.mark.parametrize(
    "written",
    [
        "contract: contracts:SEARCH",
        "contract: 'contracts.py:SEARCH'",
        "contract: ['contracts:SEARCH']",
        "contract:\n- contracts:SEARCH\n- contracts:SEARCH",
        "tools: contracts\ncontract: SEARCH",
    ],
)
def test_contracts_are_named_by_module_and_name(written):
    reading = read(f"name: maps\n{written}\n")
    assert reading.diagnostics == ()
    assert reading.value.contracts == (ContractReference(module="contracts", name="SEARCH"),)
    assert reading.value.contract_modules == ("contracts",)


def test_the_modules_of_contracts_are_none_of_tools():
    reading = read("name: maps\ncontract: [rules:A, more.rules:B, rules:C]\n")
    assert reading.value.modules == ("tools",)
    assert reading.value.contract_modules == ("rules", "more.rules")
    assert [reading.value.line(*it.at) for it in reading.value.contracts] == [2, 2, 2]


def test_a_contract_beside_a_tool_is_that_of_the_tool():
    reading = read(
        "name: maps\ncontract: [rules:FAR, NEAR]\ntools:\n"
        "- {name: far, contract: rules:FAR}\n- name: route\n"
        "- function: geo:near\n  contract: NEAR\n"
    )
    assert reading.diagnostics == ()
    assert reading.value.contracts == (
        ContractReference(module="rules", name="FAR", tool="far"),
        ContractReference(module="geo", name="NEAR", tool="near"),
        ContractReference(module="tools", name="NEAR"),
    )
    assert [reading.value.line(*it.at) for it in reading.value.contracts] == [4, 7, 2]


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("contract: {a: b}", 2),
        ("contract: [[a]]", 2),
        ("contract: a b:C", 2),
        ("contract: ../rules:C", 2),
        ("contract: 'rules:'", 2),
        ("contract:\n- rules:A\n- rules:a-b", 4),
        ("tools:\n- name: a\n  contract: rules:a.b", 4),
        ("tools:\n- name: a\n  contract: ''", 4),
        ("tools:\n- name: a\n  contract: [rules:A]", 4),
    ],
)
def test_what_names_no_contract_is_refused_on_its_line(written, line):
    reading = read(f"name: maps\n{written}\n")
    assert reading.value is None
    assert places(reading) == [("plugin-field-type", line)]


def test_an_open_plugin_names_its_contracts_in_its_extension():
    reading = read_plugin(b"contract: rules:A\n", "maps", "toolkit.yaml", Limits(), extends="maps")
    assert reading.diagnostics == ()
    assert reading.value.contracts == (ContractReference(module="rules", name="A"),)
