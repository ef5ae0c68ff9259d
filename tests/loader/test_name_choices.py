"""A new folder cannot take a name by sorting earlier."""

import json
import shutil
import time
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace

import pytest

from satchel import Limits, Satchel, Settings
from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.configuration.selection import Selection, selection_path
from satchel.files.file_reader import UnreadableFileError
from satchel.loader.name_choices import held_newcomers, server_names, with_owned_names
from satchel.sources.search_roots import Precedence

TOOL = '''
from satchel import tool

@tool
def {tool}() -> str:
    """Say who it is."""
    return "{owner}"
'''


@pytest.fixture
def add(tmp_path, write_plugin):
    def add(folder, tool="search", name=""):
        code = TOOL.format(tool=tool, owner=folder)
        path = write_plugin(tmp_path / "plugins", folder, tools=code)
        (path / "toolkit.yaml").write_text(f"name: {name or folder}\nactive: true\n")
        return path

    return add


@pytest.fixture
def load(tmp_path):
    return lambda: Satchel(plugins=[tmp_path / "plugins"])


def says(app, tool="search"):
    return app.session().call_sync(tool, {}).text


def states(app):
    return {entry.source: str(entry.state) for entry in app.catalog.all_tools}


def choose(pattern):
    from pathlib import Path

    path = Path(selection_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"enable = [{json.dumps(pattern)}]\n")


def test_a_new_folder_does_not_take_the_name_of_a_served_tool(add, load):
    add("maps")
    app = load()
    add("a-maps")
    app.refresh()
    for running in (app, load()):
        assert says(running) == "maps"
        assert states(running) == {"a-maps": "held", "maps": "ok"}
        (held,) = (it for it in running.catalog.all_tools if it.state == "held")
        assert [it.code for it in held.diagnostics] == ["tool-name-held"]


def test_the_user_can_choose_the_new_one(add, load):
    add("maps")
    load()
    add("a-maps")
    assert says(load()) == "maps"
    choose("a-maps:search")
    app = load()
    assert says(app) == "a-maps"
    assert states(app) == {"a-maps": "ok", "maps": "shadowed"}


def test_disabling_the_owner_serves_the_new_one(add, load):
    add("maps")
    load()
    add("a-maps")
    app = load()
    from pathlib import Path

    Path(selection_path()).parent.mkdir(parents=True, exist_ok=True)
    Path(selection_path()).write_text('disable = ["maps"]\n')
    app.refresh()
    assert says(app) == "a-maps"


def test_without_a_record_the_order_decides_and_stays(add, load):
    add("maps")
    add("a-maps")
    for _ in range(2):
        app = load()
        assert says(app) == "a-maps"
        assert states(app) == {"a-maps": "ok", "maps": "shadowed"}
        (problem,) = (it for it in app.catalog.diagnostics if it.code == "tool-shadowed")
        assert "'maps'" in problem.message
        assert "'a-maps'" in problem.message


def test_a_broken_owner_keeps_its_name(add, load):
    folder = add("maps")
    load()
    add("a-maps")
    (folder / "tools.py").write_text("def broken(:\n")
    app = load()
    assert states(app) == {"a-maps": "held"}
    assert "cannot be used now" in says(app)


def test_an_owner_that_is_gone_leaves_its_name(add, load):
    folder = add("maps")
    load()
    shutil.rmtree(folder)
    add("a-maps")
    assert says(load()) == "a-maps"


def test_a_new_folder_does_not_take_the_name_of_a_plugin(add, load):
    add("maps")
    load()
    add("a-copy", name="maps")
    app = load()
    assert says(app) == "maps"
    assert {
        it.path.rpartition("/")[2]: str(it.state)
        for it in app.catalog.all_plugins
        if it.name == "maps"
    } == {"a-copy": "held", "maps": "ok"}


def test_a_plugin_that_was_held_is_imported_when_its_owner_is_gone(add, load):
    owner = add("maps")
    load()
    add("a-copy", name="maps")
    app = load()
    assert says(app) == "maps"
    shutil.rmtree(owner)
    app.refresh()
    assert says(app) == "a-copy"


def test_an_owner_that_is_gone_leaves_the_name_of_its_plugin(add, load):
    first = add("first", tool="one", name="maps")
    load()
    shutil.rmtree(first)
    add("second", tool="two", name="maps")
    load()
    add("a-third", tool="three", name="maps")
    (tool,) = load().catalog.plugins["maps"].contribution.tools
    assert tool.name == "two"


def test_no_plugin_takes_the_name_of_a_tool_of_the_session(add, load, tmp_path, write_skill):
    write_skill(tmp_path / "skills", "pdf")
    add("maps", tool="load_skill")
    app = Satchel(plugins=[tmp_path / "plugins"], skills=[tmp_path / "skills"])
    assert "Do it." in app.session().call_sync("load_skill", {"name": "pdf"}).text
    assert states(app) == {"maps": "held"}
    choose("maps:load_skill")
    assert says(Satchel(plugins=[tmp_path / "plugins"]), "load_skill") == "maps"


@pytest.mark.parametrize("name", ["Load_Skill", "load-skill", "load_skill_", "LoadSkill"])
def test_no_plugin_has_a_tool_that_reads_like_one_of_the_session(add, tmp_path, name):
    # A function cannot be called load-skill.
    add("maps", tool=name.replace("-", "__"))
    app = Satchel(plugins=[tmp_path / "plugins"])
    assert states(app) == {"maps": "held"}
    (messages,) = [it.message for it in app.catalog.diagnostics if it.code == "tool-name-held"]
    assert "reads like a built-in tool" in messages


def test_the_host_may_replace_any_tool(add, load):
    add("maps")
    app = load()
    app.register_tool(lambda: "host", name="search", description="d")
    assert says(app) == "host"


def test_a_record_that_cannot_be_read_is_logged_and_protects_while_it_runs(add, tmp_path, caplog):
    state = tmp_path / "state"
    (state / "names").mkdir(parents=True)
    (state / "names/owners.json").write_text("{")
    add("maps")
    app = Satchel(plugins=[tmp_path / "plugins"], settings=Settings(state_folder=str(state)))
    add("a-maps")
    app.refresh()
    assert says(app) == "maps"
    assert "owners of names cannot be read" in caplog.text
    assert "owners.json to start again" in caplog.text


def test_a_record_that_the_system_hides_for_a_moment_is_not_to_be_removed(
    add, tmp_path, caplog, monkeypatch
):
    state = tmp_path / "state"
    (state / "names").mkdir(parents=True)
    (state / "names/owners.json").write_text('{"owners": {}}')
    add("maps")

    def fail(*_: object) -> None:
        raise UnreadableFileError("Too many open files")

    monkeypatch.setattr("satchel.files.state_files.read_regular", fail)
    Satchel(plugins=[tmp_path / "plugins"], settings=Settings(state_folder=str(state))).close()
    assert "Too many open files" in caplog.text
    assert "remove" not in caplog.text


def hang(folder, seconds=0.01):
    """Make the import of a plugin wait for a file, and return that file.

    With `seconds=0`, it takes the processor meanwhile.
    """
    code, go = folder / "tools.py", folder.parent.parent / "go"
    wait = f"import time\nfrom pathlib import Path\nwhile not Path({str(go)!r}).exists():\n"
    code.write_text(wait + f"    time.sleep({seconds})\n" + code.read_text())
    return go


def hurried(tmp_path):
    """Open the plugins while one hangs; the others may need a while on a busy machine."""
    app = Satchel(
        plugins=[tmp_path / "plugins"], settings=Settings(plugin_wait=0, mcp_servers=False)
    )
    latest = time.monotonic() + 60
    while len(app._reconciler.cache.imported.pending) > 1 and time.monotonic() < latest:
        app._reconciler.refresh_in_background()
    return app


def test_an_owner_that_is_still_imported_keeps_its_name(add, load, tmp_path):
    folder = add("maps")
    load()
    add("a-maps")
    add("z-maps")
    go = hang(folder)
    with hurried(tmp_path) as app:
        assert app.is_importing
        assert states(app) == {"a-maps": "held", "z-maps": "held"}
        go.touch()
        app.refresh()
        assert says(app) == "maps"
        assert states(app) == {"a-maps": "held", "maps": "ok", "z-maps": "shadowed"}


def test_an_import_that_is_given_up_keeps_its_name(add, load, tmp_path):
    folder = add("maps")
    load()
    add("z-maps")
    # A limit of processor time: a busy machine does not let the other one reach it.
    go = hang(folder, seconds=0)
    limits = Limits(plugin_import=0.3)
    app = Satchel(plugins=[tmp_path / "plugins"], settings=Settings(limits=limits))
    assert not app.is_importing
    assert states(app) == {"maps": "failed", "z-maps": "held"}
    go.touch()


def test_a_name_without_an_owner_waits_for_the_import_of_the_first(add, load, tmp_path):
    go = hang(add("maps"))
    add("a-maps", tool="other")
    add("z-maps")
    with hurried(tmp_path) as app:
        assert states(app) == {"a-maps": "ok", "z-maps": "held"}
        (held,) = app.catalog.tool("search").diagnostics
        assert held.message.endswith("comes first, and is still being imported")
        go.touch()
        app.refresh()
        assert says(app) == "maps"
    add("b-maps")
    assert says(load()) == "maps"


def test_no_owner_is_recorded_during_an_import(add, load, tmp_path):
    folder = add("maps")
    (folder / "tools.py").write_text("1 / 0\n")
    go = hang(folder)
    add("z-maps")
    with hurried(tmp_path) as app:
        # What the code of the other one will bring is not known.
        assert says(app) == "z-maps"
        assert not app._reconciler.config.owners.of("tool", "search")
        go.touch()
        app.refresh()
        assert app._reconciler.config.owners.of("tool", "search")


def test_a_waiting_name_is_free_when_the_slow_plugin_is_removed(add, tmp_path):
    folder = add("maps")
    go = hang(folder)
    add("z-maps")
    with hurried(tmp_path) as app:
        assert states(app) == {"z-maps": "held"}
        shutil.rmtree(folder)
        app.refresh()
        assert says(app) == "z-maps"
        go.touch()


@pytest.mark.parametrize(
    ("is_untrusted", "state", "keeps"),
    [
        (False, Status.OK, True),
        (False, Status.REVOKED, True),
        (True, Status.DEGRADED, True),
        (True, Status.HELD, False),
        (True, Status.REVOKED, False),
    ],
)
def test_a_plugin_of_which_only_the_data_is_trusted_keeps_no_name(is_untrusted, state, keeps):
    new, first = (
        PluginContribution(
            name="maps", source="plugins", scope=Precedence.USER, path=f"/{number}",
            unit=f"/{number}", rank=(number,), digest="",
        )
        for number in range(2)
    )  # fmt: skip
    owner = replace(first, is_untrusted=is_untrusted, state=state)
    config = SimpleNamespace(owners=SimpleNamespace(of=lambda *_: ("/1",)))
    candidates = [SimpleNamespace(contribution=it, load=True) for it in (new, owner)]
    held = held_newcomers(candidates, config, Selection())
    assert [*held] == ([id(new)] if keeps else [])


@pytest.mark.parametrize(
    "broken", ["tools.py gone", "tools.py empty", "no manifest", "bad manifest"]
)
def test_a_plugin_that_is_broken_for_a_moment_keeps_its_name_from_a_new_one(
    add, load, tmp_path, broken
):
    old = add("old", name="same")
    with load() as app:
        assert app.catalog.plugins["same"].unit == str(old)
        mark = tmp_path / "was-imported"
        new = add("new", name="same")
        with (new / "tools.py").open("a") as file:
            file.write(f"open({str(mark)!r}, 'w')\n")
        app.refresh()
        assert [str(it.state) for it in app.catalog.all_plugins if it.path == str(new)] == ["held"]
        if "gone" in broken:
            (old / "tools.py").unlink()
        elif "empty" in broken:
            (old / "tools.py").write_text("")
        elif "no" in broken:
            (old / "toolkit.yaml").unlink()
        else:
            (old / "toolkit.yaml").write_text("name: [")
        app.refresh()
        assert not mark.exists()
    if "no" not in broken:  # else the old one is no plugin any more
        with load():
            assert not mark.exists()


@dataclass(frozen=True)
class Offer:
    """Stands for what a server offers."""

    name: str
    config: SimpleNamespace
    owned: frozenset[str] = frozenset()

    @property
    def source(self):
        return f"mcp:{self.name}"

    @property
    def unit(self):
        return f"mcp:/{self.name}"


def offers(*names, disabled=()):
    config = SimpleNamespace(keeps=lambda name: name not in disabled)
    return [Offer(name, SimpleNamespace(**vars(config), name=name)) for name in names]


def record_of(owners, earlier=MappingProxyType({})):
    def names_of(kind, unit):
        return [name for (it, name), units in owners.items() if it == kind and unit in units]

    def of(kind, name):
        return owners.get((kind, name), ())

    def before_start(_kind, name):
        return earlier.get(name, ())

    return SimpleNamespace(of=of, names_of=names_of, before_start=before_start)


def test_a_name_is_that_of_the_first_server_that_is_declared():
    owners = {("tool", name): ("/p", "mcp:/b", "mcp:/a") for name in "xyzv"}
    owners |= {
        ("server tool", "x"): ("mcp:/gone", "mcp:/b", "mcp:/a"),
        ("server tool", "y"): ("mcp:/out", "mcp:/a"),
        ("server tool", "v"): ("mcp:/a", "mcp:/b"),
    }
    record = record_of(owners)
    servers = offers("a", "b", disabled={"v"})
    assert server_names(servers, {"out": "/out"}, record, Selection()) == {"x": "b", "y": "out"}


def test_a_name_is_that_of_the_only_server_that_had_it_before_others_answered():
    owners = {("tool", "x"): ("mcp:/b",), ("tool", "y"): ("mcp:/b",)}
    record = record_of(owners, {"x": ("/p", "mcp:/b"), "y": ("mcp:/a", "mcp:/b")})
    assert server_names(offers("a", "b"), {}, record, Selection()) == {"x": "b"}
    assert server_names(offers("a", "b"), {}, record_of(owners), Selection()) == {}


def test_a_server_owns_the_names_that_it_served_before_all_others_here():
    served = {
        "x": ("mcp:/a", "/p"),
        "y": ("/p", "mcp:/a"),
        "z": ("/gone", "mcp:/gone", "mcp:/b"),
        "b_x": ("mcp:/b",),
        "w": ("mcp:/out", "mcp:/a"),
        "v": ("/p", "mcp:/b"),
    }
    record = record_of({("tool", name): units for name, units in served.items()})

    def owned(plugin, left_out):
        items = with_owned_names(offers("a", "b"), left_out, [plugin], record, Selection())
        return [offer.owned for offer in items]

    plugin = PluginContribution(
        name="p", source="s", scope=Precedence.USER, path="/p", unit="/p", rank=(0,), digest="",
        tools=(SimpleNamespace(name="y"),),
    )  # fmt: skip
    # It has a tool "y", and none "v" any more.
    assert owned(plugin, {"out": "/out"}) == [{"x"}, {"z", "b_x", "v"}]
    broken = replace(plugin, state=Status.FAILED, tools=())
    assert owned(broken, {"out": "/out"}) == [{"x"}, {"z", "b_x"}]
    disabled = replace(plugin, state=Status.DISABLED)
    assert owned(disabled, {}) == [{"x", "y", "w"}, {"z", "b_x", "v"}]
