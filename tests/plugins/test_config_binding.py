"""Fitting tools to the host, without a satchel around it."""

import threading
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from satchel.catalog.catalog_entries import Group, PluginContribution, Status, ToolContribution
from satchel.configuration.configuration import Configuration, read_configuration
from satchel.errors import DefinitionError
from satchel.formats.config_fields import ConfigField
from satchel.plugins.config_binding import bind_config, bind_state
from satchel.sources.search_roots import Precedence
from satchel.tools import FunctionTool

CANARY = "s3cr3t-canary"


class More(BaseModel):
    unit: str = "C"


def needs_key(api_key: str) -> str:
    return api_key


def has_default(retries: int = 2) -> int:
    return retries


def plain(**others: Any) -> str:
    return str(others)


def supply(
    *tools: FunctionTool, name: str = "acme", groups: tuple[Group, ...] = ()
) -> PluginContribution:
    offered = tuple(
        ToolContribution(name=t.name, description="", path="tools.py", version="v1", tool=t)
        for t in tools
    )
    return PluginContribution(
        name=name,
        source=name,
        scope=Precedence.EXPLICIT,
        path="",
        unit=name,
        rank=(),
        digest="",
        tools=offered,
        groups=groups,
    )


def configured(problems=(), **values):
    return lambda plugin, _fields: Configuration(
        plugin=plugin, path=f"/conf/{plugin}.env", values=values, diagnostics=tuple(problems)
    )


def never(_plugin, _fields):
    raise AssertionError("nobody needs a configuration")


def names(fitted) -> list[str]:
    return [tool.name for tool in fitted.contribution.tools]


def codes(fitted) -> list[str]:
    return [item.code for item in fitted.contribution.diagnostics]


def test_a_plugin_without_state_is_passed_on_and_its_configuration_is_not_read():
    supplied = supply(FunctionTool(plain))
    assert bind_config(supplied, never, {}, None).contribution is supplied


def test_a_tool_is_bound_on_a_copy():
    raw = FunctionTool(needs_key, state=["api_key"])
    fitted = bind_config(supply(raw), configured(api_key="abc"), {}, None)
    (created,) = fitted.contribution.tools
    assert created.tool is not raw
    assert created.tool.injected == {"api_key": "abc"}
    assert raw.injected == {}


def test_what_lacks_a_value_is_left_out_and_the_key_and_the_file_are_named():
    tools = FunctionTool(needs_key, state=["api_key"]), FunctionTool(has_default, state=["retries"])
    fitted = bind_config(supply(*tools), configured(), {}, None)
    assert names(fitted) == ["has_default"]
    (problem,) = fitted.contribution.diagnostics
    assert (problem.code, problem.where.path) == ("tool-state-missing", "/conf/acme.env")
    assert "'api_key'" in problem.message
    assert "API_KEY=... into /conf/acme.env" in problem.fix
    assert "SATCHEL_ACME_API_KEY" in problem.fix


def test_tools_that_lack_the_same_value_share_one_diagnostic():
    def also(api_key: str) -> str:
        return api_key

    one, other = (FunctionTool(each, state=["api_key"]) for each in (needs_key, also))
    fitted = bind_config(supply(one, other, FunctionTool(plain)), configured(), {}, None)
    (problem,) = fitted.diagnostics
    assert "tools 'needs_key', 'also' are left out: 'api_key' has no value" in problem.message
    assert [tool.diagnostics for tool in fitted.contribution.unusable] == [(problem,)] * 2
    (problem,) = bind_config(supply(one), configured(), {}, fitted).diagnostics
    assert problem.message.startswith("tool 'needs_key' is left out")


def test_a_value_of_the_wrong_type_is_named_and_never_shown():
    tool = FunctionTool(has_default, state=["retries"])
    fitted = bind_config(supply(tool), configured(retries=CANARY), {}, None)
    assert names(fitted) == []
    assert codes(fitted) == ["tool-unfit"]
    assert "'retries'" in fitted.contribution.diagnostics[0].message
    assert CANARY not in repr(fitted)


def test_a_value_that_cannot_be_copied_points_at_the_class_form():
    def hold(lock: Any) -> str:
        return str(lock)

    tool = FunctionTool(hold, state=["lock"])
    fitted = bind_config(supply(tool), configured(lock=threading.Lock()), {}, None)
    (problem,) = fitted.contribution.diagnostics
    assert "'lock', a lock, cannot be copied" in problem.message
    assert "subclass of Tool" in problem.fix


def test_the_same_tool_with_the_same_value_stays_the_same_object():
    supplied = supply(FunctionTool(needs_key, state=["api_key"]))
    first = bind_config(supplied, configured(api_key="abc"), {}, None)
    second = bind_config(supplied, configured(api_key="abc"), {}, first)
    assert second.contribution.tools[0].tool is first.contribution.tools[0].tool
    third = bind_config(supplied, configured(api_key="xyz"), {}, second)
    assert third.contribution.tools[0].tool is not first.contribution.tools[0].tool
    assert third.contribution.tools[0].version != first.contribution.tools[0].version


def test_a_value_of_one_tool_is_no_news_to_another():
    tools = FunctionTool(needs_key, state=["api_key"]), FunctionTool(has_default, state=["retries"])
    supplied = supply(*tools)
    first = bind_config(supplied, configured(api_key="abc", retries=1), {}, None)
    second = bind_config(supplied, configured(api_key="abc", retries=2), {}, first)
    assert second.contribution.tools[0] is first.contribution.tools[0]
    assert second.contribution.tools[1].version != first.contribution.tools[1].version


def test_the_same_value_gives_the_same_version_hot_or_cold():
    supplied = supply(FunctionTool(needs_key, state=["api_key"]))
    first, second = (bind_config(supplied, configured(api_key="abc"), {}, None) for _ in "ab")
    assert first.contribution.tools[0].version == second.contribution.tools[0].version
    assert first.contribution.tools[0].version != "v1"


def test_what_fitted_last_continues_while_a_value_does_not_fit_or_no_one_can_know_it():
    supplied = supply(FunctionTool(has_default, state=["retries"]))
    first = bind_config(supplied, configured(retries="1"), {}, None)
    broken = bind_config(supplied, configured(retries=CANARY), {}, first)
    assert broken.contribution.tools == first.contribution.tools
    assert codes(broken) == ["tool-unfit"]
    assert (
        bind_config(supplied, configured(retries=CANARY), {}, broken).contribution.tools
        == first.contribution.tools
    )
    assert codes(bind_config(supplied, configured(retries="2"), {}, broken)) == []

    supplied = supply(FunctionTool(needs_key, state=["api_key"]))
    first = bind_config(supplied, configured(api_key="abc"), {}, None)
    unreadable = Configuration(plugin="acme", path="/conf/acme.env", values={}, is_unreadable=True)
    broken = bind_config(supplied, lambda _plugin, _fields: unreadable, {}, first)
    assert broken.contribution.tools == first.contribution.tools
    assert codes(broken) == ["tool-state-missing"]
    gone = bind_config(supplied, configured(), {}, broken)
    assert names(gone) == [], "who takes a value away means it"


def test_no_value_is_in_a_version_or_a_repr():
    supplied = supply(FunctionTool(needs_key, state=["api_key"]))
    fitted = bind_config(supplied, configured(api_key=CANARY), {}, None)
    assert CANARY not in repr(fitted)
    assert CANARY not in fitted.contribution.tools[0].version


def test_trouble_with_the_file_comes_and_goes_although_the_values_stay():
    from satchel.diagnostics import Where, make_diagnostic

    supplied = supply(FunctionTool(needs_key, state=["api_key"]))
    trouble = make_diagnostic("config-unreadable", Where("/conf/acme.env"), "no")
    first = bind_config(supplied, configured(api_key="abc"), {}, None)
    second = bind_config(supplied, configured([trouble], api_key="abc"), {}, first)
    assert codes(second) == ["config-unreadable"]
    assert second.contribution.tools == first.contribution.tools
    assert codes(bind_config(supplied, configured(api_key="abc"), {}, second)) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"apikey": "file"}, "file"),
        ({"apiKey": "code"}, "code"),
        ({"apikey": "file", "apiKey": "code"}, "code"),
    ],
)
def test_a_parameter_with_capitals_is_found_and_the_hosts_spelling_wins(values, expected):
    def call(apiKey: str) -> str:  # noqa: N803 - what it is about
        return apiKey

    fitted = bind_config(
        supply(FunctionTool(call, state=["apiKey"])), configured(**values), {}, None
    )
    assert fitted.contribution.tools[0].tool.injected == {"apiKey": expected}


# ---- what groups require ------------------------------------------------------------------


def requiring(*keys: str, name: str = "maps") -> PluginContribution:
    return supply(FunctionTool(plain), groups=(Group(name="free"), Group(name=name, requires=keys)))


def missing(fitted) -> dict[str, tuple[str, ...]]:
    return {group.name: group.missing for group in fitted.contribution.groups}


def test_a_group_whose_keys_have_values_is_as_it_was():
    fitted = bind_config(requiring("KEY", "url"), configured(key="abc", url=0), {}, None)
    assert missing(fitted) == {"free": (), "maps": ()}
    assert (codes(fitted), fitted.diagnostics) == ([], ())


def test_a_group_without_a_value_says_what_it_lacks_and_where_to_put_it():
    fitted = bind_config(requiring("KEY", "URL"), configured(url=CANARY), {}, None)
    assert missing(fitted) == {"free": (), "maps": ("KEY",)}
    assert names(fitted) == ["plain"], "its tools are fitted all the same"
    (problem,) = fitted.contribution.diagnostics
    assert fitted.diagnostics == (problem,)
    assert (problem.code, problem.where.path) == ("group-unavailable", "/conf/acme.env")
    assert problem.message == "group 'maps' is unavailable: it requires KEY"
    assert "put KEY=... into /conf/acme.env, or set SATCHEL_ACME_KEY" in problem.fix
    assert CANARY not in repr(fitted)


def test_every_key_that_is_missing_is_named():
    (problem,) = bind_config(requiring("ONE", "two"), configured(), {}, None).diagnostics
    assert "it requires ONE, two" in problem.message
    assert "ONE=..." in problem.fix
    assert "TWO=..." in problem.fix


@pytest.mark.parametrize("values", [{"apikey": "file"}, {"apiKey": "code"}])
def test_a_required_key_with_capitals_is_found_in_files_and_code(values):
    assert missing(bind_config(requiring("apiKey"), configured(**values), {}, None))["maps"] == ()


def test_a_value_of_none_is_none():
    assert missing(bind_config(requiring("key"), configured(key=None), {}, None))["maps"] == (
        "key",
    )


def test_each_group_answers_for_its_own_keys():
    groups = Group(name="a", requires=("ONE",)), Group(name="b", requires=("TWO",))
    fitted = bind_config(supply(groups=groups), configured(one="1"), {}, None)
    assert missing(fitted) == {"a": (), "b": ("TWO",)}


def test_a_group_follows_the_configuration_and_its_tools_stay_the_same():
    supplied = requiring("KEY")
    without = bind_config(supplied, configured(), {}, None)
    with_key = bind_config(supplied, configured(key="abc"), {}, without)
    again = bind_config(supplied, configured(), {}, with_key)
    assert [missing(fitted)["maps"] for fitted in (without, with_key, again)] == [
        ("KEY",),
        (),
        ("KEY",),
    ]
    assert [codes(fitted) for fitted in (without, with_key, again)] == [
        ["group-unavailable"],
        [],
        ["group-unavailable"],
    ]
    assert with_key.contribution.tools == without.contribution.tools == supplied.tools
    assert with_key.contribution.tools[0].tool is supplied.tools[0].tool


def test_what_a_group_lacks_and_what_a_tool_lacks_are_distinguished():
    tool = FunctionTool(needs_key, state=["api_key"])
    supplied = supply(tool, groups=(Group(name="maps", requires=("API_KEY",)),))
    assert codes(bind_config(supplied, configured(), {}, None)) == [
        "tool-state-missing",
        "group-unavailable",
    ]
    fitted = bind_config(supplied, configured(api_key=CANARY), {}, None)
    assert (codes(fitted), missing(fitted)) == ([], {"maps": ()})
    assert CANARY not in repr(fitted)


def test_a_model_alone_needs_no_configuration_and_leaves_groups_as_they_are():
    supplied = supply(FunctionTool(plain), groups=(Group(name="maps"),))
    fitted = bind_config(supplied, never, {"acme:plain": More}, None)
    assert fitted.contribution.groups == supplied.groups


class Odd:
    """A value that can be copied, and neither written nor compared."""

    def __repr__(self):
        raise RuntimeError(CANARY)

    def __eq__(self, other):
        raise RuntimeError(CANARY)

    __hash__ = None


def test_a_value_that_can_neither_be_written_nor_compared_serves():
    def hold(value: Any) -> str:
        return type(value).__name__

    supplied = supply(FunctionTool(hold, state=["value"]))
    odd = configured(value=Odd())
    first = bind_config(supplied, odd, {}, None)
    second = bind_config(supplied, odd, {}, first)
    assert names(second) == ["hold"]
    assert second.contribution.tools[0].version == first.contribution.tools[0].version


def test_another_value_that_cannot_be_compared_takes_the_place_of_the_first():
    def hold(value: Any) -> str:
        return type(value).__name__

    supplied = supply(FunctionTool(hold, state=["value"]))
    first = bind_config(supplied, configured(value=Odd()), {}, None)
    second = bind_config(supplied, configured(value=Odd()), {}, first)
    assert second.contribution.tools[0].tool is not first.contribution.tools[0].tool
    assert codes(second) == []


def test_an_annotation_that_is_there_for_type_checkers_only_takes_any_value():
    def hold(client: "NotThere") -> str:  # noqa: F821 - what it is about
        return str(client)

    fitted = bind_config(
        supply(FunctionTool(hold, state=["client"])), configured(client=5), {}, None
    )
    assert fitted.contribution.tools[0].tool.injected == {"client": 5}


def test_a_validator_that_fails_in_its_own_way_costs_that_tool_alone_and_quotes_nothing():
    def refuse(value: str) -> str:
        raise RuntimeError(value)

    def hold(key: Annotated[str, AfterValidator(refuse)]) -> str:
        return key

    tools = FunctionTool(hold, state=["key"]), FunctionTool(has_default, state=["retries"])
    fitted = bind_config(supply(*tools), configured(key=CANARY), {}, None)
    assert names(fitted) == ["has_default"]
    (problem,) = fitted.contribution.diagnostics
    assert problem.code == "tool-unfit"
    assert "'key'" in problem.message
    assert CANARY not in str(problem)


def test_a_copy_that_fails_in_its_own_way_never_quotes_the_value():
    class Loud:
        def __deepcopy__(self, memo):
            raise ValueError(CANARY)

    def hold(value: Any) -> str:
        return str(value)

    with pytest.raises(DefinitionError) as caught:
        bind_state(FunctionTool(hold, state=["value"]), {"value": Loud()})
    assert CANARY not in str(caught.value)


def test_a_model_is_for_one_plugins_tool():
    def twin(x: int) -> int:
        return x

    models = {"acme:plain": More}
    fitted = bind_config(supply(FunctionTool(plain)), never, models, None)
    (created,) = fitted.contribution.tools
    assert list(created.tool.parameters["properties"]) == ["unit"]
    assert created.version != "v1"
    other = supply(FunctionTool(twin, name="plain"), name="other")
    assert bind_config(other, never, models, None).contribution is other


def test_a_model_that_does_not_fit_costs_that_tool_alone():
    def closed(x: int) -> int:
        return x

    tools = FunctionTool(closed), FunctionTool(plain)
    models = {"acme:closed": More, "acme:plain": More}
    fitted = bind_config(supply(*tools), never, models, None)
    assert names(fitted) == ["plain"]
    (problem,) = fitted.contribution.diagnostics
    assert (problem.code, problem.where.path) == ("tool-unfit", "tools.py")
    assert "**kwargs" in problem.fix


def test_a_model_that_goes_gives_the_tool_back_as_it_was():
    supplied = supply(FunctionTool(plain))
    first = bind_config(supplied, never, {"acme:plain": More}, None)
    second = bind_config(supplied, never, {}, first)
    assert second.contribution is supplied


def test_state_and_a_model_may_come_together():
    def both(api_key: str, **others: Any) -> str:
        return api_key + str(others)

    supplied = supply(FunctionTool(both, state=["api_key"]))
    fitted = bind_config(supplied, configured(api_key="abc"), {"acme:both": More}, None)
    (created,) = fitted.contribution.tools
    assert created.tool.injected == {"api_key": "abc"}
    assert list(created.tool.parameters["properties"]) == ["unit"]


def declared(tmp_path, supplied, fields, before=None, **values):
    def read(plugin, declared_fields):
        return read_configuration(plugin, values, str(tmp_path), declared_fields)

    return bind_config(replace(supplied, config=fields), read, {}, before)


RETRIES = ConfigField(name="retries", type="integer", default=5, required=False)
KEY = ConfigField(name="api_key", type="secret")


def test_a_default_of_the_manifest_fills_the_field_and_satisfies_a_group(tmp_path):
    group = Group(name="web", requires=("RETRIES",))
    supplied = supply(FunctionTool(has_default, state=["retries"]), groups=(group,))
    fitted = declared(tmp_path, supplied, (RETRIES,))
    assert fitted.contribution.tools[0].tool.injected == {"retries": 5}
    assert fitted.contribution.groups[0].missing == ()
    assert codes(fitted) == []


def test_a_value_that_is_not_allowed_costs_the_tools_that_take_it_and_continues_if_it_can(tmp_path):
    """Also where Python has a default: somebody meant another value."""
    tools = FunctionTool(has_default, state=["retries"]), FunctionTool(plain)
    supplied = supply(*tools)
    cold = declared(tmp_path, supplied, (RETRIES,), retries=CANARY)
    assert names(cold) == ["plain"]
    assert codes(cold) == ["config-invalid", "tool-unfit"]
    first = declared(tmp_path, supplied, (RETRIES,))
    warm = declared(tmp_path, supplied, (RETRIES,), first, retries=CANARY)
    assert names(warm) == ["has_default", "plain"]
    assert warm.contribution.tools[0] is first.contribution.tools[0]
    assert codes(warm) == ["config-invalid", "tool-unfit"]
    assert CANARY not in repr((cold, warm))
    mended = declared(tmp_path, supplied, (RETRIES,), warm, retries=7)
    assert mended.contribution.tools[0].tool.injected == {"retries": 7}


def test_a_required_field_is_reported_once_by_the_tool_that_needs_it_or_else_by_itself(tmp_path):
    needing = supply(FunctionTool(needs_key, state=["api_key"]), FunctionTool(plain))
    fitted = declared(tmp_path, needing, (KEY,))
    assert (names(fitted), codes(fitted)) == (["plain"], ["tool-state-missing"])
    assert "satchel config set acme api_key," in fitted.contribution.diagnostics[0].fix
    assert codes(declared(tmp_path, supply(FunctionTool(plain)), (KEY,))) == ["config-invalid"]


def test_of_a_plugin_that_is_disabled_nothing_is_reported():
    off = replace(
        supply(groups=(Group(name="web", requires=("KEY",)),)), config=(KEY,), state=Status.DISABLED
    )
    assert bind_config(off, never, {}, None).contribution is off
