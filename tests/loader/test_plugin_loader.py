"""Which plugins one pass imports, and what it reuses; nothing is really imported."""

import os
import threading
import time
from dataclasses import replace

import pytest

from satchel.catalog.catalog_entries import Status
from satchel.configuration.selection import Selection
from satchel.diagnostics import Where, make_diagnostic
from satchel.importing.distributions import DistributionFinding
from satchel.loader import builtin_providers, plugin_loader
from satchel.loader.builtin_providers import _InstalledPackages, _PluginFolder
from satchel.loader.loader_config import unit_of
from satchel.loader.pass_provider import ProviderAnswer
from satchel.loader.scan_cache import Imported, ScanCache
from satchel.loader.trust_gate import TrustGate
from satchel.settings import Limits
from satchel.sources.package_scan import PackageFinding
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import RootKind, search_root


class Importer:
    """Stands in for the import of folders: counts, and gives the state it is told to give."""

    def __init__(self):
        self.imported = []
        self.parts = {}
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, result, rank, limits, *, alone):
        self.imported.append(result.path)
        assert self.gate.wait(10)
        supply = builtin_providers.read_folder(result, rank)
        return replace(supply, code=object(), **self.parts.get(result.path, {}))

    @property
    def names(self):
        return ["/".join(path.split("/")[-2:]) for path in self.imported]


@pytest.fixture
def importer(monkeypatch):
    importer = Importer()
    monkeypatch.setattr("satchel.plugins.code_loading.load_folder", importer)
    yield importer
    importer.gate.set()


@pytest.fixture
def write(tmp_path, write_plugin):
    """Write a plugin that is old enough to be whole."""

    def write(root, name="demo", source="X = 1\n", manifest="active: true\n"):
        folder = write_plugin(tmp_path / root, name, manifest, tools=source)
        for file in folder.iterdir():
            os.utime(file, (1, 1))
        return str(folder)

    return write


@pytest.fixture
def scan(tmp_path):
    """Read folders of plugins now; the provider has what was read then."""

    def scan(*roots):
        roots = [search_root(tmp_path / root, RootKind.PLUGINS) for root in roots]
        return [ReadFolder(item, scan_plugins(item, Limits())) for item in roots]

    return scan


class ReadFolder(_PluginFolder):
    """A folder of plugins as it was read once."""

    def __init__(self, root, scan):
        super().__init__(root)
        object.__setattr__(self, "scan", scan)

    def plugins(self, inputs, now):
        items = (self._candidate(inputs, item, None) for item in self.scan.findings.values())
        return ProviderAnswer(candidates=tuple(items))


def import_plugins(inputs, providers, **options):
    roots = tuple(item.root for item in providers if isinstance(item, _PluginFolder))
    inputs = replace(inputs, roots=roots)
    answers = [provider.plugins(inputs, ScanCache()) for provider in providers]
    candidates = [item for answer in answers for item in answer.candidates]
    return plugin_loader.import_plugins(inputs, candidates, **options)


def only(imported: Imported):
    (supply,) = [item for item in imported.contributions.values() if item.name != "host"]
    return supply


def states(imported: Imported):
    return {
        os.path.basename(os.path.dirname(item.path)): item.state
        for item in imported.contributions.values()
        if item.name != "host"
    }


def after(imported: Imported) -> ScanCache:
    return ScanCache(imported=imported)


def test_of_two_of_one_name_only_the_first_is_imported(pass_inputs, importer, write, scan):
    write("near"), write("far")
    result = import_plugins(pass_inputs(), scan("near", "far"))
    assert importer.names == ["near/demo"]
    assert states(result) == {"near": Status.OK, "far": Status.OK}


def test_the_second_is_imported_when_the_first_fails(pass_inputs, importer, write, scan):
    importer.parts[write("near")] = {"state": Status.FAILED}
    write("far")
    result = import_plugins(pass_inputs(), scan("near", "far"))
    assert importer.names == ["near/demo", "far/demo"]
    assert states(result) == {"near": Status.FAILED, "far": Status.OK}


def test_the_second_is_not_imported_when_the_first_lacks_some_tools(
    pass_inputs, importer, write, scan
):
    importer.parts[write("near")] = {"state": Status.DEGRADED}
    write("far")
    import_plugins(pass_inputs(), scan("near", "far"))
    assert importer.names == ["near/demo"]


def test_nothing_is_imported_by_who_only_reads(pass_inputs, importer, write, scan):
    write("near")
    assert only(import_plugins(pass_inputs(run_code=False), scan("near"))).code is None
    assert importer.imported == []


def test_what_cannot_be_read_is_not_imported(pass_inputs, importer, write, scan):
    write("near", source="def (")
    assert only(import_plugins(pass_inputs(), scan("near"))).state is Status.FAILED
    assert importer.imported == []


def test_a_disabled_plugin_is_not_imported_and_takes_no_name(
    pass_inputs, importer, write, scan, tmp_path
):
    write("near"), write("far")
    off = make_diagnostic("disabled", Where("x"), "off")

    class Off(Selection):
        def disabled(self, kind, name, texts=()):
            return off if any("near" in text for text in texts) else None

    result = import_plugins(pass_inputs(selection=Off()), scan("near", "far"))
    assert states(result) == {"near": Status.DISABLED, "far": Status.OK}
    assert importer.names == ["far/demo"]


def test_an_untrusted_plugin_yields_to_a_trusted_one_of_its_name(
    pass_inputs, importer, write, scan, monkeypatch
):
    write("near"), write("far")

    def guarded(_gate, _part, _unit, contribution, _last_good):
        is_untrusted = "/near/" in contribution.path
        state = Status.DEGRADED if is_untrusted else Status.OK
        return replace(contribution, is_untrusted=is_untrusted, state=state)

    monkeypatch.setattr(TrustGate, "guarded", guarded)
    both = import_plugins(pass_inputs(), scan("near", "far"))
    assert states(both) == {"near": Status.REVOKED, "far": Status.OK}
    assert states(import_plugins(pass_inputs(), scan("near"))) == {"near": Status.DEGRADED}
    assert importer.names == ["far/demo"]


def test_the_same_content_is_imported_once(pass_inputs, importer, write, scan):
    write("near")
    result = scan("near")
    first = import_plugins(pass_inputs(), result)
    second = import_plugins(pass_inputs(after(first)), result)
    assert only(second) is only(first)
    assert len(importer.imported) == 1


def test_a_plugin_that_did_not_change_is_kept_unless_its_rank_changed(
    pass_inputs, write, scan, tmp_path
):
    write("near")
    (folder,) = scan("near")
    (finding,) = folder.scan.findings.values()
    inputs = replace(pass_inputs(), roots=(folder.root,))
    candidate = folder._candidate(inputs, finding, None)
    assert folder._candidate(inputs, finding, candidate) is candidate
    another = search_root(tmp_path / "far", RootKind.PLUGINS)
    later = replace(inputs, roots=(another, folder.root))
    assert folder._candidate(later, finding, candidate).contribution.rank[0] == 1


def test_other_content_is_imported_again(pass_inputs, importer, write, scan):
    write("near")
    result = scan("near")
    first = import_plugins(pass_inputs(), result)
    write("near", source="X = 2\n")
    import_plugins(pass_inputs(after(first)), scan("near"))
    assert len(importer.imported) == 2


@pytest.mark.parametrize("state", [Status.FAILED, Status.DEGRADED, Status.HELD])
def test_broken_code_is_tried_again_only_when_asked_to(pass_inputs, importer, write, scan, state):
    importer.parts[write("near")] = {"state": state}
    result = scan("near")
    first = after(import_plugins(pass_inputs(), result))
    import_plugins(pass_inputs(first), result)
    assert len(importer.imported) == 1
    import_plugins(pass_inputs(first, retry=True), result)
    assert len(importer.imported) == 2


def test_an_import_that_took_too_long_is_tried_again_only_when_asked_to(
    pass_inputs, importer, write, scan
):
    problem = make_diagnostic("plugin-import-timeout", Where("x"), "took too long")
    importer.parts[write("near")] = {"state": Status.FAILED, "diagnostics": (problem,)}
    result = scan("near")
    first = after(import_plugins(pass_inputs(), result))
    import_plugins(pass_inputs(first), result)
    assert len(importer.imported) == 1
    import_plugins(pass_inputs(first, retry_late=True), result)
    assert len(importer.imported) == 2


@pytest.mark.parametrize("message", ["ModuleNotFoundError: acme", "ValueError: no"])
def test_an_installation_may_heal_what_lacks_a_module(pass_inputs, importer, write, scan, message):
    problem = make_diagnostic("plugin-import-failed", Where("x"), message)
    importer.parts[write("near")] = {"state": Status.FAILED, "diagnostics": (problem,)}
    result = scan("near")
    first = after(import_plugins(pass_inputs(), result))
    import_plugins(pass_inputs(first), result, may_heal=True)
    assert len(importer.imported) == (2 if "Module" in message else 1)


def test_a_version_that_was_started_with_other_values_is_imported_again(
    pass_inputs, importer, write, scan
):
    importer.parts[write("near")] = {"started_with": "other values"}
    result = scan("near")
    first = after(import_plugins(pass_inputs(), result))
    import_plugins(pass_inputs(first), result)
    assert len(importer.imported) == 2


def test_what_was_only_read_is_imported_once_it_is_first(pass_inputs, importer, write, scan):
    tool = "from satchel import tool\n@tool\ndef f() -> str:\n    return ''\n"
    write("near"), write("far", source=tool)
    both = scan("near", "far")
    first = import_plugins(pass_inputs(), both)
    import_plugins(pass_inputs(after(first)), scan("far"))
    assert importer.names == ["near/demo", "far/demo"]


def test_what_was_held_is_imported_when_its_name_is_free(pass_inputs, importer, write, scan):
    write("near")
    result = scan("near")
    read = import_plugins(pass_inputs(run_code=False), result)
    problem = make_diagnostic("plugin-name-held", Where("/near"), "is new")
    held = replace(only(read), state=Status.HELD, tools=(), diagnostics=(problem,))
    first = after(replace(read, contributions={unit_of(held): held}))
    import_plugins(pass_inputs(first), result)
    assert importer.names == ["near/demo"]


def test_what_is_broken_and_young_settles_without_an_import(pass_inputs, importer, write, scan):
    folder = write("near", source="def (")
    now = time.time()
    os.utime(os.path.join(folder, "tools.py"), (now, now))
    result = scan("near")
    assert only(import_plugins(pass_inputs(debounce=True), result)).state is Status.SETTLING
    assert only(import_plugins(pass_inputs(), result)).state is Status.FAILED


def test_a_slow_import_continues_aside_and_is_taken_over_once(pass_inputs, importer, write, scan):
    write("near")
    importer.gate.clear()
    result = scan("near")
    first = import_plugins(pass_inputs(in_background=True), result)
    assert (only(first).state, len(first.pending)) == (Status.SETTLING, 1)
    second = import_plugins(pass_inputs(after(first), in_background=True), result)
    assert only(second).state is Status.SETTLING
    importer.gate.set()
    third = import_plugins(pass_inputs(after(second)), result)
    assert (only(third).state, third.pending) == (Status.OK, {})
    assert len(importer.imported) == 1


def test_a_pass_in_the_background_does_not_wait_for_a_slow_plugin_with_a_rival(
    pass_inputs, importer, write, scan
):
    write("near"), write("far")
    importer.gate.clear()
    result = import_plugins(pass_inputs(in_background=True), scan("near", "far"))
    assert states(result) == {"near": Status.SETTLING, "far": Status.OK}
    assert importer.names == ["near/demo"]


def test_the_others_are_imported_beside_a_slow_plugin(
    pass_inputs, importer, write, scan, monkeypatch
):
    write("near", "first"), write("near", "second")
    both = threading.Barrier(2)
    monkeypatch.setattr(importer.gate, "wait", lambda seconds: both.wait(seconds) in {0, 1})
    monkeypatch.setattr(plugin_loader, "_PATIENCE", 0.0)
    result = import_plugins(pass_inputs(), scan("near"))
    assert [item.state for item in result.contributions.values()] == [Status.OK] * 2


def test_an_edit_during_a_slow_import_begins_another(pass_inputs, importer, write, scan):
    write("near")
    importer.gate.clear()
    result = scan("near")
    first = import_plugins(pass_inputs(in_background=True), result)
    write("near", source="X = 2\n")
    edited = scan("near")
    second = import_plugins(pass_inputs(after(first), in_background=True), edited)
    assert only(second).state is Status.SETTLING
    importer.gate.set()
    third = import_plugins(pass_inputs(after(second)), edited)
    assert only(third).digest == only(second).digest != only(first).digest
    assert len(importer.imported) == 2


# ---- installed packages ------------------------------------------------------------------------


def package(name="acme", owner="acme-tools", digest="1"):
    installed = DistributionFinding(
        name=name,
        value="acme",
        distribution=owner,
        version="1.0",
        summary="",
        path=f"/site/{owner}-1.0.dist-info",
        digest=digest,
        files=(),
    )
    return PackageFinding(installed=installed)


class ReadPackages(_InstalledPackages):
    """Installed packages as they were read once."""

    def __init__(self, packages):
        super().__init__()
        object.__setattr__(self, "packages", packages)

    def plugins(self, inputs, now):
        return ProviderAnswer(candidates=tuple(self._candidates(inputs, self.packages)))


def installed(*packages, folders=()):
    return [*folders, ReadPackages(packages)]


@pytest.fixture
def packages(monkeypatch, importer):
    """Let the import of packages be the same stand-in."""

    def load_package(result, rank, limits, *, alone, from_source):
        importer.imported.append(result.installed.distribution)
        assert importer.gate.wait(10)
        return replace(builtin_providers.read_package(result, rank), code=object())

    monkeypatch.setattr("satchel.plugins.code_loading.load_package", load_package)
    return importer


ACME = frozenset({"acme"})


@pytest.mark.parametrize("asked", ["all", "acme", "acme-tools"])
def test_only_packages_that_were_asked_for_are_imported(pass_inputs, packages, asked):
    names, there = frozenset({asked}), installed(package())
    assert only(import_plugins(pass_inputs(entry_points=names), there)).state is Status.OK
    assert len(packages.imported) == 1
    off = only(import_plugins(pass_inputs(), there))
    assert (off.state, [item.code for item in off.diagnostics]) == (
        Status.DISABLED,
        ["plugin-not-enabled"],
    )
    assert len(packages.imported) == 1


def test_the_fix_of_one_that_is_not_enabled_names_it_without_doubt(pass_inputs, packages):
    alone = import_plugins(pass_inputs(), installed(package()))
    assert only(alone).diagnostics[0].fix == "satchel enable acme"
    skills = replace(package(), installed=replace(package().installed, value=""))
    (problem,) = only(import_plugins(pass_inputs(), installed(skills))).diagnostics
    assert "ships skills, which are available, not enabled" in problem.message
    two = installed(package(), package(owner="other"), package("else", "else"))
    contributions = import_plugins(pass_inputs(), two).contributions.values()
    fixes = {item.diagnostics[0].fix for item in contributions if item.name != "host"}
    assert fixes == {f"satchel enable {name}" for name in ("acme-tools", "other", "else")}


def test_two_packages_that_offer_one_name_are_revoked_unless_only_one_is_enabled(
    pass_inputs, packages
):
    two = installed(package(), package(owner="other"))
    both = import_plugins(pass_inputs(entry_points=ACME), two)
    codes = {
        item.diagnostics[0].code for item in both.contributions.values() if item.name != "host"
    }
    assert codes == {"plugin-contested"}
    assert packages.imported == []
    before = after(both)
    one = import_plugins(pass_inputs(before, entry_points=frozenset({"other"})), two)
    assert packages.imported == ["other"]
    result = sorted(str(item.state) for item in one.contributions.values() if item.name != "host")
    assert result == ["disabled", "ok"]


def test_a_folder_comes_before_a_package_of_its_name(pass_inputs, packages, write, scan):
    write("near", "acme")
    there = installed(package(), folders=scan("near"))
    result = import_plugins(pass_inputs(entry_points=ACME), there)
    assert packages.names == ["near/acme"]
    assert sorted(item.code is None for item in result.contributions.values()) == [False, True]


def test_a_package_is_imported_again_only_when_its_import_has_ended(pass_inputs, packages):
    packages.gate.clear()
    old, new = installed(package()), installed(package(digest="2"))
    first = import_plugins(pass_inputs(in_background=True, entry_points=ACME), old)
    second = import_plugins(pass_inputs(after(first), in_background=True, entry_points=ACME), new)
    assert (only(second).state, len(packages.imported)) == (Status.SETTLING, 1)
    (pending,) = second.pending.values()
    packages.gate.set()
    assert pending.work.is_done_within(10)
    third = import_plugins(pass_inputs(after(second), in_background=True, entry_points=ACME), new)
    assert (only(third).state, third.pending) == (Status.SETTLING, {})
    fourth = import_plugins(pass_inputs(after(third), entry_points=ACME), new)
    assert (only(fourth).state, len(packages.imported)) == (Status.OK, 2)


@pytest.mark.parametrize(("digest", "imports"), [("1", 1), ("2", 2)])
def test_a_refresh_waits_for_the_running_import_of_a_package_and_imports_other_content(
    pass_inputs, packages, digest, imports
):
    packages.gate.clear()
    inputs = pass_inputs(in_background=True, entry_points=ACME)
    first = import_plugins(inputs, installed(package()))
    packages.gate.set()
    there = installed(package(digest=digest))
    second = import_plugins(pass_inputs(after(first), entry_points=ACME), there)
    assert (only(first).state, only(second).state) == (Status.SETTLING, Status.OK)
    assert len(packages.imported) == imports


def test_a_package_that_is_broken_and_young_settles(pass_inputs, packages, write, scan):
    write("near", "acme", "def (")
    ((part,),) = [item.scan.findings.values() for item in scan("near")]
    there = installed(replace(package(), part=part))
    settling = import_plugins(pass_inputs(debounce=True, entry_points=ACME), there)
    assert (only(settling).state, packages.imported) == (Status.SETTLING, [])
    assert only(import_plugins(pass_inputs(entry_points=ACME), there)).state is Status.FAILED


# ---- startup and processes ---------------------------------------------------------------------


def test_a_version_with_a_life_is_started_with_its_configuration(
    pass_inputs, importer, write, scan, monkeypatch
):
    importer.parts[write("near")] = {"lifecycle": object()}
    seen = []

    def start(supply, config, *, alone):
        seen.append((dict(config.values), alone))
        return supply

    monkeypatch.setattr("satchel.plugins.code_loading.started", start)
    values = {"demo": {"size": 3}}
    import_plugins(pass_inputs(plugin_values=values), scan("near"))
    import_plugins(pass_inputs(plugin_values=values, in_background=True), scan("near"))
    assert seen == [({"size": 3}, True), ({"size": 3}, False)]


def test_a_plugin_that_asks_for_a_process_gets_one(pass_inputs, importer, write, scan, monkeypatch):
    write("near", manifest="isolation: process\n")
    started = []

    def load_worker(supply, result, configured, workers):
        started.append(workers)
        return replace(supply, code=object())

    monkeypatch.setattr("satchel.workers.worker_loading.load_worker", load_worker)
    processes = object()
    import_plugins(pass_inputs(workers=processes), scan("near"))
    assert (started, importer.imported) == ([processes], [])
    import_plugins(pass_inputs(), scan("near"))
    assert (len(started), len(importer.imported)) == (1, 1)
