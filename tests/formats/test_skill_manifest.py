import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.diagnostics import Severity, Where, strictly
from satchel.formats.packed_text import Compressed, packed
from satchel.formats.skill_manifest import SkillManifest, read_listed_skill, read_skill
from satchel.settings import Limits

AWKWARD = Path(__file__).parents[1] / "data" / "skills"
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Cn"]), min_size=1)


def read(frontmatter, folder="pdf", body="Do it.\n", limits=Limits()):  # noqa: B008  frozen
    text = f"---\n{frontmatter}\n---\n{body}"
    return read_skill(text.encode("utf-8", "surrogatepass"), folder, "pdf/SKILL.md", limits)


def with_field(line):
    return read(f"name: pdf\ndescription: Reads PDF.\n{line}")


def test_a_skill_by_the_letter_of_the_format_is_read_without_a_word():
    reading = read(
        "name: pdf\ndescription: Reads PDF.\nlicense: MIT\ncompatibility: Needs Python.\n"
        "allowed-tools: Read Bash(git add:*)\nmetadata:\n  author: me\n  version: 1.0"
    )
    assert reading.diagnostics == ()
    skill = reading.value
    assert skill == SkillManifest(
        name="pdf",
        description="Reads PDF.",
        license="MIT",
        compatibility="Needs Python.",
        allowed_tools=("Read", "Bash(git add:*)"),
        metadata={"author": "me", "version": "1.0"},
        fields=skill.fields,
        body="Do it.\n",
    )
    assert list(skill.fields) == [
        "name",
        "description",
        "license",
        "compatibility",
        "allowed-tools",
        "metadata",
    ]


def test_what_is_not_given_is_none_or_empty():
    skill = read("name: pdf\ndescription: Reads PDF.\nmetadata:\nlicense:\nallowed-tools:").value
    assert (skill.license, skill.compatibility, skill.allowed_tools) == (None, None, ())
    assert skill.metadata == {}


@pytest.mark.parametrize(
    ("field", "is_restricting"), [("allowed-tools: []", True), ("license: MIT", False)]
)
def test_a_skill_restricts_tools_if_it_has_the_field_even_without_a_tool(field, is_restricting):
    assert with_field(field).value.is_restricting is is_restricting


def test_a_file_that_cannot_be_split_is_reported_as_such(codes, limits):
    reading = read_skill(b"# Title\n", "pdf", "pdf/SKILL.md", limits)
    assert reading.value is None
    assert codes(reading) == ["skill-no-frontmatter"]


# Names


def test_without_a_name_the_folders_name_serves(codes):
    reading = read("description: d")
    assert reading.value.name == "pdf"
    assert codes(reading) == ["skill-name-missing"]
    assert "name: pdf" in reading.diagnostics[0].fix


def test_a_folders_odd_name_serves_too_unless_it_is_unsafe(codes):
    odd = read("description: d", folder="My Skill")
    assert odd.value.name == "My Skill"
    assert codes(odd) == ["skill-name-missing", "skill-name-shape"]
    unsafe = read("description: d", folder="a\x1b[31m")
    assert unsafe.value is None
    assert "\x1b" not in "".join(map(str, unsafe.diagnostics))


@pytest.mark.parametrize(
    "name",
    [
        *("", "~", "null", "''", "' '", "{a: b}", "[a]"),
        *("'..'", "'-rf'", "../x", "\uff50df", "pd\u200bf"),
        *('"\\e[2J"', "a" * 300),
    ],
)
def test_a_name_that_could_pass_for_something_else_is_refused(name, codes):
    reading = read(f"name: {name}\ndescription: d")
    assert reading.value is None
    assert "skill-name-unsafe" in codes(reading)
    assert reading.diagnostics[0].where.line == 2


@pytest.mark.parametrize(
    "name",
    [
        *("PDF", "my_skill", "a--b", "zoom/mcp", "skills:pdf", "a:b/c", "3000.5", "a" * 65),
        *("Office™", "café", "技能\uff1a写作"),
    ],
)
def test_a_name_of_the_wrong_shape_loads_with_a_warning(name, codes):
    reading = read(f"name: {name}\ndescription: d", folder=name)
    assert reading.value.name == name
    assert codes(reading) == ["skill-name-shape"]


@pytest.mark.parametrize(
    ("name", "folder", "code", "fix"),
    [
        ("Agent Development", "agent-development", "shape", "Write 'name: agent-development'."),
        ("Agent Development", "Agents", "shape", "for example to 'agent-development'."),
        (
            "-21risk-automation",
            "-21risk-automation",
            "unsafe",
            "for example to '21risk-automation'.",
        ),
        ("../x", "pdf", "unsafe", "Write 'name: pdf'."),
    ],
)
def test_one_diagnostic_says_how_to_correct_a_name(name, folder, code, fix):
    (item,) = read(f"name: {name}\ndescription: d", folder=folder).diagnostics
    assert (item.code, item.fix.endswith(fix)) == (f"skill-name-{code}", True)


def test_blanks_around_a_name_are_dropped_with_a_warning(codes):
    reading = read("name: ' pdf '\ndescription: d")
    assert reading.value.name == "pdf"
    assert codes(reading) == ["skill-name-shape"]


@pytest.mark.parametrize(
    ("written", "folder", "name"),
    [
        ("'a  b'", "a b", "a b"),
        ('"a\\n\\tb\\_c"', "a b c", "a b c"),
        ("'a  b'", "a  b", "a b"),
        ("cafe\u0301", "cafe\u0301", "café"),
        ("cafe\u0301", "café", "café"),
        ("café", "cafe\u0301", "café"),
    ],
)
def test_blanks_and_accents_are_brought_into_one_form_with_a_warning(written, folder, name, codes):
    reading = read(f"name: {written}\ndescription: d", folder=folder)
    assert reading.value.name == name
    assert codes(reading) == ["skill-name-shape"]


def test_a_folders_name_that_serves_is_tidied_too(codes):
    reading = read("description: d", folder="cafe\u0301  x")
    assert reading.value.name == "café x"
    assert codes(reading) == ["skill-name-missing", "skill-name-shape"]


def test_a_name_other_than_the_folders_loads_with_a_warning(codes):
    reading = read("name: pdf\ndescription: d", folder="pdfs")
    assert reading.value.name == "pdf"
    assert codes(reading) == ["skill-name-folder"]
    assert codes(read("name: pdf\ndescription: d", folder=" pdf")) == ["skill-name-folder"]


# Descriptions


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("", "no description"),
        ("description:", "no description"),
        ("description: ''", "no description"),
        ("description: '  '", "no description"),
        ("description: [a]", "a list"),
        ("description: {a: b}", "a mapping"),
    ],
)
def test_a_skill_without_a_description_is_refused(line, word):
    reading = read(f"name: pdf\n{line}")
    (diagnostic,) = reading.diagnostics
    assert reading.value is None
    assert diagnostic.code == "skill-description-missing"
    assert word in diagnostic.message
    assert diagnostic.where.line == (3 if line else None)


def test_a_long_description_warns_and_one_far_too_long_is_refused(codes):
    limits = Limits(description_shown=5, description_accepted=8)
    assert codes(read("name: pdf\ndescription: 12345", limits=limits)) == []
    long = read("name: pdf\ndescription: 12345678", limits=limits)
    assert (long.value.description, codes(long)) == ("12345678", ["skill-description-long"])
    too_long = read("name: pdf\ndescription: 123456789", limits=limits)
    assert (too_long.value, codes(too_long)) == (None, ["skill-description-too-long"])
    assert "5 are shown (limit description_shown)" in long.diagnostics[0].message
    assert "8 are accepted (limit description_accepted)" in too_long.diagnostics[0].message


def test_hidden_characters_are_kept_and_reported(codes):
    reading = read("name: pdf\ndescription: a\u200bb\ncompatibility: c\u202ed")
    assert reading.value.description == "a\u200bb"
    assert codes(reading) == ["skill-text-hidden"] * 2


def test_block_scalars_lose_their_last_line_end():
    text = "name: pdf\ndescription: |\n  one\n  --- two\n  ---\n"
    assert read(text).value.description == "one\n--- two\n---"


def test_values_that_look_like_other_types_stay_text():
    skill = read("name: '3000'\ndescription: 2024-01-01\nmetadata: {n: .nan}", "3000").value
    assert (skill.description, skill.metadata) == ("2024-01-01", {"n": ".nan"})


# Other fields


@pytest.mark.parametrize("line", ["license: [MIT]", "compatibility: {a: b}"])
def test_a_text_field_of_another_type_is_left_out_with_a_warning(line, codes):
    reading = with_field(line)
    assert (reading.value.license, reading.value.compatibility) == (None, None)
    assert codes(reading) == ["skill-field-type"]


@pytest.mark.parametrize("line", ["compatibility:", "compatibility: ''"])
def test_an_empty_compatibility_note_is_none_with_a_warning(line, codes):
    reading = with_field(line)
    assert reading.value.compatibility is None
    assert codes(reading) == ["skill-compatibility-long"]


def test_a_long_compatibility_note_is_kept_with_a_warning(codes):
    assert codes(with_field(f"compatibility: {'x' * 500}")) == []
    reading = with_field(f"compatibility: {'x' * 501}")
    assert len(reading.value.compatibility) == 501
    assert codes(reading) == ["skill-compatibility-long"]


@pytest.mark.parametrize(
    ("value", "tools", "warns"),
    [
        ("Read", ("Read",), False),
        ("Read  Bash(git add:*) Bash(a, b)", ("Read", "Bash(git add:*)", "Bash(a, b)"), False),
        ("Bash (git:*) Read", ("Bash(git:*)", "Read"), False),
        ("Bash(f(x) y) Read)) Edit", ("Bash(f(x) y)", "Read))", "Edit"), True),
        ("Bash(never closed Read", ("Bash(never closed Read",), True),
        ("''", (), False),
        ("Read, Bash(git:*), Edit", ("Read", "Bash(git:*)", "Edit"), True),
        ("[Read, 'Bash(git add:*)', ' ', [x]]", ("Read", "Bash(git add:*)"), True),
        ("{Read: yes}", (), True),
    ],
)
def test_allowed_tools_may_be_text_a_comma_list_or_a_list(value, tools, warns, codes):
    reading = with_field(f"allowed-tools: {value}")
    assert reading.value.allowed_tools == tools
    is_understood = value.startswith("Read")
    assert codes(reading) == ["skill-field-form" if is_understood else "skill-field-type"] * warns


def test_the_habits_of_other_clients_are_no_warnings():
    reading = with_field("allowed-tools: [Read, Grep]\nmodel: opus\nargument-hint: '[city]'")
    assert [item.code for item in reading.diagnostics] == [
        "skill-field-form",
        "skill-field-foreign",
        "skill-field-foreign",
    ]
    assert {item.severity for item in reading.diagnostics} == {Severity.INFO}
    assert Severity.ERROR not in {item.severity for item in strictly(reading.diagnostics)}


def test_metadata_that_is_not_text_is_kept_with_a_warning_on_its_line():
    reading = with_field("metadata:\n  a: b\n  c: [d]\n  e:\n    f: g\n  h:")
    assert reading.value.metadata == {"a": "b", "c": ("d",), "e": {"f": "g"}, "h": None}
    assert [(item.code, item.where.line) for item in reading.diagnostics] == [
        ("skill-field-form", 6),
        ("skill-field-form", 7),
        ("skill-field-form", 9),
    ]


def test_metadata_that_is_no_mapping_is_empty_with_a_warning(codes):
    reading = with_field("metadata: x")
    assert reading.value.metadata == {}
    assert codes(reading) == ["skill-field-type"]


def test_an_unknown_field_is_kept_and_a_typo_is_recognised():
    reading = with_field("licence: MIT\ncolour: blue")
    assert reading.value.fields["licence"] == "MIT"
    typo, unknown = reading.diagnostics
    assert (typo.severity, typo.code) == (Severity.INFO, "skill-field-unknown")
    assert "'license:'" in typo.fix
    assert "metadata" in unknown.fix
    assert {item.severity for item in strictly(reading.diagnostics)} == {Severity.ERROR}


def test_no_field_that_is_there_already_is_suggested_for_an_unknown_one():
    (unknown,) = with_field("license: MIT\nlicence: MIT").diagnostics
    assert unknown.fix == "Move it below 'metadata:'."


# What we go by beyond the format


@pytest.mark.parametrize(
    "word", ["true", "True", "yes", "on", "' true '", "1", "maybe", "[true]", "{true: true}"]
)
def test_a_skill_is_kept_from_the_model_by_whatever_is_not_plainly_no(word):
    assert not with_field(f"disable-model-invocation: {word}").value.is_for_model


@pytest.mark.parametrize("word", ["n", "y", "maybe", "[true]"])
def test_a_word_that_is_neither_yes_nor_no_is_a_warning(word):
    (problem,) = [
        item
        for item in with_field(f"disable-model-invocation: {word}").diagnostics
        if item.severity is Severity.WARNING
    ]
    assert (problem.code, problem.fix) == ("skill-field-type", "Write true or false.")
    assert "no model may load the skill" in problem.message


@pytest.mark.parametrize("word", ["false", "no", "off", "0", ""])
def test_a_plain_no_leaves_it_to_the_model(word):
    assert with_field(f"disable-model-invocation: {word}").value.is_for_model
    assert read("name: pdf\ndescription: d").value.is_for_model


@pytest.mark.parametrize("key", ["groups", "include_tools", "adk_additional_tools"])
@pytest.mark.parametrize(
    "words", ["maps geo", "maps, geo", "maps,geo", "[maps, ' geo ']", "[maps, geo, maps, '', [x]]"]
)
def test_what_loading_activates_is_a_list_or_text_wherever_it_stands(key, words):
    assert with_field(f"{key}: {words}").value.groups == ("maps", "geo")
    assert with_field(f"metadata:\n  {key}: {words}").value.groups == ("maps", "geo")


def test_what_several_fields_name_is_activated_once():
    skill = with_field(
        "metadata:\n  groups: a b\n  adk_additional_tools: [d]\ngroups: [b, c]\ninclude_tools: a"
    ).value
    assert skill.groups == ("a", "b", "c", "d")


@pytest.mark.parametrize("line", ["", "groups:", "groups: {a: b}", "metadata: {groups: {a: b}}"])
def test_a_skill_that_names_no_groups_activates_none(line):
    assert with_field(line).value.groups == ()


def test_a_field_of_other_clients_that_satchel_uses_says_so():
    (diagnostic,) = with_field("disable-model-invocation: true").diagnostics
    assert (diagnostic.severity, diagnostic.code) == (Severity.INFO, "skill-field-foreign")
    assert "Satchel uses it, too" in diagnostic.message


@pytest.mark.parametrize("key", ["groups", "include_tools", "adk_additional_tools"])
def test_a_field_beyond_the_format_is_reported_as_one_that_is_heeded(key):
    (diagnostic,) = with_field(f"{key}: true").diagnostics
    assert (diagnostic.severity, diagnostic.code) == (Severity.INFO, "skill-field-unknown")
    assert "uses it nevertheless" in diagnostic.message
    assert "Keep it" in diagnostic.fix


@given(st.lists(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), max_size=5))
def test_groups_are_the_same_however_they_are_written(names):
    expected = tuple(dict.fromkeys(names))
    for written in ("[" + ", ".join(map(repr, names)) + "]", f"'{' '.join(names)}'"):
        assert with_field(f"metadata:\n  groups: {written}").value.groups == expected


def test_a_skill_without_instructions_loads_with_a_warning(codes):
    reading = read("name: pdf\ndescription: d", body=" \n\n")
    assert reading.value
    assert codes(reading) == ["skill-body-empty"]


def test_every_problem_is_reported_at_once_in_the_order_of_the_file(codes):
    reading = read("name: ..\ndescription: []\nlicense: {}\nodd: x", body="")
    assert reading.value is None
    assert codes(reading) == [
        "skill-body-empty",
        "skill-name-unsafe",
        "skill-description-missing",
        "skill-field-type",
        "skill-field-unknown",
    ]
    assert all(item.fix for item in reading.diagnostics)


def test_a_value_that_needed_quotes_is_repaired(codes):
    reading = read("name: pdf\ndescription: Use when: asked")
    assert reading.value.description == "Use when: asked"
    assert codes(reading) == ["yaml-repaired"]


def test_a_limit_of_yaml_refuses_the_skill(codes):
    reading = read("name: pdf\ndescription: d", limits=replace(Limits(), frontmatter=5), body="")
    assert reading.value is None
    assert codes(reading) == ["skill-body-empty", "yaml-too-large"]


@pytest.mark.parametrize("path", sorted(AWKWARD.glob("*/SKILL.md")), ids=lambda p: p.parent.name)
def test_our_own_awkward_files_load_with_just_the_codes_that_they_name(path, codes, limits):
    reading = read_skill(path.read_bytes(), path.parent.name, str(path), limits)
    expected = (path.parent / "codes.txt").read_text().split()
    assert reading.value
    assert codes(reading) == expected


# Any bytes


@given(st.binary() | TEXT.map(str.encode))
@example(b"---\n---")
@example(b"---\n? \n---\n")
def test_no_bytes_make_the_reader_raise(data):
    limits = Limits()
    for given_bytes in (data, b"---\n" + data + b"\n---\n"):
        reading = read_skill(given_bytes, "pdf", "SKILL.md", limits)
        assert reading.value or reading.diagnostics


@given(
    name=st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,2}", fullmatch=True),
    description=TEXT.filter(str.strip),
    body=TEXT.filter(str.strip),
    line_end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_a_simple_skill_comes_back_as_it_was_written(name, description, body, line_end, mark):
    quoted = description.replace("'", "''")
    lines = ["---", f"name: '{name}'", f"description: '{quoted}'", "---", body]
    data = (mark + line_end.join(lines)).encode()
    reading = read_skill(data, name, "SKILL.md", Limits(description_accepted=10**6))
    skill = reading.value
    assert (skill.name, skill.description, skill.body) == (name, description.strip(), body)
    assert {item.code for item in reading.diagnostics} <= {
        "skill-text-hidden",
        "skill-description-long",
    }


@pytest.mark.parametrize(
    ("value", "message", "fix"),
    [
        (
            "[Read, 7, [x], '']",
            "'allowed-tools' is a list, not text; 2 items that are not text are left out",
            "Write 'allowed-tools: Read 7'.",
        ),
        (
            "[Read, Grep]",
            "'allowed-tools' is a list, not text",
            "Write 'allowed-tools: Read Grep'.",
        ),
        (
            "{a: b}",
            "'allowed-tools' is a mapping, not text; it allows no tool",
            "Write 'allowed-tools: Read Bash(git:*)'.",
        ),
        (
            "Read, Grep",
            "'allowed-tools' is separated by commas",
            "Write 'allowed-tools: Read Grep'.",
        ),
    ],
)
def test_the_message_shows_how_allowed_tools_are_written(value, message, fix):
    (diagnostic,) = with_field(f"allowed-tools: {value}").diagnostics
    assert (diagnostic.message, diagnostic.fix) == (message, fix)


def test_a_skill_of_a_server_asks_for_no_tools():
    skill = with_field(
        "allowed-tools: Read\nhooks: {a: b}\ninclude_tools: maps\n"
        "metadata: {author: me, include_tools: maps, adk_additional_tools: [x]}"
    ).value
    assert skill.groups
    without = skill.without_leave
    assert (without.allowed_tools, without.groups) == ((), ())
    assert without.metadata == {"author": "me"}
    assert without.fields == {
        "name": "pdf",
        "description": "Reads PDF.",
        "metadata": {"author": "me"},
    }
    assert "metadata" not in with_field("allowed-tools: Read").value.without_leave.fields


def test_the_fields_are_immutable_at_any_depth():
    skill = with_field("metadata: {a: {b: [c]}}").value
    for fields in (skill.fields, skill.fields["metadata"], skill.metadata, skill.metadata["a"]):
        with pytest.raises(TypeError):
            fields["more"] = 1
    assert skill.metadata["a"]["b"] == ("c",)
    assert skill.fields["metadata"]["a"]["b"] == ("c",)


RESTORED = ["", "license: MIT", "allowed-tools: Read\ncompatibility: x", "metadata: {a: {b: [c]}}"]


@pytest.mark.parametrize("line", RESTORED)
def test_a_saved_manifest_is_restored_whole(line):
    skill = with_field(line).value
    restored = SkillManifest.restored(
        skill.name,
        skill.description,
        skill.rest,
        Compressed(packed(skill, "body")),
        is_for_model=skill.is_for_model,
    )
    assert restored.rest == skill.rest  # before anything of it was read
    assert restored.allowed_tools == skill.allowed_tools
    assert restored == skill
    assert restored.rest == skill.rest


def test_what_is_saved_of_a_manifest_repeats_no_field():
    fields, other = json.loads(with_field("license: MIT\ncompatibility: x").value.rest)
    assert fields["license"] == "MIT"
    assert other.keys() == {"allowed_tools", "metadata"}


def test_a_manifest_has_no_other_attributes():
    skill = with_field("license: MIT").value
    restored = SkillManifest.restored(
        "pdf", "Reads PDF.", skill.rest, Compressed(packed(skill, "body")), is_for_model=True
    )
    for item in (skill, restored):
        for name in ("other", "_other"):
            with pytest.raises(AttributeError, match=name):
                getattr(item, name)


def test_what_a_server_lists_is_read_without_a_body_and_without_lines():
    listed = {"name": "maps", "description": "Draws maps.", "lisense": "MIT", "note": "\x85\u2028"}
    reading = read_listed_skill(listed, "pdf", "server/pdf", Limits())
    assert (reading.value.name, reading.value.body) == ("maps", "")
    assert {item.code for item in reading.diagnostics} >= {
        "skill-name-folder",
        "skill-field-unknown",
    }
    assert {item.where for item in reading.diagnostics} == {Where("server/pdf")}
    refused = read_listed_skill({"name": "maps"}, "maps", "server/maps", Limits())
    assert refused.value is None
    assert [item.code for item in refused.diagnostics] == ["skill-description-missing"]


def test_a_text_of_exactly_the_longest_length_is_fine(codes):
    limits = Limits(description_shown=12)
    exact = "name: pdf\ndescription: 123456789012\ncompatibility: " + "c" * 500
    assert codes(read(exact, limits=limits)) == []
    longer = exact.replace("123456789012", "1234567890123") + "c"
    assert codes(read(longer, limits=limits)) == [
        "skill-description-long",
        "skill-compatibility-long",
    ]


def test_fields_of_other_clients_are_reported_in_simple_files_too(codes):
    assert codes(with_field("license: MIT")) == []
    assert codes(with_field("hooks: run")) == ["skill-field-foreign"]
