"""Binding the plugins of one pass: configuration, and which version is served."""

import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_entries import (
    PluginContribution,
    PluginEntry,
    Status,
    ToolContribution,
)
from satchel.catalog.unit_entries import build_plugins
from satchel.configuration.selection import Selection
from satchel.diagnostics import Where, make_diagnostic
from satchel.files.file_reader import Stamp
from satchel.loader.config_binder import bind
from satchel.loader.loader_config import unit_of
from satchel.loader.scan_cache import Bound, ScanCache
from satchel.sources.search_roots import Precedence
from satchel.tools import FunctionTool


def needs_key(api_key: str) -> str:
    return api_key


def supply(state=Status.OK, digest="1", *tools, **parts):
    parts.setdefault("tools", tuple(tools))
    scope = Precedence.EXPLICIT
    return PluginContribution(
        name="demo",
        source="plugins",
        scope=scope,
        path="/p",
        unit="/p",
        rank=(),
        digest=digest,
        state=state,
        **parts,
    )


def tool(function=needs_key, *state):
    function_tool = FunctionTool(function, state=list(state))
    return ToolContribution(
        name=function_tool.name, description="", path="tools.py", version="1", tool=function_tool
    )


UNIT = unit_of(supply())


def test_a_good_version_is_served_and_remembered(pass_inputs):
    good = supply()
    bound = bind(pass_inputs(), [good])
    assert bound.plugins[UNIT].contribution is good
    assert (bound.last_good, bound.served_instead) == ({UNIT: good}, {})


@pytest.mark.parametrize("state", [Status.FAILED, Status.DEGRADED, Status.SETTLING])
def test_a_broken_version_leaves_the_last_good_one_in_place(pass_inputs, state):
    good, broken = supply(), supply(state, "2")
    before = ScanCache(bound=bind(pass_inputs(), [good]))
    bound = bind(pass_inputs(before), [broken])
    assert bound.plugins[UNIT].contribution.digest == "2"
    assert bound.last_good[UNIT] is good
    assert bound.served_instead[UNIT].digest == "1"
    again = bind(pass_inputs(ScanCache(bound=bound)), [broken])
    assert again.last_good[UNIT] is good


@pytest.mark.parametrize("state", [Status.DISABLED, Status.REVOKED, Status.HELD])
def test_what_must_not_be_used_ends_its_last_good_version(pass_inputs, state):
    before = ScanCache(bound=bind(pass_inputs(), [supply()]))
    bound = bind(pass_inputs(before), [supply(state, "2")])
    assert (bound.last_good, bound.served_instead) == ({}, {})


def test_the_last_good_version_gets_the_configuration_of_now(pass_inputs):
    good = supply(Status.OK, "1", tool(needs_key, "api_key"))
    before = ScanCache(bound=bind(pass_inputs(plugin_values={"demo": {"api_key": "old"}}), [good]))
    now = pass_inputs(before, plugin_values={"demo": {"api_key": "new"}})
    served = bind(now, [supply(Status.FAILED, "2")]).served_instead[UNIT]
    assert served.tools[0].tool.injected == {"api_key": "new"}


def test_the_file_of_a_configuration_is_stamped_only_where_it_is_needed(pass_inputs, tmp_path):
    plain, configured = supply(), supply(Status.OK, "1", tool(needs_key, "api_key"))
    assert bind(pass_inputs(), [plain]).plugins[UNIT].config_stamps == ()
    ((path, stamp),) = bind(pass_inputs(), [configured]).plugins[UNIT].config_stamps
    assert (path, stamp) == (str(tmp_path / "c" / "plugins" / "demo.env"), Stamp.at(path))


def test_a_disabled_tool_needs_no_values(pass_inputs):
    off = make_diagnostic("disabled", Where("x"), "off")

    class Off(Selection):
        chooses = True

        def disabled(self, kind, name, texts=()):
            return off if (kind, name) == ("tool", "needs_key") else None

    configured = supply(Status.OK, "1", tool(needs_key, "api_key"))
    served = bind(pass_inputs(selection=Off()), [configured]).plugins[UNIT].contribution
    assert [(item.name, item.tool) for item in served.tools] == [("needs_key", None)]
    assert served.diagnostics == ()


def test_two_results_are_joined():
    one = Bound(plugins={"a": 1}, last_good={"a": 2}, served_instead={"a": 3})
    two = Bound(plugins={"b": 4}, last_good={"b": 5}, served_instead={"b": 6})
    assert one | two == Bound(
        plugins={"a": 1, "b": 4}, last_good={"a": 2, "b": 5}, served_instead={"a": 3, "b": 6}
    )


def test_the_generation_before_gets_good_versions_as_they_are_configured_now():
    def entry(served, state=Status.OK):
        return PluginEntry(
            name="demo", description="", source="plugins", scope=Precedence.EXPLICIT, path="/p",
            unit="/p", rank=(), state=state, version="", digest="", contribution=served,
        )  # fmt: skip

    old, new = supply(), supply(digest="configured")
    catalog, broken = Catalog(generation=1, all_plugins=(entry(old),)), supply(Status.FAILED)
    assert build_plugins([broken], catalog)[0].contribution is old
    assert build_plugins([broken], catalog, {UNIT: new})[0].contribution is new
    degraded = Catalog(generation=1, all_plugins=(entry(supply(Status.DEGRADED)),))
    assert build_plugins([broken], degraded, {UNIT: new})[0].contribution is broken
