from dataclasses import replace
from types import SimpleNamespace

import pytest

from satchel.catalog.catalog_entries import PluginContribution
from satchel.configuration.selection import Selection
from satchel.configuration.selection_reader import parse_selection
from satchel.diagnostics import Where, make_diagnostic
from satchel.formats.mcp_json import McpServerManifest
from satchel.loader.wanted_servers import declared_servers, with_servers
from satchel.sources.search_roots import Precedence

NOT_STARTED = make_diagnostic("mcp-not-started", Where("/p"), "is not started")
OTHER = make_diagnostic("plugin-field-unknown", Where("/p"), "is unknown")


@pytest.mark.parametrize("run_code", [True, False])
@pytest.mark.parametrize("has_servers", [True, False])
def test_only_a_server_that_is_connected_is_not_reported_as_not_started(
    pass_inputs, run_code, has_servers
):
    server = McpServerManifest(name="s", table={"command": "x"})
    contribution = PluginContribution(
        name="p",
        source="/p",
        scope=Precedence.EXPLICIT,
        path="/p",
        unit="/p",
        rank=(),
        digest="",
        servers=(server,) if has_servers else (),
        diagnostics=(NOT_STARTED, OTHER),
    )
    is_connected = run_code and has_servers
    config = pass_inputs(run_code=run_code).config
    diagnostics = with_servers(contribution, config).diagnostics
    assert diagnostics == ((OTHER,) if is_connected else (NOT_STARTED, OTHER))
    without = replace(contribution, diagnostics=(OTHER,))
    assert with_servers(without, config) is without


def test_a_server_is_connected_unless_it_is_disabled_or_invalid(pass_inputs):
    text = b"""
disable = ["mcp:off", "mcp:keyless"]
[mcp.on]
command = "x"
[mcp.off]
command = "x"
[mcp.keyless]
command = "${NO_SUCH_KEY}"
[mcp.odd]
command = 7
"""
    selection = Selection((parse_selection("/satchel.toml", Precedence.USER, text),))
    servers, problems = declared_servers(selection, (), pass_inputs().gate, None)
    assert [server.name for server in servers] == ["on"]
    keyless, odd, off = problems
    assert [off.code, keyless.code] == ["disabled", "disabled"]
    assert keyless.message == "plugin 'mcp:keyless' is disabled by disable = ['mcp:keyless']"
    assert (odd.code, odd.where.path) == ("mcp-server-invalid", "/satchel.toml")
    assert odd.message.startswith("server 'odd' is left out: ")
    assert odd.fix


def test_an_invalid_server_of_a_plugin_is_left_out_and_the_others_are_connected(pass_inputs):
    declared = [McpServerManifest(name=name, table={"command": name}) for name in ("on", "")]
    contribution = SimpleNamespace(servers=declared, groups=())
    served, broken = (
        SimpleNamespace(
            name="p", path=path, unit=path, scope=Precedence.USER, is_served=is_served,
            contribution=contribution,
        )
        for path, is_served in (("/p", True), ("/q", False))
    )  # fmt: skip
    servers, problems = declared_servers(Selection(), [served, broken], pass_inputs().gate, None)
    assert [server.server.command for server in servers] == ["on"]
    assert [(item.code, item.where.path) for item in problems] == [("mcp-server-invalid", "/p")]
