from pathlib import Path
from types import SimpleNamespace

import pytest

import satchel
from satchel.catalog import Group
from satchel.plugins.host import HookError, ask
from satchel.tools import FunctionTool


def plugin(**answers):
    """A plugin whose hooks give these answers; a function among them is the hook itself."""
    hooks = {
        f"satchel_{name}": answer if callable(answer) else (lambda answer=answer: answer)
        for name, answer in answers.items()
    }
    return SimpleNamespace(**{name: satchel.hookimpl(hook) for name, hook in hooks.items()})


def hello(name: str) -> str:
    """Say hello."""
    return name


def test_a_plugin_without_hooks_brings_nothing():
    answers = ask(plugin())
    assert (answers.tools, answers.groups, answers.skill_folders) == ((), (), ())


def test_tools_are_taken_as_they_come():
    made = FunctionTool(hello, name="made")
    assert ask(plugin(tools=[hello, made, 7])).tools == (hello, made, 7)


@pytest.mark.parametrize("answer", [(hello,), {hello}, iter([hello])])
def test_whatever_can_be_iterated_is_a_list(answer):
    assert ask(plugin(tools=answer)).tools == (hello,)


def test_an_answer_of_none_is_no_answer():
    assert ask(plugin(tools=None)).tools == ()


def test_groups_and_skill_folders_are_taken_as_they_are():
    groups = (Group("maps", "Maps.", "Notes.", active=True, tools=("hello",)),)
    answers = ask(plugin(groups=groups, skill_folders=["/a", Path("/b")]))
    assert (answers.groups, answers.skill_folders) == (groups, ("/a", "/b"))


def test_a_hook_that_nobody_knows_is_an_error():
    with pytest.raises(HookError, match="satchel_tool"):
        ask(plugin(tool=[hello]))


def test_a_hook_with_a_parameter_that_nobody_gives_is_an_error():
    with pytest.raises(HookError, match="catalog"):
        ask(plugin(tools=lambda catalog: [catalog]))


@pytest.mark.parametrize("answer", [7, "hello", SimpleNamespace()])
def test_an_answer_that_is_no_list_is_an_error(answer):
    with pytest.raises(HookError, match="satchel_tools must return a list, not"):
        ask(plugin(tools=answer))


@pytest.mark.parametrize(
    "answers", [{"groups": ["maps"]}, {"groups": [{"name": "maps"}]}, {"skill_folders": [7]}]
)
def test_an_item_of_another_kind_is_an_error(answers):
    with pytest.raises(HookError, match=r"returned (str|dict|int) among its items"):
        ask(plugin(**answers))


class BytesPath:
    def __fspath__(self):
        return b"/bytes"


@pytest.mark.parametrize("folder", ["skills", "./skills", "", Path("skills"), BytesPath()])
def test_a_skill_folder_that_is_no_absolute_path_is_refused(folder):
    with pytest.raises(HookError, match="no absolute path"):
        ask(plugin(skill_folders=[folder]))


@pytest.mark.parametrize(
    "group",
    [
        Group(7),
        Group(""),
        Group("a b"),
        Group("maps", description=None),
        Group("maps", notes=["x"]),
        Group("maps", tools=(hello,)),
        Group("maps", tools="hello"),
        Group("maps", skills="pdf"),
        Group("maps", skills=(7,)),
        Group("maps", requires="KEY"),
        Group("maps", requires=(None,)),
    ],
)
def test_a_group_that_is_not_what_it_should_be_is_an_error(group):
    with pytest.raises(HookError, match="satchel_groups returned"):
        ask(plugin(groups=[group]))


def test_lists_in_a_group_become_values():
    lists = {"tools": ["hello"], "skills": ["pdf"], "requires": ["KEY"]}
    (group,) = ask(plugin(groups=[Group("maps", active=1, **lists)])).groups
    assert (group.tools, group.skills, group.requires) == (("hello",), ("pdf",), ("KEY",))
    assert group.active is True


def test_what_a_group_lacks_is_for_the_loader_to_say():
    (group,) = ask(plugin(groups=[Group("maps", requires=("KEY",), missing=("NO",))])).groups
    assert (group.requires, group.missing) == (("KEY",), ())


def test_what_a_hook_raises_goes_through():
    def hook():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        ask(plugin(tools=hook))
