"""Patterns say which tools and skills of a catalog a session sees."""

import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import SkillEntry, ToolEntry
from satchel.catalog.entry_filter import EntryFilter, unmatched_patterns
from satchel.sources.search_roots import Precedence


def entry(kind, name, source):
    common = {"name": name, "description": "", "source": source, "scope": Precedence.EXPLICIT}
    common |= {"path": "", "unit": name, "rank": (), "version": "1"}
    if kind == "tool":
        return ToolEntry(groups=("basic",), **common)
    return SkillEntry(manifest=None, key=f"{name}-folder", digest="", **common)


TOOLS = (entry("tool", "read", "files"), entry("tool", "write", "files"))
SKILLS = (entry("skill", "read", "team"), entry("skill", "pdf", "team"))
CATALOG = Catalog(all_tools=TOOLS, all_skills=SKILLS)


@pytest.mark.parametrize(
    ("enable", "disable", "tools", "skills"),
    [
        ([], [], {"read", "write"}, {"read", "pdf"}),
        (["read"], [], {"read"}, {"read"}),
        (["tool:read"], [], {"read"}, {"read", "pdf"}),
        (["skill:p*"], [], {"read", "write"}, {"pdf"}),
        (["skill:p*", "tool:w*"], [], {"write"}, {"pdf"}),
        (["group:x"], [], {"read", "write"}, {"read", "pdf"}),
        ([], ["files"], set(), {"read", "pdf"}),
        ([], ["team:pdf"], {"read", "write"}, {"read"}),
        ([], ["team:pdf-folder"], {"read", "write"}, {"read"}),
        (["*"], ["skill:*"], {"read", "write"}, set()),
        (["read"], ["read"], set(), set()),
    ],
)
def test_patterns_count_for_their_kind(enable, disable, tools, skills):
    seen = EntryFilter.of(enable, disable)
    part = CATALOG.only(seen.accepts)
    assert (set(part.tools), set(part.skills)) == (tools, skills)


def test_equal_patterns_are_one_filter():
    assert len({EntryFilter.of(["a"], []), EntryFilter.of(("a",), ())}) == 1


@pytest.mark.parametrize(
    "pattern", ["read", "pdf", "tool:write", "skill:p*", "team:pdf-folder", "files", "load_skill"]
)
def test_a_pattern_that_something_matches_gives_no_warning(pattern):
    assert [*unmatched_patterns([pattern], CATALOG)] == []


def test_each_pattern_that_nothing_matches_gives_a_warning_whatever_stands_before_it():
    patterns = ["group:x", "read", "load_skill", "files", "tool:pdf", "skill:raed", "plugin:files"]
    assert [*unmatched_patterns(patterns, CATALOG)] == [
        "no tool and no skill matches 'group:x'",
        "no tool and no skill matches 'tool:pdf'; did you mean pdf?",
        "no tool and no skill matches 'skill:raed'; did you mean read?",
        "no tool and no skill matches 'plugin:files'; write 'files' for all of a source",
    ]
