"""Data that all sessions of one `Satchel` share."""

import gc
import sys
import threading
from typing import Any
from weakref import ref

import pytest

from satchel import FunctionTool, Satchel, Tool
from satchel.catalog.catalog import Catalog
from satchel.catalog.entry_filter import EntryFilter
from satchel.groups.group_activation import Activation, view_of
from satchel.prompt.skill_prompt import SkillPrompt
from satchel.settings import Limits
from satchel.shared import Memo, PackedValue, SharedState

MAPS = Activation(on=frozenset({"maps"}))


@pytest.fixture
def shared() -> SharedState:
    return SharedState(Limits(), SkillPrompt())


class Held:
    """Something that is held or not."""


class Counting(Tool):
    """A tool that counts how often it is asked for its schema."""

    name, description = "count", "Counts."

    def __init__(self) -> None:
        self.parameters = {"type": "object", "properties": {}}
        self.asked: list[str] = []

    def to_schema(self, dialect: str = "openai") -> dict[str, Any]:
        self.asked.append(dialect)
        return super().to_schema(dialect)

    async def execute(self) -> str:
        return "done"


# ---- scenes -------------------------------------------------------------------------------


def with_groups(shared: SharedState, *names: str) -> None:
    app = Satchel()
    for name in names:
        app.create_group(name)
    shared.publish(app.catalog)


def test_sessions_with_the_same_groups_active_share_a_view(shared):
    with_groups(shared, "maps", "web")

    def view(activation):
        return shared.shared_view(activation).view

    assert view(Activation()) is view(Activation())
    assert view(MAPS) is view(Activation().activate("maps"))
    assert view(MAPS) is view(MAPS.deactivate("web"))
    assert view(MAPS) is not view(Activation())


def test_views_with_the_same_skills_share_them(shared, tmp_path, write_skill):
    write_skill(tmp_path / "a", "always")
    write_skill(tmp_path / "b", "sometimes")
    app = Satchel(skills=[tmp_path / "a"])
    app.create_group("maps")
    app.create_group("web")
    app.register_skill(tmp_path / "b", group="web")
    shared.publish(app.catalog)
    plain, maps = shared.shared_view(Activation()).view, shared.shared_view(MAPS).view
    assert plain.skills is maps.skills
    web = shared.shared_view(Activation().activate("web")).view
    assert [skill.name for skill in web.skills] == ["always", "sometimes"]


def test_a_catalog_is_published_while_sessions_ask_for_schemas():
    app = Satchel()
    app.tools.register_many([FunctionTool(lambda: 1, name=f"t{n}") for n in range(20)])
    stop, problems = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            for dialect in ("openai", "mcp", "gemini"):
                app.session().schemas(dialect)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    askers = [threading.Thread(target=ask) for _ in range(2)]
    try:
        for thread in askers:
            thread.start()
        for number in range(60):
            try:
                app.register_tool(FunctionTool(lambda: 1, name=f"new{number}"))
            except RuntimeError as problem:
                problems.append(problem)
    finally:
        stop.set()
        sys.setswitchinterval(before)
        for thread in askers:
            thread.join()
    assert problems == []


def test_a_view_is_of_the_newest_generation():
    app = Satchel()
    app.create_group("maps", active=True)
    shared = SharedState(Limits(), SkillPrompt())
    old = shared.shared_view(Activation())
    shared.publish(app.catalog)
    scene = shared.shared_view(Activation())
    assert old.catalog == Catalog()
    assert shared.catalog is scene.catalog is app.catalog
    assert scene.view == view_of(app.catalog, Activation()) != old.view


def test_a_held_view_does_not_change(shared):
    held = shared.shared_view(MAPS)
    before = held.catalog
    shared.publish(Catalog(generation=7))
    assert held.catalog is before
    assert shared.shared_view(MAPS).catalog.generation == 7


def test_a_generation_is_freed_when_the_next_is_published(shared):
    shared.publish(Catalog(generation=1))
    scene = shared.shared_view(Activation())
    scene.get_or_make("view", lambda view=scene.view: view)
    shared.search("word", "tool", 1)
    old = ref(shared.catalog)
    del scene
    shared.publish(Catalog(generation=2))
    gc.collect()
    assert old() is None


def test_an_idle_session_holds_no_generation():
    app = Satchel()
    app.register_tool(Counting())
    session = app.session()
    session.schemas()
    session.prompt()
    old = ref(app.catalog)
    app.remove_tool("count")
    gc.collect()
    assert old() is None
    assert "count" not in str(session.schemas())


def test_values_of_a_view_are_shared_by_equal_views(shared):
    with_groups(shared, "maps", "web")
    assert shared.shared_view(MAPS).get_or_make("key", lambda: 1) == 1
    assert shared.shared_view(MAPS.deactivate("web")).get_or_make("key", lambda: 2) == 1
    assert shared.shared_view(Activation()).get_or_make("key", lambda: 3) == 3
    assert shared.newest.get_or_make("key", lambda: 4) == 4


def test_sessions_with_some_of_the_tools_share_all_schemas(shared):
    app, created = Satchel(), Counting()
    app.register_tool(created)
    shared.publish(app.catalog)
    created.asked.clear()
    part = shared.shared_view(Activation(), EntryFilter.of(["c*"], []))
    assert part.view.by_name.keys() == {"count"}
    part.cache.schema(created, "openai")
    shared.newest.schema(created, "openai")
    assert created.asked == ["openai"]


# ---- what is made once --------------------------------------------------------------------


def test_a_memo_computes_a_value_once_for_each_key():
    memo, created = Memo(), []

    def make() -> int:
        created.append(1)
        return len(created)

    assert [memo.get_or_make(key, make) for key in ("a", "b", "a")] == [1, 2, 1]


def test_none_is_a_memoized_value():
    memo, created = Memo(), []
    for _ in range(2):
        assert memo.get_or_make("key", lambda: created.append(1)) is None
    assert created == [1]


def test_a_failed_computation_is_tried_again():
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.get_or_make("key", lambda: 1 // 0)
    assert memo.get_or_make("key", lambda: 7) == 7


def test_a_computation_may_use_another_value():
    memo = Memo()
    assert memo.get_or_make("outer", lambda: memo.get_or_make("inner", lambda: 1) + 1) == 2
    assert memo.get_or_make("inner", lambda: 9) == 1


def test_a_memo_is_bounded():
    memo = Memo(256)
    first = ref(memo.get_or_make(0, Held))
    for key in range(1, 300):
        memo.get_or_make(key, Held)
    gc.collect()
    assert first() is None


# ---- schemas ------------------------------------------------------------------------------


def test_a_schema_is_computed_once_for_each_tool_and_dialect():
    app, created = Satchel(), Counting()
    app.register_tool(created)
    created.asked.clear()
    for _ in range(3):
        app.session().schemas()
        app.session().schemas("anthropic")
    assert sorted(created.asked) == ["anthropic", "openai"]


def test_the_schema_of_an_unchanged_tool_outlives_its_generation():
    app, created = Satchel(), Counting()
    app.register_tool(created)
    app.session().schemas()
    created.asked.clear()
    app.register_tool(Counting(), on_conflict="rename")
    assert app.catalog.generation > 2
    app.session().schemas()
    assert created.asked == []


def test_the_schema_of_a_removed_tool_is_freed(shared):
    app = Satchel()
    app.register_tool(Counting())
    shared.publish(app.catalog)
    shared.newest.schema(app.catalog.tools["count"].tool, "openai")
    gone = ref(app.catalog.tools["count"].tool)
    app.remove_tool("count")
    shared.publish(app.catalog)
    gc.collect()
    assert gone() is None


def test_a_returned_schema_may_be_changed(shared):
    created = Counting()
    first = shared.newest.schema(created, "openai")
    first["function"]["parameters"]["properties"]["mine"] = {}
    assert shared.newest.schema(created, "openai") == created.to_schema("openai") != first


def test_no_two_sessions_share_a_list_of_schemas():
    app = Satchel()
    app.register_tool(Counting())
    first, second = app.session().schemas(), app.session().schemas()
    assert first == second
    first[0]["function"]["name"] = "mine"
    first.clear()
    assert app.session().schemas() == second


# ---- packed values ------------------------------------------------------------------------

PICKLED = {"a": [1, {"b": (2, None)}]}


class Unpickled:
    """A value that can be copied but not pickled."""

    def __init__(self) -> None:
        self.items = [1]

    def __reduce__(self) -> Any:
        raise TypeError("not me")

    def __deepcopy__(self, memo: Any) -> "Unpickled":
        return Unpickled()


def test_an_unpacked_value_is_a_new_copy():
    packing = PackedValue(PICKLED)
    first, second = packing.unpacked(), packing.unpacked()
    assert first == second == PICKLED
    first["a"][1]["b"] = "changed"
    assert second == packing.unpacked() == PICKLED


def test_changing_what_was_packed_changes_no_copy():
    value = [1]
    packing = PackedValue(value)
    value.append(2)
    assert packing.unpacked() == [1]


def test_a_value_that_cannot_be_pickled_is_copied():
    packing = PackedValue({"odd": Unpickled(), "list": [1]})
    first, second = packing.unpacked(), packing.unpacked()
    first["odd"].items.append(2)
    first["list"].append(2)
    assert (second["odd"].items, second["list"]) == ([1], [1])
    assert packing.unpacked()["odd"].items == [1]


def test_a_value_that_can_neither_be_pickled_nor_copied_raises():
    with pytest.raises(TypeError, match="lock"):
        PackedValue(threading.Lock()).unpacked()


# ---- the rest -----------------------------------------------------------------------------


def test_a_search_uses_the_newest_generation(shared):
    app = Satchel()
    app.register_tool(Counting())
    shared.publish(app.catalog)
    for _ in range(2):
        assert [hit.name for hit in shared.search("counts", "tool", 5)] == ["count"]
    app.remove_tool("count")
    shared.publish(app.catalog)
    assert shared.search("counts", "tool", 5) == []


def test_there_is_no_middleware_at_first(shared):
    assert shared.extensions.middleware == ()
