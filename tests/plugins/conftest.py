"""Plugins as folders and as packages, scanned and loaded in one step."""

import gc
import shutil
import sys
from collections.abc import Callable

import pytest

from satchel.catalog.catalog_entries import PluginContribution
from satchel.importing.code_guard import PRIVATE_PREFIX
from satchel.importing.distributions import scan_distributions
from satchel.plugins.code_loading import load_folder, load_package
from satchel.plugins.plugin_reading import read_folder, read_package
from satchel.settings import Limits
from satchel.sources.package_scan import scan_packages
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root

TOOL = '''
from satchel import tool

@tool
def hello(name: str) -> str:
    """Say hello."""
    return "Hello " + name
'''


@pytest.fixture(scope="session")
def tool_source() -> str:
    """The source of a module with one good tool."""
    return TOOL


@pytest.fixture
def loaded():
    """Purge what a test imported; nothing private may be left after it."""
    supplies: list[PluginContribution] = []
    gc.collect()  # what earlier tests left to the collector
    yield supplies
    for supply in supplies:
        if supply.code is not None:
            supply.code.purge()
    assert [name for name in sys.modules if name.startswith(PRIVATE_PREFIX)] == []


@pytest.fixture
def load_installed(loaded) -> Callable[..., PluginContribution]:
    """Return a function that reads the one package in a folder, and if `run`, imports it."""

    def load_installed(site, *, run, limits=None):
        installed = scan_distributions([str(site)]).findings
        (item,) = scan_packages(installed, Limits(), lambda _: True, {}).values()
        if not run:
            return read_package(item, (0,))
        loaded.append(load_package(item, (0,), limits or Limits(hook=60)))
        return loaded[-1]

    return load_installed


@pytest.fixture
def find(tmp_path) -> Callable[[str], PluginFinding]:
    def find(name: str) -> PluginFinding:
        return scan_plugins(search_root(tmp_path, RootKind.PLUGINS), Limits()).findings[name]

    return find


@pytest.fixture
def load(find, loaded, write_plugin, tmp_path) -> Callable[..., PluginContribution]:
    """Write the folder plugin `demo` and import it; `run=False` only reads it."""

    def load(
        manifest: str = "", *, run: bool = True, limits=None, **modules: str
    ) -> PluginContribution:
        write_plugin(tmp_path, "demo", manifest, **modules)
        match = find("demo")
        if not run:
            return read_folder(match, (0,))
        loaded.append(load_folder(match, (0,), limits or Limits(plugin_import=60, hook=60)))
        return loaded[-1]

    return load


@pytest.fixture
def package(load_installed, tmp_path, monkeypatch) -> Callable[..., PluginContribution]:
    """Install the plugin package `acme` into a folder of its own, and import it."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    before = set(sys.modules)

    def package(
        source: str, *, name: str = "acme", run: bool = True, limits=None
    ) -> PluginContribution:
        info = site / "acme-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (site / "acme_plugin.py").write_text(source)
        # As installers do: a `.pyc` counts as current if second and size of its source match.
        shutil.rmtree(site / "__pycache__", ignore_errors=True)
        (info / "METADATA").write_text("Name: acme-tools\nVersion: 1.0\nSummary: Sums up.\n")
        (info / "entry_points.txt").write_text(f"[satchel.plugins]\n{name} = acme_plugin\n")
        (info / "RECORD").write_text(f"acme_plugin.py,,{hash(source)}\n")
        return load_installed(site, run=run, limits=limits)

    yield package
    for module in set(sys.modules) - before:
        if module.startswith("acme"):
            del sys.modules[module]


@pytest.fixture
def codes() -> Callable[[PluginContribution], list[str]]:
    return lambda supply: [item.code for item in supply.diagnostics]
