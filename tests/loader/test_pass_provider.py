"""What is watched of a search root."""

from dataclasses import replace

import pytest

from satchel.diagnostics import Where, make_diagnostic
from satchel.loader.pass_provider import targets_of
from satchel.settings import Limits
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root


@pytest.mark.parametrize(("code", "count"), [("source-unreadable", 1), ("source-missing", 0)])
def test_only_what_could_not_be_read_is_watched_as_unreadable(tmp_path, code, count):
    scan = scan_plugins(search_root(tmp_path, RootKind.PLUGINS), Limits())
    problem = make_diagnostic(code, Where("/lost"), "is not there")
    targets = targets_of(replace(scan, diagnostics=(problem,)))
    assert targets.unreadable == ("/lost",) * count
    assert targets.roots == (str(tmp_path),)
