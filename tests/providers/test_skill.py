"""A skill given in code is what its SKILL.md would be."""

from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import DefinitionError, ToolError
from satchel.formats.skill_manifest import read_skill
from satchel.providers.skill import Skill, find_skill
from satchel.settings import Limits
from satchel.sources.search_roots import Precedence

LIMITS = Limits()


def found(skill, before=None):
    return find_skill(skill, "db", Precedence.EXPLICIT, LIMITS, before)


def a_skill(**changes):
    return Skill(**{"name": "pdf", "description": "Fills forms.", "body": "Do it.", **changes})


class Lazily(Mapping):
    """Files that are made when they are read."""

    def __init__(self, make, *names):
        self.make, self.names = make, names

    def __getitem__(self, name):
        if name not in self.names:
            raise KeyError(name)
        return self.make(name)

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)


PRINTABLE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf", "Co", "Cn")), min_size=1)


@given(description=PRINTABLE.filter(str.strip), body=PRINTABLE)
def test_any_text_comes_through_as_it_is(description, body):
    finding = found(a_skill(description=description, body=body))
    assert finding.manifest.description.split() == description.split()
    assert finding.manifest.body.strip("\n") == body.strip("\n")


def test_it_is_read_with_the_diagnostics_of_a_skill_file():
    finding = found(a_skill(description="", front_matter={"license": "MIT"}))
    assert finding.manifest is None
    assert [item.code for item in finding.diagnostics] == ["skill-description-missing"]
    assert str(finding.diagnostics[0].where) == "db://pdf"


def test_further_fields_are_those_of_the_format():
    fields = {"license": "MIT", "metadata": {"team": "a: b"}, "allowed-tools": "Read Bash(git *)"}
    manifest = found(a_skill(front_matter=fields)).manifest
    assert manifest.license == "MIT"
    assert manifest.metadata == {"team": "a: b"}
    assert manifest.allowed_tools == ("Read", "Bash(git *)")


def test_its_skill_file_and_its_files_can_be_read():
    finding = found(a_skill(files={"refs/a.md": "text", "b.bin": b"\0\1"}))
    assert [file.name for file in finding.files] == ["SKILL.md", "b.bin", "refs/a.md"]
    read = finding.reader.read
    assert read_skill(read("SKILL.md", LIMITS).data, "pdf", "x", LIMITS).value == finding.manifest
    assert read("refs/a.md", LIMITS).data == b"text"
    assert read("b.bin", LIMITS).data == b"\0\1"


@pytest.mark.parametrize("name", ["../a", "/a", "a\\..\\b", "", ".git/config", "SKILL.md", 3])
def test_a_file_has_a_path_inside_the_skill(name):
    with pytest.raises(DefinitionError, match="is not the path of a file"):
        found(a_skill(files={name: "x"}))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../x"},
        {"name": 3},
        {"description": None},
        {"body": b"x"},
        {"files": ["a"]},
        {"files": {"a": 3}},
        {"front_matter": 3},
        {"front_matter": {"metadata": {"a": object()}}},
        {"front_matter": {"name": "other"}},
        {"body": "\ud800"},
    ],
)
def test_nonsense_is_refused(changes):
    with pytest.raises(DefinitionError):
        found(a_skill(**changes))


def test_a_date_is_written_as_yaml_has_it():
    manifest = found(a_skill(front_matter={"metadata": {"released": date(2026, 1, 31)}})).manifest
    assert manifest.metadata == {"released": "2026-01-31"}


def test_one_group_needs_no_list():
    assert a_skill(groups="maps").groups == ("maps",)


def test_a_dict_is_copied():
    files = {"a.md": "before"}
    finding = found(a_skill(files=files))
    files["a.md"] = "after"
    assert finding.reader.read("a.md", LIMITS).data == b"before"


def test_another_mapping_is_read_on_demand():
    asked = []
    finding = found(a_skill(files=Lazily(lambda name: asked.append(name) or "text", "a.md")))
    assert [file.name for file in finding.files] == ["SKILL.md", "a.md"]
    assert not asked
    assert finding.reader.read("a.md", LIMITS).data == b"text"


def test_an_error_of_the_mapping_does_not_reach_the_model():
    def fail(_name):
        raise RuntimeError("password=hunter2")

    finding = found(a_skill(files=Lazily(fail, "a.md")))
    with pytest.raises(ToolError, match="cannot be read now") as problem:
        finding.reader.read("a.md", LIMITS)
    assert "hunter2" not in str(problem.value)
    with pytest.raises(ToolError, match=r"no file 'b\.md'"):
        finding.reader.read("b.md", LIMITS)


def test_a_large_file_is_refused():
    finding = found(a_skill(files={"a.md": "x" * 11}))
    with pytest.raises(ToolError, match="more than 10 bytes"):
        finding.reader.read("a.md", Limits(resource=10))


def test_an_equal_skill_is_the_same_finding():
    before = found(a_skill(files={"a.md": "x"}))
    assert found(a_skill(files={"a.md": "x"}), before) is before
    assert found(a_skill(files={"a.md": "y"}), before) is not before
    assert found(a_skill(body="Other."), before).manifest.body.strip() == "Other."


def test_an_unchanged_skill_is_neither_written_nor_hashed_again(monkeypatch):
    plain, skill = a_skill(), a_skill(files={"a.md": "x"}, front_matter={"metadata": {"team": "a"}})
    of_plain, before = found(plain), found(skill)
    monkeypatch.setattr("satchel.providers.skill.digest_of", None)
    assert found(plain, of_plain) is of_plain
    assert found(skill, before) is before
    monkeypatch.undo()
    skill.front_matter["metadata"]["team"] = "b"
    assert found(skill, before).manifest.metadata == {"team": "b"}


def test_files_that_cannot_be_listed_are_a_fault_of_the_skill():
    class Broken(Lazily):
        def __iter__(self):
            raise OSError("gone")

    with pytest.raises(DefinitionError, match="files of skill 'pdf' cannot be listed: OSError"):
        found(a_skill(files=Broken(str)))
