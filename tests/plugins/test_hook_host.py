from pathlib import Path
from types import SimpleNamespace

import pytest

import satchel
from satchel.catalog.catalog_entries import Group
from satchel.plugins.hook_host import HookError, call_hooks
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
    answers = call_hooks(plugin())
    assert (answers.tools, answers.groups, answers.skill_folders) == ((), (), ())


def test_tools_are_taken_as_they_come():
    function_tool = FunctionTool(hello, name="made")
    assert call_hooks(plugin(tools=[hello, function_tool, 7])).tools == (hello, function_tool, 7)


@pytest.mark.parametrize("answer", [(hello,), {hello}, iter([hello])])
def test_whatever_can_be_iterated_is_a_list(answer):
    assert call_hooks(plugin(tools=answer)).tools == (hello,)


def test_an_answer_of_none_is_no_answer():
    assert call_hooks(plugin(tools=None)).tools == ()


def test_groups_and_skill_folders_are_taken_as_they_are():
    groups = (
        Group(name="maps", description="Maps.", notes="Notes.", active=True, tools=("hello",)),
    )
    answers = call_hooks(plugin(groups=groups, skill_folders=["/a", Path("/b")]))
    assert (answers.groups, answers.skill_folders) == (groups, ("/a", "/b"))


def test_a_hook_that_is_unknown_is_an_error():
    with pytest.raises(HookError, match="satchel_tool"):
        call_hooks(plugin(tool=[hello]))


def test_a_hook_with_a_parameter_that_is_not_given_is_an_error():
    with pytest.raises(HookError, match="catalog"):
        call_hooks(plugin(tools=lambda catalog: [catalog]))


@pytest.mark.parametrize("answer", [7, "hello", SimpleNamespace()])
def test_an_answer_that_is_no_list_is_an_error(answer):
    with pytest.raises(HookError, match="satchel_tools must return a list, not"):
        call_hooks(plugin(tools=answer))


@pytest.mark.parametrize(
    "answers", [{"groups": ["maps"]}, {"groups": [{"name": "maps"}]}, {"skill_folders": [7]}]
)
def test_an_item_of_another_kind_is_an_error(answers):
    with pytest.raises(HookError, match=r"returned (str|dict|int) among its items"):
        call_hooks(plugin(**answers))


class BytesPath:
    def __fspath__(self):
        return b"/bytes"


@pytest.mark.parametrize("folder", ["skills", "./skills", "", Path("skills"), BytesPath()])
def test_a_skill_folder_that_is_no_absolute_path_is_refused(folder):
    with pytest.raises(HookError, match="not absolute"):
        call_hooks(plugin(skill_folders=[folder]))


@pytest.mark.parametrize(
    "group",
    [
        Group(name=7),
        Group(name=""),
        Group(name="a b"),
        Group(name="maps", description=None),
        Group(name="maps", notes=["x"]),
        Group(name="maps", tools=(hello,)),
        Group(name="maps", tools="hello"),
        Group(name="maps", skills="pdf"),
        Group(name="maps", skills=(7,)),
        Group(name="maps", requires="KEY"),
        Group(name="maps", requires=(None,)),
    ],
)
def test_a_group_that_is_not_what_it_should_be_is_an_error(group):
    with pytest.raises(HookError, match="satchel_groups returned"):
        call_hooks(plugin(groups=[group]))


def test_lists_in_a_group_become_values():
    lists = {"tools": ["hello"], "skills": ["pdf"], "requires": ["KEY"]}
    (group,) = call_hooks(plugin(groups=[Group(name="maps", active=1, **lists)])).groups
    assert (group.tools, group.skills, group.requires) == (("hello",), ("pdf",), ("KEY",))
    assert group.active is True


def test_what_a_group_lacks_is_for_the_loader_to_say():
    (group,) = call_hooks(
        plugin(groups=[Group(name="maps", requires=("KEY",), missing=("NO",))])
    ).groups
    assert (group.requires, group.missing) == (("KEY",), ())


def test_what_a_hook_raises_goes_through():
    def hook():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        call_hooks(plugin(tools=hook))
