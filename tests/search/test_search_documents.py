"""The documents of a catalog: what its tools and skills are found by."""

from dataclasses import replace

import pytest

from satchel import Satchel
from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import GroupEntry, SkillEntry, Status, ToolEntry
from satchel.formats.skill_manifest import read_skill
from satchel.search.search_documents import documents_of
from satchel.search.search_index import SearchDocument, SearchIndex
from satchel.settings import Limits
from satchel.sources.search_roots import Precedence
from satchel.tools import FunctionTool, Tool

SOURCE = {"source": "here", "scope": Precedence.EXPLICIT, "path": "", "unit": "", "rank": ()}


def tool_entry(name, tool=None, group="maps"):
    return ToolEntry(
        name=name, description="Does it.", groups=(group,), version="1", tool=tool, **SOURCE
    )


def skill_entry(name, frontmatter="", body="Body.", **keywords):
    text = f"---\nname: {name}\ndescription: Does it.\n{frontmatter}---\n{body}\n"
    manifest = read_skill(text.encode(), name, name, Limits()).value
    return SkillEntry(
        name=name,
        description="Does it.",
        manifest=manifest,
        key=name,
        digest="",
        **SOURCE | keywords,
    )


MAPS = GroupEntry(name="maps", description="Geocoding and routes.", **SOURCE)


def only(*tools, skills=(), groups=(MAPS,)) -> SearchDocument:
    (document,) = documents_of(
        Catalog(all_skills=tuple(skills), all_tools=tuple(tools), all_groups=tuple(groups))
    )
    return document


class Own(Tool):
    """A tool whose schema is given."""

    def __init__(self, parameters):
        self.name, self.description, self.given = "own", "Does it.", parameters

    @property
    def parameters(self):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    async def execute(self): ...


def test_a_tool_is_found_by_its_group_and_its_parameters():
    def route(start_place: str, maxHours: int = 3):  # noqa: N803 - such names are the test
        """Find a route.

        Args:
            start_place: Town or street.
        """

    document = only(tool_entry("route", FunctionTool(route)))
    assert (document.kind, document.name, document.description) == ("tool", "route", "Does it.")
    index = SearchIndex()
    index.bring_up_to_date([document])
    for word in ("maps", "geocoding", "start", "street", "maxhours", "hours"):
        assert index.search(word), word


def test_a_tool_whose_code_was_not_run_is_found_by_its_group():
    assert only(tool_entry("route")).more == "maps Geocoding and routes."
    assert only(tool_entry("route"), groups=()).more == "maps"


def test_the_basic_group_says_nothing_of_its_tools():
    assert only(tool_entry("route", group="basic")).more == ""


@pytest.mark.parametrize(
    "parameters",
    [
        *(ValueError("broken"), None, [], "text", {}, {"properties": None}, {"properties": [1]}),
        *({"properties": {1: {}}}, {"properties": {"": None}}, {"properties": {"": {}}}),
    ],
    ids=repr,
)
def test_a_tool_whose_parameters_are_odd_is_found_by_the_rest(parameters):
    document = only(tool_entry("own", Own(parameters)))
    assert document.description == "Does it."
    assert document.more.strip() == "maps Geocoding and routes."


def test_a_property_without_a_text_counts_by_its_name():
    schema = {"properties": {"first": True, "second": {"description": 5}}}
    assert only(tool_entry("own", Own(schema))).more.endswith(" first second")


@pytest.mark.parametrize(
    ("frontmatter", "keywords"),
    [
        ("", ""),
        ("metadata:\n  tags: maps, routes\n  author: me\n", "maps, routes"),
        ("metadata:\n  keywords: [maps, [deep], routes]\n", "maps routes"),
        ("metadata:\n  keywords:\n    a: b\n", ""),
        ("tags: [maps]\nkeywords: routes\n", "routes maps"),
    ],
)
def test_a_skill_is_found_by_its_keywords(frontmatter, keywords):
    document = only(skills=[skill_entry("walk", frontmatter)])
    assert document == SearchDocument(
        kind="skill", name="walk", description="Does it.", more=keywords
    )


def test_a_skill_that_models_do_not_see_is_a_document_like_others():
    assert only(skills=[skill_entry("walk", "disable-model-invocation: true\n")]).name == "walk"


def test_what_is_not_served_is_no_document():
    broken = replace(skill_entry("a"), manifest=None, state=Status.FAILED)
    shadowed = replace(tool_entry("b"), state=Status.SHADOWED)
    catalog = Catalog(all_skills=(broken,), all_tools=(shadowed,))
    assert list(documents_of(catalog)) == []


def test_an_unchanged_catalog_gives_the_same_documents():
    catalog = Catalog(
        all_skills=(skill_entry("walk"),), all_tools=(tool_entry("route"),), all_groups=(MAPS,)
    )
    index = SearchIndex()
    assert index.bring_up_to_date(documents_of(catalog)) == 2
    assert index.bring_up_to_date(documents_of(catalog)) == 0


def found_by(words, entry):
    index = SearchIndex()
    index.bring_up_to_date(documents_of(Catalog(all_skills=(entry,))))
    return bool(index.search(words))


def test_a_skill_is_found_by_whole_words_of_its_instructions():
    entry = skill_entry("walk", body="Put on the boots.")
    assert found_by("boots", entry)
    assert found_by("boot", entry)  # the same stem
    assert not found_by("boo", entry)


def test_code_and_the_far_end_of_instructions_are_not_searched():
    body = "Begin.\n\n```sh\nrun boots\n```\n\n~~~~\nlaces\n```\nsocks\n~~~~\nMiddle.\n"
    entry = skill_entry("walk", body=body + "far " * 800 + "end")
    assert found_by("begin", entry)
    assert found_by("middle", entry)
    for word in ("boots", "laces", "socks", "end"):
        assert not found_by(word, entry)


def test_a_name_weighs_more_than_the_instructions():
    index = SearchIndex()
    entries = (skill_entry("boots"), skill_entry("walk", body="boots " * 20))
    index.bring_up_to_date(documents_of(Catalog(all_skills=entries)))
    assert [hit.name for hit in index.search("boots")] == ["boots", "walk"]


def test_an_edit_of_the_instructions_is_one_document():
    index = SearchIndex()
    entries = [skill_entry(f"skill-{at}", version="1") for at in range(9)]
    index.bring_up_to_date(documents_of(Catalog(all_skills=tuple(entries))))
    entries[4] = skill_entry("skill-4", version="2", body="Boots.")
    assert index.bring_up_to_date(documents_of(Catalog(all_skills=tuple(entries)))) == 1
    assert [hit.name for hit in index.search("boots")] == ["skill-4"]


def test_skills_inside_a_skill_are_found_through_it(tmp_path, write_skill):
    outer = write_skill(tmp_path, "outdoors", description="For the weekend.")
    write_skill(outer / "parts", "hike", description="Walks up a mountain.")
    (outer / "parts" / "broken").mkdir()
    (outer / "parts" / "broken" / "SKILL.md").write_bytes(b"\xff\xfe nothing")
    with Satchel(skills=tmp_path) as app:
        assert list(app.catalog.skills) == ["outdoors"]
        index = SearchIndex()
        index.bring_up_to_date(documents_of(app.catalog))
    for words in ("hike", "mountain"):
        assert [hit.name for hit in index.search(words)] == ["outdoors"]
