import pytest

from satchel import Satchel
from satchel.session.own_tools import OwnTools


@pytest.fixture
def step(tmp_path):
    folder = tmp_path / "convert"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: convert\ndescription: Converts.\n---\nRun scripts/convert.py.\n"
    )
    (folder / "scripts" / "convert.py").write_text("print(1)\n")
    satchel = Satchel(tmp_path)
    satchel.create_group("files", "Works with files.", skills=["convert"])

    @satchel.register_tool
    def wait() -> str:
        """Wait."""
        return "done"

    wait.background = True
    with satchel:
        session = satchel.session(scripts=True, search=True)
        session.activate("files")
        yield session.step()


def test_each_own_tool_has_the_name_under_which_it_is_listed(step):
    tools = step._content.rendered.own_tools
    assert {name: tool.name for name, tool in tools.items()} == {name: name for name in tools}
    expected = {"reset_equipped_tools", "load_skill", "read_skill_file", "run_skill_script"}
    assert set(tools) >= expected | {"search_skills"}
    assert len(tools) == len(list(tools))


def test_an_own_tool_is_made_once_and_only_when_it_is_used():
    created = []

    def make(name):
        created.append(name)
        return object()

    tools = OwnTools(("one", "two"), make)
    assert list(tools) == ["one", "two"]
    assert "three" not in tools
    assert created == []
    assert tools["one"] is tools["one"]
    assert created == ["one"]
