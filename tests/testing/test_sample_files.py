"""What the factories write is what Satchel reads."""

from hypothesis import given
from hypothesis import strategies as st

from satchel import Satchel
from satchel.cli.format_checks import check_path
from satchel.testing import write_plugin, write_skill

TEXTS = ["yes", "3", "a: b", "- x", "#", "'", '"', "line\nbreak", "naïve ✓", "{a}", "null", "~"]


def test_a_plain_skill_is_one_that_passes_validate(tmp_path):
    path = write_skill(tmp_path, "pdf")
    assert path == tmp_path / "pdf"
    problems = check_path(str(path))
    assert (len(problems.skills), problems.problems) == (1, ())


def test_a_skill_has_its_fields_its_body_and_its_files(tmp_path):
    write_skill(
        tmp_path,
        "pdf",
        description="Fills in forms.",
        body="""
            1. Read it.
        """,
        files={"references/a.md": "A.\n", "logo.png": b"\x89PNG"},
        allowed_tools="Read",
        metadata={"version": "1.0"},
    )
    skill = Satchel(tmp_path).catalog.skills["pdf"]
    assert skill.description == "Fills in forms."
    assert skill.manifest.body.strip() == "1. Read it."
    assert skill.manifest.allowed_tools == ("Read",)
    assert skill.manifest.metadata == {"version": "1.0"}
    assert {file.name for file in skill.files} >= {"references/a.md", "logo.png"}


@given(st.sampled_from(TEXTS) | st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1))
def test_any_text_is_read_back_as_it_was(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    write_plugin(folder, "p", description=text, notes=text)
    plugin = Satchel(plugins=folder).catalog.plugins["p"]
    assert plugin.description.split() == text.split()
    assert plugin.diagnostics == ()


def test_a_plugin_has_tools_skills_and_further_fields(tmp_path):
    path = write_plugin(
        tmp_path,
        "maps",
        """
            from satchel import tool
            from .towns import TOWNS

            @tool(state=["unit"])
            def towns(unit: str) -> list[str]:
                "List the towns."
                return TOWNS
        """,
        skills=["read-a-map"],
        files={"towns.py": "TOWNS = ['Oslo']\n"},
        config={"unit": {"default": "km"}},
    )
    assert path == tmp_path / "maps"
    catalog = Satchel(plugins=tmp_path).catalog
    assert catalog.plugins["maps"].diagnostics == ()
    assert list(catalog.tools) == ["towns"]
    assert list(catalog.skills) == ["read-a-map"]
    assert catalog.groups["maps"].active


def test_what_is_said_wins_over_what_is_assumed(tmp_path):
    write_plugin(tmp_path, "off", active=False)
    write_plugin(tmp_path, "several", groups={"one": {"tools": []}, "two": {"tools": []}})
    groups = Satchel(plugins=tmp_path).catalog.groups
    assert not groups["off"].active
    assert {"one", "two"} <= set(groups)
    assert "several" not in groups


def test_a_value_that_stands_twice_is_written_twice(tmp_path):
    group = {"description": "Both."}
    write_plugin(tmp_path, "p", groups={"one": group, "two": group})
    assert Satchel(plugins=tmp_path).catalog.plugins["p"].diagnostics == ()
