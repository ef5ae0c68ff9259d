"""One whole pass over folders, without a satchel, a watch or a thread."""

import gc
import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from satchel.catalog.catalog import Catalog
from satchel.catalog.catalog_builder import build
from satchel.catalog.catalog_entries import HOST, PluginContribution, Status, ToolContribution
from satchel.diagnostics import Where, make_diagnostic
from satchel.formats.open_plugin_manifest import PLUGIN_SCHEMAS
from satchel.importing.distributions import DistributionFinding
from satchel.importing.module_paths import LocatedModule
from satchel.loader import builtin_providers, reconcile_pass
from satchel.loader.builtin_providers import _McpServers
from satchel.loader.loader_config import ReconcileOptions
from satchel.loader.pass_provider import problems_of
from satchel.loader.reconcile_pass import reconcile
from satchel.loader.scan_cache import Bound, ScanCache
from satchel.providers.provided import nothing_provided, take
from satchel.providers.provider import Contribution
from satchel.providers.skill import Skill, find_skill
from satchel.settings import Limits, Settings, WatchTimings
from satchel.sources.package_scan import PackageFinding
from satchel.sources.search_roots import Precedence, RootKind, search_root

CYRILLIC = "\u0441\u0430\u0440\u0435"
"""It reads like `cape`."""
OPEN = json.dumps({"$schema": next(iter(PLUGIN_SCHEMAS)), "name": "demo"})


@pytest.fixture
def run(pass_inputs, tmp_path):
    """Look at `tmp_path/skills` and `tmp_path/plugins`."""
    roots = (
        search_root(tmp_path / "skills", RootKind.SKILLS),
        search_root(tmp_path / "plugins", RootKind.PLUGINS),
    )

    def run(before=None, settle=60.0, **asked):
        settings = Settings(pace=WatchTimings(settle=settle))
        config = pass_inputs(run_code=False, roots=roots, settings=settings).config
        return reconcile(config, *(before or (ScanCache(), Catalog())), ReconcileOptions(**asked))

    (tmp_path / "skills").mkdir()
    (tmp_path / "plugins").mkdir()
    return run


@pytest.fixture
def write_open(tmp_path, write_skill):
    """Write an open plugin with these skills."""

    def write_open(*skills, text=OPEN):
        folder = tmp_path / "plugins" / "demo"
        folder.mkdir(exist_ok=True)
        (folder / "plugin.json").write_text(text)
        for name in skills:
            write_skill(folder / "skills", name)

    return write_open


def test_a_pass_that_finds_nothing_new_returns_the_generation_before(
    run, write_skill, write_plugin, tmp_path
):
    write_skill(tmp_path / "skills", "pdf")
    write_plugin(tmp_path / "plugins", "demo")
    first = run()
    assert [*first[1].skills, *first[1].plugins] == ["pdf", "demo"]
    second = run(first)
    assert second[1] is first[1]
    assert run(second, dirty=frozenset())[1] is first[1]


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_is_as_it_was_after_a_pass(run, write_skill, tmp_path, is_on):
    write_skill(tmp_path / "skills", "a")
    if not is_on:
        gc.disable()
    try:
        run()
        assert gc.isenabled() is is_on
    finally:
        gc.enable()


def test_only_what_is_dirty_is_read_again(run, write_skill, tmp_path):
    write_skill(tmp_path / "skills", "one")
    write_skill(tmp_path / "skills", "two")
    first = run()
    for name in ("one", "two"):
        write_skill(tmp_path / "skills", name, description="Other.")
    dirty = frozenset({str(tmp_path / "skills" / "one" / "SKILL.md")})
    _, catalog = run(first, dirty=dirty)
    assert [entry.description for entry in catalog.all_skills] == ["Other.", "Does a thing."]
    assert (catalog.generation, catalog.skills["two"].generation) == (2, 1)


@pytest.mark.parametrize("first_event", [["source", "target"], ["source"], ["target"]])
@pytest.mark.parametrize("folders", [("skills", "more"), ("more", "skills")])
def test_a_skill_that_moves_to_another_root_is_served_there(
    pass_inputs, write_skill, tmp_path, folders, first_event
):
    source, target = folders
    paths = {"source": tmp_path / source / "pdf", "target": tmp_path / target / "pdf"}
    write_skill(tmp_path / source, "pdf")
    (tmp_path / target).mkdir()
    roots = tuple(search_root(tmp_path / name, RootKind.SKILLS) for name in ("skills", "more"))
    settings = Settings(pace=WatchTimings(settle=60))
    config = pass_inputs(run_code=False, roots=roots, settings=settings).config
    seen = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    paths["source"].rename(paths["target"])
    for event in (first_event, [name for name in paths if name not in first_event]):
        dirty = frozenset(str(paths[name]) for name in event)
        seen = reconcile(config, *seen, ReconcileOptions(dirty=dirty, debounce=True))
        assert [*seen[1].skills] == ["pdf"]  # at no time is it missing
    assert seen[1].skills["pdf"].path == str(paths["target"])
    assert len(seen[1].all_skills) == 1


def test_a_skill_that_is_written_again_is_not_replaced_by_a_new_copy_elsewhere(
    pass_inputs, write_skill, tmp_path
):
    first, second = (write_skill(tmp_path / name, "pdf", description=name) for name in "ab")
    roots = tuple(search_root(tmp_path / name, RootKind.SKILLS) for name in "ab")
    settings = Settings(pace=WatchTimings(settle=60))
    config = pass_inputs(run_code=False, roots=roots, settings=settings).config
    seen = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    shutil.rmtree(second)
    write_skill(tmp_path / "b", "pdf", description="newer")
    shutil.rmtree(first)
    dirty = frozenset({str(first), str(second)})
    _, catalog = reconcile(config, *seen, ReconcileOptions(dirty=dirty, debounce=True))
    assert catalog.skills["pdf"].description == "a"


def built_skills(monkeypatch):
    """Return a list that receives the names of the skills that each catalog is built of."""
    built = []

    def noted(skills, *parts, **options):
        built.append([ranked.finding.name for ranked in skills])
        return build(skills, *parts, **options)

    monkeypatch.setattr(reconcile_pass, "build", noted)
    return built


def test_beside_skills_of_providers_an_edit_builds_only_its_own_entry(
    pass_inputs, write_skill, tmp_path, monkeypatch
):
    write_skill(tmp_path / "skills", "pdf")
    mine = Skill(name="mine", description="D.", body="B.")
    finding = find_skill(mine, "host", Precedence.EXPLICIT, Limits())
    roots = (search_root(tmp_path / "skills", RootKind.SKILLS),)
    config = replace(pass_inputs(run_code=False, roots=roots).config, host_skills=(finding,))
    now, catalog = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    assert [*catalog.skills] == ["mine", "pdf"]
    file = write_skill(tmp_path / "skills", "pdf", description="Other.") / "SKILL.md"
    built = built_skills(monkeypatch)
    options = ReconcileOptions(dirty=frozenset({str(file)}))
    now, catalog = reconcile(config, now, catalog, options)
    assert built == [["pdf"]]
    assert catalog.skills["pdf"].description == "Other."
    assert now.watch_targets().roots == (str(tmp_path / "skills"),)


@pytest.mark.parametrize("groups", [(), ("office",)])
def test_with_choices_an_edit_builds_only_its_own_entry_unless_there_are_groups(
    pass_inputs, write_skill, tmp_path, monkeypatch, groups
):
    for name in ("pdf", "xlsx"):
        write_skill(tmp_path / "skills", name)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "satchel.toml").write_text('disable = ["else"]\n')
    roots = (replace(search_root(tmp_path / "skills", RootKind.SKILLS), groups=groups),)
    config = pass_inputs(run_code=False, roots=roots).config
    seen = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    file = write_skill(tmp_path / "skills", "pdf", description="Other.") / "SKILL.md"
    built = built_skills(monkeypatch)
    reconcile(config, *seen, ReconcileOptions(dirty=frozenset({str(file)})))
    assert built == [["pdf", "xlsx"] if groups else ["pdf"]]


def test_a_plugin_with_new_functions_is_no_longer_the_same():
    tools = [
        ToolContribution(name="say", description="D.", path="/p", version="1", tool=object())
        for _ in range(2)
    ]
    old, new = (
        PluginContribution(
            name="demo", source="plugins", scope=Precedence.USER, path="/p", unit="/p", rank=(),
            digest="1", tools=(tool,),
        )
        for tool in tools
    )  # fmt: skip
    assert old == new
    assert reconcile_pass._is_same(old, old)
    assert reconcile_pass._is_same(replace(old), old)
    assert not reconcile_pass._is_same(new, old)


def test_two_providers_of_one_name_both_keep_their_skills(pass_inputs):
    def provided(owner):
        nothing = nothing_provided("db", owner, 5)
        skill = Skill(name=f"of-{owner}", description="D.", body="B.")
        return take(Contribution(skills=[skill]), nothing, Limits(), 1)

    config = replace(
        pass_inputs(run_code=False).config, provided=(provided("one"), provided("two"))
    )
    _, catalog = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    assert [*catalog.skills] == ["of-one", "of-two"]


def test_a_broken_edit_settles_before_it_counts(run, write_skill, tmp_path):
    write_skill(tmp_path / "skills", "pdf")
    first = run()
    folder = write_skill(tmp_path / "skills", "pdf", text="torn")
    settling, catalog = run(first, debounce=True)
    assert catalog is first[1]
    assert settling.watch_targets().settling == {str(folder)}
    settled, catalog = run((settling, catalog), settle=0.0, debounce=True)
    assert (catalog.skills["pdf"].state, settled.settling) == (Status.STALE, frozenset())


def test_of_a_rejected_open_plugin_nothing_more_is_discovered(run, write_open):
    write_open("one")
    first = run()
    write_open("one", "two", text="{")
    rejected, catalog = run(first)
    assert catalog.plugins["demo"].state is Status.STALE
    assert list(catalog.skills) == ["one"]
    write_open("one", "two")
    _, catalog = run((rejected, catalog), dirty=frozenset({catalog.plugins["demo"].path}))
    assert list(catalog.skills) == ["one", "two"]


def test_while_an_open_plugin_settles_nothing_more_is_discovered_either(run, write_open):
    write_open("one")
    first = run()
    write_open("one", "two", text="{")
    settling, catalog = run(first, debounce=True)
    assert (list(catalog.skills), catalog.plugins["demo"].state) == (["one"], Status.OK)
    assert settling.watch_targets().settling


def test_what_is_wrong_with_the_sources_is_in_the_catalog(pass_inputs, tmp_path):
    there = tuple(search_root(tmp_path / str(holds), holds) for holds in RootKind)
    config = pass_inputs(roots=there, entry_points=frozenset({"nothing-of-that-name"})).config
    _, catalog = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    codes = [item.code for item in catalog.source_diagnostics]
    assert codes == ["source-missing", "plugin-not-installed", "source-missing"]


def test_a_watch_observes_the_skills_of_plugins_that_are_served(run, write_open, tmp_path):
    write_open("one")
    now, _ = run()
    roots = {str(tmp_path / name) for name in ("skills", "plugins", "plugins/demo/skills")}
    assert set(now.watch_targets().roots) == roots


def test_what_the_user_disables_is_not_served(pass_inputs, write_skill, tmp_path):
    write_skill(tmp_path / "skills", "pdf")
    write_skill(tmp_path / "skills", "xlsx")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "satchel.toml").write_text('disable = ["pdf"]\n')
    roots = (search_root(tmp_path / "skills", RootKind.SKILLS),)
    now, catalog = reconcile(
        pass_inputs(roots=roots).config, ScanCache(), Catalog(), ReconcileOptions()
    )
    assert [str(entry.state) for entry in catalog.all_skills] == ["disabled", "ok"]
    assert str(tmp_path / "c" / "satchel.toml") in [
        path for path, _ in now.watch_targets().installed
    ]


def test_a_package_that_is_not_installed_is_reported_with_its_near_misses(pass_inputs, monkeypatch):
    scan = SimpleNamespace(findings=(package(),), diagnostics=(), stamps=(), awaited=())
    monkeypatch.setattr(builtin_providers, "scan_distributions", lambda *_: scan)
    monkeypatch.setattr(builtin_providers, "scan_packages", lambda *_: {})
    config = pass_inputs(run_code=False, entry_points=frozenset({"acme", "acmi", "zzz"})).config
    _, catalog = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    assert [(item.where.path, item.fix) for item in catalog.source_diagnostics] == [
        ("entry point acmi", "did you mean acme?"),
        ("entry point zzz", "pip install the package that has it"),
    ]


@pytest.mark.parametrize("is_used", [True, False])
def test_a_watch_observes_an_edited_package_only_while_it_is_used(
    pass_inputs, tmp_path, monkeypatch, is_used
):
    result = PackageFinding(installed=package(), edited=LocatedModule("acme", str(tmp_path)))
    scan = SimpleNamespace(findings=(package(),), diagnostics=(), stamps=(), awaited=())
    monkeypatch.setattr(builtin_providers, "scan_distributions", lambda *_: scan)
    monkeypatch.setattr(builtin_providers, "scan_packages", lambda *_: {"acme": result})
    names = frozenset({"acme"} if is_used else ())
    config = pass_inputs(run_code=False, entry_points=names).config
    now, _ = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    assert now.watch_targets().roots == ((str(tmp_path),) if is_used else ())


def package():
    path = "/site/acme_tools-1.0.dist-info"
    return DistributionFinding(
        name="acme",
        value="acme",
        distribution="acme-tools",
        version="1.0",
        summary="",
        path=path,
        digest="1",
        files=(),
    )


def test_a_package_is_known_by_its_normalized_distribution_name(pass_inputs, monkeypatch):
    installed = replace(package(), distribution="Acme_Tools")
    scan = SimpleNamespace(findings=(installed,), diagnostics=(), stamps=(), awaited=())
    monkeypatch.setattr(builtin_providers, "scan_distributions", lambda *_: scan)
    monkeypatch.setattr(builtin_providers, "scan_packages", lambda *_: {})
    names = frozenset({"acme-tools", "Acme_Tools", "acme", "all"})
    config = pass_inputs(run_code=False, entry_points=names).config
    _, catalog = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    assert catalog.source_diagnostics == ()


def test_two_paths_for_one_prompt_variable_are_reported_in_the_catalog(pass_inputs, monkeypatch):
    problem = make_diagnostic("prompt-variable-contested", Where("/x"), "has several sources")
    monkeypatch.setattr(reconcile_pass, "contract_diagnostics", lambda *_: iter([problem]))
    _, catalog = reconcile(pass_inputs().config, ScanCache(), Catalog(), ReconcileOptions())
    assert problem in catalog.source_diagnostics
    assert catalog.generation == 1


# ---- beside MCP servers ----------------------------------------------------------------------


def test_servers_are_asked_when_the_names_of_plugins_are_known(
    run, write_plugin, tmp_path, monkeypatch
):
    write_plugin(tmp_path / "plugins", "demo")
    known_plugins, ask = [], _McpServers.plugins

    def plugins(servers, inputs, cache):
        known_plugins.append({plugin.contribution.name for plugin in cache.bound.plugins.values()})
        return ask(servers, inputs, cache)

    monkeypatch.setattr(_McpServers, "plugins", plugins)
    run()
    assert ["demo" in names for names in known_plugins] == [True]


def test_a_server_learns_which_names_are_taken_and_by_whom(pass_inputs, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "satchel.mcp_servers.server_contributions.server_contributions",
        lambda _servers, taken, *_: asked.append(taken) or {},
    )
    tool = SimpleNamespace(name="say"), SimpleNamespace(name="route")
    plugins = {
        source: SimpleNamespace(
            contribution=SimpleNamespace(name=name, source=source, tools=(item,), state=Status.OK)
        )
        for name, source, item in (("satchel", HOST, tool[0]), ("maps", "plugins", tool[1]))
    }
    inputs, now = pass_inputs(), ScanCache(bound=Bound(plugins=plugins))
    assert _McpServers().plugins(inputs, now).candidates == ()
    assert asked == [], "without a server nothing is asked"
    with_server = replace(inputs, config=replace(inputs.config, servers=("a server",)))
    _McpServers().plugins(with_server, now)
    assert asked == [{"say": "the application", "route": "plugin 'maps'"}]


def test_only_served_servers_bring_skills_and_no_name_of_another_skill_is_free(
    pass_inputs, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        "satchel.mcp_servers.server_skills.collect_server_skills",
        lambda servers, taken, _limits: asked.append((list(servers), taken)) or ((),),
    )
    up, down = SimpleNamespace(source="mcp:up"), SimpleNamespace(source="mcp:down")
    plugins = [
        SimpleNamespace(name="mcp:up", is_served=True),
        SimpleNamespace(name="mcp:down", is_served=False),
    ]
    findings = [
        SimpleNamespace(path="/s/a", folder_name="a", manifest=SimpleNamespace(name="pdf")),
        SimpleNamespace(path="/s/torn", folder_name="torn", manifest=None),
    ]
    scan = SimpleNamespace(findings={item.path: item for item in findings})
    now = ScanCache(plugins=tuple(plugins), skills={"/s": scan})
    previous = SimpleNamespace(
        all_skills=[
            SimpleNamespace(name="whole", path="/s/torn"),
            SimpleNamespace(name="gone", path="/s/gone"),
            SimpleNamespace(name="former", path="/s/a"),
        ]
    )
    inputs = replace(pass_inputs(), previous=previous)
    assert list(_McpServers().skills(inputs, now)) == []
    inputs = replace(inputs, config=replace(inputs.config, servers=(up, down)))
    list(_McpServers().skills(inputs, now))
    ((servers, taken),) = asked
    assert (servers, taken) == ([up], {"pdf", "torn", "whole"})


def test_a_server_without_skills_is_no_empty_folder(pass_inputs, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcp:").mkdir()
    monkeypatch.setattr(
        "satchel.mcp_servers.server_skills.collect_server_skills", lambda *_: ((), ())
    )
    inputs = pass_inputs()
    servers = (SimpleNamespace(source="mcp:up"),)
    inputs = replace(inputs, config=replace(inputs.config, servers=servers))
    (scan,) = _McpServers().skills(inputs, ScanCache())
    assert [*problems_of(scan)] == []


def test_an_edit_of_skills_is_a_short_pass_only_without_a_lock(pass_inputs):
    inputs = pass_inputs()
    quiet = replace(inputs, cache=replace(inputs.cache, selection=inputs.selection))
    assert reconcile_pass._incremental_skills(quiet, ScanCache()).ranked == ()
    locked = replace(quiet, config=replace(quiet.config, lock="a lock"))
    assert reconcile_pass._incremental_skills(locked, ScanCache()) is None


def test_a_refused_link_is_reported_unless_its_target_is_served_anyway(
    pass_inputs, write_skill, tmp_path
):
    write_skill(tmp_path / "one", "own")
    write_skill(tmp_path / "two", "other")
    write_skill(tmp_path / "three", "lost")
    links = {"deep/skill": "two/other", "all": "two", "rest": "three", "deep/lost": "three/lost"}
    for name, target in links.items():
        (tmp_path / "one" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "one" / name).symlink_to(tmp_path / target)
    roots = tuple(search_root(tmp_path / name, RootKind.SKILLS) for name in ("one", "two"))
    config = replace(pass_inputs(run_code=False, roots=roots).config)
    _, catalog = reconcile(config, ScanCache(), Catalog(), ReconcileOptions())
    refused = {item.where.path: item for item in catalog.source_diagnostics}
    assert refused.keys() == {str(tmp_path / "one/rest"), str(tmp_path / "one/deep/lost")}
    assert "only to the folder of one skill" in refused[str(tmp_path / "one/rest")].message


@pytest.mark.parametrize(
    ("first", "second"), [("cape", CYRILLIC), (CYRILLIC, "cape"), ("n\u00f6te", "cape")]
)
def test_a_name_that_reads_like_another_yields_whichever_comes_first(
    run, write_skill, tmp_path, first, second
):
    write_skill(tmp_path / "skills", first)
    passed = run()
    for name in (second, "third"):
        write_skill(tmp_path / "skills", name)
        passed = run(passed)
        states = {skill.name: skill.state for skill in passed[1].all_skills}
        assert states == {skill.name: skill.state for skill in run()[1].all_skills}
    assert {name for name, state in states.items() if state is Status.SHADOWED} == (
        {first, second} & {CYRILLIC}
    )
