"""Who has a name, of MCP servers and plugins: who served it first, of those that are here."""

import json
import queue
import shutil
import sys
from pathlib import Path

import pytest

from satchel import DefinitionError, Satchel, Settings
from satchel.mcp_servers.server_addresses import StdioServer
from satchel.settings import Limits

TOOL = 'from satchel import tool\n@tool\ndef {}() -> str:\n    "Do it."\n    return "x"\n'


PLAIN = str(Path(__file__).with_name("plain.py"))


@pytest.fixture
def servers(tmp_path, write_plugin):
    return _Servers(tmp_path, write_plugin)


class _Servers:
    """Writes servers of the user and of plugins, and says who serves which tool."""

    def __init__(self, folder, write_plugin):
        self.folder, self._write = folder, write_plugin
        self.plugins = folder / "plugins"
        self.plugins.mkdir()
        self.file = folder / "config/satchel.toml"
        self.file.parent.mkdir()

    def book(self, *tools, name="book"):
        path = self.folder / f"{name}.json"
        schema = {"type": "object"}
        items = [{"name": it, "description": "x", "inputSchema": schema} for it in tools]
        path.write_text(json.dumps(items))
        return [PLAIN, str(path)]

    def table(self, name, *tools, lines=""):
        args = json.dumps(self.book(*tools, name=name))
        return f"[mcp.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n{lines}\n"

    def write(self, *tables):
        self.file.write_text("".join(tables))

    def plugin(self, name, tool):
        self._write(self.plugins, name, tools=TOOL.format(tool))

    def plugin_server(self, plugin, server, *tools, **declared):
        folder = self.plugins / plugin
        (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
        (folder / ".claude-plugin/plugin.json").write_text(json.dumps({"name": plugin}))
        args = self.book(*tools, name=f"{plugin}-{server}")
        table = {"command": sys.executable, "args": args, **declared}
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {server: table}}))
        return folder

    def settings(self, **options):
        return Settings(
            limits=Limits(mcp_connect=60),
            state_folder=str(self.folder / "state"),
            config_folder=str(self.file.parent),
            **options,
        )

    def app(self):
        return Satchel(plugins=[self.plugins], settings=self.settings())

    @staticmethod
    def states(app):
        app.refresh()
        app.wait_for_mcp_servers(60)
        app.refresh()
        return {tool.name: (tool.source, str(tool.state)) for tool in app.catalog.all_tools}

    def cold(self):
        with self.app() as app:
            return self.states(app)


def test_who_is_gone_has_no_name_so_the_server_that_came_next_keeps_it(servers):
    servers.write(servers.table("box", "echo"))
    assert servers.cold() == {"echo": ("mcp:box", "ok")}
    servers.write(servers.table("crate", "echo"))
    with servers.app() as app:
        assert servers.states(app) == {"echo": ("mcp:crate", "ok")}
        servers.plugin("newer", "echo")
        hot = servers.states(app)
    assert hot["echo"] == ("mcp:crate", "ok")
    assert servers.cold() == hot


def test_no_plugin_takes_a_name_with_the_prefix_of_its_server(servers):
    servers.write(servers.table("a", "echo"), servers.table("b", "echo"))
    before = servers.cold()
    assert before == {"echo": ("mcp:a", "ok"), "b_echo": ("mcp:b", "ok")}
    servers.plugin("newer", "b_echo")
    assert servers.cold() == before
    servers.plugin_server("other", "b", "echo")
    assert servers.cold()["b_echo"] == ("mcp:b", "ok")


def test_a_tool_that_its_server_does_not_list_now_keeps_its_name_unless_the_user_disabled_it(
    servers,
):
    servers.write(servers.table("box", "echo", "two"))
    servers.cold()
    servers.write(servers.table("box", "two"))
    servers.plugin("newer", "echo")
    assert servers.cold()["echo"] == ("newer", "held")
    servers.write(servers.table("box", "echo", "two"))
    assert servers.cold()["echo"] == ("mcp:box", "ok")
    servers.write(servers.table("box", "echo", "two", lines='disable = ["echo"]'))
    assert servers.cold()["echo"] == ("newer", "ok")


def test_a_plugin_that_sorts_first_does_not_take_the_name_of_the_server_of_an_older_one(servers):
    servers.plugin_server("mmm", "box", "echo")
    assert servers.cold() == {"echo": ("mcp:box", "ok")}
    servers.plugin_server("aaa", "box", "echo")
    with servers.app() as app:
        states = servers.states(app)
        owners = {name: it.owner for name, it in app.declared_mcp_servers.items()}
    assert owners == {"aaa-box": "aaa", "box": "mmm"}
    assert states == {"echo": ("mcp:box", "ok"), "aaa-box_echo": ("mcp:aaa-box", "ok")}


@pytest.mark.parametrize("is_last", [True, False])
def test_a_server_that_hangs_at_its_start_keeps_no_name_from_the_record(servers, is_last):
    hangs = '[mcp.slow]\ncommand = "sleep"\nargs = ["600"]\n'
    tables = [servers.table("box", "echo"), hangs]
    servers.write(*(tables if is_last else tables[::-1]))
    news = queue.SimpleQueue()
    with servers.app() as app:
        app.subscribe(news.put)
        while "echo" not in app.catalog.tools:
            news.get(timeout=120)
    servers.plugin("newer", "echo")
    with servers.app() as app:
        states = {it.source: str(it.state) for it in app.catalog.all_tools if it.name == "echo"}
    assert states.get("newer") in {None, "held"}


def test_a_server_of_the_host_has_its_name_before_that_of_a_plugin(servers):
    servers.plugin_server("newer", "box", "echo")
    with servers.app() as app:
        assert servers.states(app) == {"echo": ("mcp:box", "ok")}
        assert app.declared_mcp_servers["box"].owner == "newer"
        own = StdioServer(command=sys.executable, args=tuple(servers.book("find", name="own")))
        assert app.register_mcp_server(own, name="box") == "box"
        assert servers.states(app)["find"] == ("mcp:box", "ok")
        assert "mcp:newer-box" in app.catalog.plugins


@pytest.mark.parametrize("broken", ["entry", "file", "manifest"])
@pytest.mark.parametrize("name", ["my box", "box"])
def test_a_server_of_a_plugin_that_is_broken_keeps_the_names_that_it_got(servers, broken, name):
    servers.write(servers.table("box", "other"))
    folder = servers.plugin_server("good", name, "echo")
    before = servers.cold()
    assert before["echo"] == ("mcp:my-box" if " " in name else "mcp:good-box", "ok")
    if broken == "entry":
        servers.plugin_server("good", name, "echo", args=3)
    else:
        file = ".mcp.json" if broken == "file" else ".claude-plugin/plugin.json"
        (folder / file).write_text("{nope")
    servers.plugin("newer", "echo")
    servers.plugin_server("newest", "box", "echo")
    states = servers.cold()
    assert states.get("echo") in {("newer", "held"), before["echo"]}
    shutil.rmtree(folder)
    assert servers.cold()["echo"] == ("newer", "ok")


def test_a_server_that_is_called_like_one_that_is_gone_gets_nothing_of_it(servers):
    servers.write(servers.table("old", "echo"))
    servers.cold()
    servers.write(servers.table("crate", "echo"))
    assert servers.cold() == servers.cold() == {"echo": ("mcp:crate", "ok")}
    servers.plugin_server("newer", "old", "echo")
    assert servers.cold()["echo"] == ("mcp:crate", "ok")


def test_a_server_keeps_the_names_of_its_tools_when_it_is_called_otherwise_itself(servers):
    servers.plugin_server("good", "box", "echo")
    assert servers.cold() == {"echo": ("mcp:box", "ok")}
    servers.write(servers.table("box", "other"))
    expected = {"echo": ("mcp:good-box", "ok"), "other": ("mcp:box", "ok")}
    assert servers.cold() == expected
    servers.plugin_server("mmm", "good-box", "echo")
    with servers.app() as app:
        assert servers.states(app).items() >= expected.items()
        servers.write("")
        hot = servers.states(app)
    assert hot["echo"] == ("mcp:box", "ok")
    assert servers.cold() == hot


@pytest.mark.parametrize("options", ["", 'enable = ["echo", "two"]\nprefix = "p_"'])
def test_names_are_kept_by_what_they_are_called_here(servers, options):
    servers.write(servers.table("box", "echo", "two", lines=options))
    name = "p_echo" if options else "echo"
    assert servers.cold()[name] == ("mcp:box", "ok")
    servers.write(servers.table("box", "two", lines=options))
    servers.plugin("newer", name)
    assert servers.cold()[name] == ("newer", "held")
    servers.write(servers.table("box", "two", lines=f'{options}\n[mcp.box.rename]\necho = "say"'))
    assert servers.cold()[name] == ("newer", "ok")


def test_another_broken_entry_of_a_file_brings_no_server_back_that_was_removed(servers):
    servers.write(servers.table("box", "echo"))
    servers.cold()
    servers.write(servers.table("crate", "echo"), "[mcp.other]\nurl = 3\n")
    assert servers.cold() == {"echo": ("mcp:crate", "ok")}


def test_two_projects_may_have_servers_of_one_name(servers):
    servers.write(servers.table("box", "echo"))
    servers.cold()
    servers.file = servers.folder / "other/satchel.toml"
    servers.file.parent.mkdir()
    servers.write(servers.table("box", "find"))
    servers.plugin("mine", "echo")
    assert servers.cold() == {"echo": ("mine", "ok"), "find": ("mcp:box", "ok")}


def test_a_registration_that_is_refused_takes_no_name_from_a_server(servers):
    servers.plugin_server("good", "box", "echo")
    with servers.app() as app:
        servers.states(app)
        own = StdioServer(command=sys.executable, args=tuple(servers.book("find", name="own")))
        with pytest.raises(DefinitionError):
            app.register_mcp_server(own, name="box", timeout=-1)
        assert [state.name for state in app.mcp_server_states] == ["box"]
        assert servers.states(app) == {"echo": ("mcp:box", "ok")}


def test_a_server_of_a_plugin_is_disabled_by_the_name_that_it_has_or_had_here(servers):
    servers.plugin_server("good", "box", "echo")
    own = servers.table("box", "other")
    servers.write(own)
    assert servers.cold() == {"echo": ("mcp:good-box", "ok"), "other": ("mcp:box", "ok")}
    off = 'disable = ["mcp:good-box"]\n'
    servers.write(off, own)
    with servers.app() as app:
        assert servers.states(app) == {"other": ("mcp:box", "ok")}
        (why,) = [item.message for item in app.catalog.diagnostics if item.code == "disabled"]
    assert why == "plugin 'mcp:good-box' is disabled by disable = ['mcp:good-box']"
    servers.write(off)
    assert servers.cold() == {}
    servers.write('disable = ["mcp:*"]\nenable = ["mcp:box"]\n')
    assert servers.cold() == {"echo": ("mcp:box", "ok")}


def test_looking_at_one_server_alone_records_no_names(servers):
    servers.write(servers.table("a", "echo"), servers.table("b", "echo"))
    with Satchel(settings=servers.settings(mcp_servers=False)) as app:
        declared = app.declared_mcp_servers["b"]
    with Satchel(settings=servers.settings(mcp_servers=False)) as app:
        app.register_mcp_server(declared, name="b")
        assert servers.states(app) == {"echo": ("mcp:b", "ok")}
    assert servers.cold() == {"echo": ("mcp:a", "ok"), "b_echo": ("mcp:b", "ok")}


@pytest.mark.parametrize("off", ["old", "old:echo", "mcp:a:echo"])
def test_what_is_disabled_keeps_no_name_from_a_server(servers, off):
    servers.plugin("old", "echo")
    servers.write(servers.table("a", "echo"), servers.table("b", "echo"))
    servers.cold()
    servers.write(f"disable = [{off!r}]\n", servers.table("a", "echo"), servers.table("b", "echo"))
    served = {name: it for name, (it, state) in servers.cold().items() if state == "ok"}
    expected = {"echo": "mcp:a", "b_echo": "mcp:b"}
    if "mcp" in off:
        expected = {"echo": "old", "a_echo": "mcp:a", "b_echo": "mcp:b"}
    assert served == expected


def test_servers_of_one_plugin_may_have_raw_names_that_become_one(servers):
    folder = servers.plugin_server("good", "x y", "echo")
    declared = json.loads((folder / ".mcp.json").read_text())
    other = {"command": sys.executable, "args": servers.book("find", name="other")}
    declared["mcpServers"]["x-y"] = other
    (folder / ".mcp.json").write_text(json.dumps(declared))
    expected = {"echo": ("mcp:x-y", "ok"), "find": ("mcp:good-x-y", "ok")}
    assert servers.cold() == servers.cold() == expected


def test_a_name_that_is_free_now_is_that_of_the_same_server_hot_and_cold(servers):
    servers.write(servers.table("box", "echo"))
    servers.plugin_server("good", "box", "echo")
    servers.cold()
    servers.plugin_server("newer", "good-box", "echo")
    with servers.app() as app:
        servers.states(app)
        servers.write("")
        hot = servers.states(app)
    assert hot["echo"] == ("mcp:box", "ok")
    assert servers.cold() == hot
