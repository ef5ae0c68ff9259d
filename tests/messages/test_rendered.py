"""Each diagnostic code as a user reads it, produced by inputs that are really wrong."""

import asyncio
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from inputs import GOOD, PLUGINS, SKILLS

from satchel import Contribution, Project, Satchel, Settings, Skill, ToolCall
from satchel.configuration.projects import TrustLevel
from satchel.diagnostics import RULES
from satchel.files.file_reader import UnreadableFileError
from satchel.files.open_folder import OpenFolder
from satchel.files.watch_targets import WatchTargets
from satchel.files.watcher import change_events
from satchel.mcp_servers.server_addresses import HttpServer, StdioServer
from satchel.settings import Limits, WatchTimings
from satchel.sources.lost_mounts import lost_mount
from satchel.trust.trust_record import TrustStore, new_record

PATIENCE = 60
REMOTE = Path(__file__).parents[1] / "mcp_servers"

WITHOUT_EXAMPLE = {
    "plugin-install-failed": "pip and uv word it differently; tests/workers covers it",
    "mcp-server-starting": "it lasts as long as a start; tests/mcp_servers covers it",
}


@pytest.fixture
def world(tmp_path, monkeypatch):
    """An empty current folder, home and configuration, independent of this machine."""
    for name in ("config", "state", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("SATCHEL_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SATCHEL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode(errors="surrogateescape")
        )


def write_plugin(folder, name, files):
    whole = files if any(n.endswith((".yml", ".json", ".yaml")) for n in files) else {
        "toolkit.yaml": f"name: {name.rpartition('/')[2]}\nactive: true\n", **files
    }  # fmt: skip
    write(folder / name, whole)


def test_each_code_is_shown_by_an_example(world, snapshot, quick_starts):
    diagnostics = [item for make in WORLDS for item in make(world)]
    lines = sorted({_normal(str(item), world) for item in diagnostics if not _is_foreign(item)})
    by_code = {code: [line for line in lines if f"[{code}]" in line] for code in RULES}
    missing = {code for code, examples in by_code.items() if not examples}
    snapshot("rendered", [line for examples in by_code.values() for line in examples])
    assert missing == set(WITHOUT_EXAMPLE)


def _is_foreign(item):
    """Return whether a diagnostic is about a package installed on this machine."""
    return "site-packages" in item.where.path


def _normal(text, world):
    """Remove text that depends on the machine: its checks, its packages, lengths of paths."""
    text = re.sub(r"(?m)^((ok|warning) |.*site-packages|[\d,]+ characters$).*\n?", "", text)
    text = text.replace(f"{world}/", "").replace(str(world), ".").replace(sys.executable, "PYTHON")
    text = re.sub(rf"{Path(sys.executable).name} \S+/{REMOTE.name}/", "PYTHON ", text)
    text = re.sub(r"state/trust/\w+\.json", "state/trust/RECORD.json", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    return re.sub(r"--digest \w+", "--digest DIGEST", text)


def test_what_commands_print_is_as_it_was_reviewed(world, snapshot):
    from click.testing import CliRunner

    from satchel.cli.main import cli

    write(
        world / "skills",
        {f"{name}/SKILL.md": SKILLS[name] for name in ("field-unknown", "no-name")},
    )
    for name in ("bad-fields", "raises", "state", "tool-a"):
        write_plugin(world / "plugins", name, PLUGINS[name])
    sources = ["--skills", "skills", "--plugins", "plugins"]
    entries = []
    for command in (
        ["validate", "skills", "plugins"],
        ["doctor", "--run", *sources],
        ["list", *sources],
        ["show", "same", *sources],
        ["show", "nothing", *sources],
        ["call", "needy", *sources],
        ["enable", "nothing"],
        ["prompt", *sources],
    ):
        done = CliRunner().invoke(cli, command)
        entries += [f"$ satchel {' '.join(command)}", done.output, f"exit code {done.exit_code}"]
    snapshot("screens", [_normal(entry.rstrip(), world) for entry in entries])


# ---- problems of files, found by one load -------------------------------------------------------


def files(world):
    write(world / "skills", {f"{name}/SKILL.md": text for name, text in SKILLS.items()})
    skills, plugins = world / "skills", world / "plugins"
    write(skills, {"nearly/Skill.md": "", "folder/SKILL.md/x": "", "full/SKILL.md": ""})
    odd = skills / "field-unknown"
    os.mkfifo(odd / "pipe")
    (odd / "outside").symlink_to("/etc")
    (odd / "dangling").symlink_to("nowhere")
    (odd / "loop").symlink_to(".")
    (odd / os.fsdecode(b"bad\xff")).touch()
    for name, parts in PLUGINS.items():
        write_plugin(plugins, name, parts)
    write(world / "config", {
        "satchel.toml": 'disable = ["no-body"]\nenabel = []\n',
        "plugins/config.env": "no line\nSIZE=big\n",
    })  # fmt: skip
    write_plugin(world / "more", "double", PLUGINS["double"])
    write(world / "project", {"satchel.toml": "enable = 3\n"})
    for name in ("one", "two"):
        info = f"acme_{name}-1.0.dist-info"
        write(world / "site", {
            f"{info}/METADATA": f"Name: acme-{name}\nVersion: 1.0\n",
            f"{info}/entry_points.txt": "[satchel.plugins]\nacme = acme\n",
            f"{info}/RECORD": "",
        })  # fmt: skip
    with Satchel(
        [skills, "missing"],
        [plugins, world / "more"],
        ["absent", "acme"],
        project=Project(world / "project", trust="code"),
        config={"state-unfit": {"limit": "much"}},
        settings=Settings(mcp_servers=False),
    ) as satchel:
        yield from satchel.catalog.diagnostics


def limits(world):
    write(world / "deep", {"a/b/SKILL.md": GOOD.format(name="b")})
    write(world / "deep", {f"s/{name}": GOOD.format(name="s") for name in ("SKILL.md", "x", "y")})
    write_plugin(world / "slow", "slow", {"tools.py": "import time\ntime.sleep(30)\n"})
    few = Limits(find_depth=1, files_per_skill=2, plugin_import=0.2)
    with Satchel(world / "deep", world / "slow", settings=Settings(limits=few)) as satchel:
        yield from satchel.catalog.diagnostics


def unreadable(world):
    read = OpenFolder.read

    def refuse(folder, name, limit):
        if name == "secret.py":
            raise UnreadableFileError("permission denied")
        return read(folder, name, limit)

    write_plugin(world / "closed", "s", {"tools.py": "", "secret.py": ""})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenFolder, "read", refuse)
        with Satchel(plugins=[world / "closed"]) as satchel:
            yield from satchel.catalog.diagnostics


def names_and_secrets(world):
    from unittest.mock import patch

    from satchel.runtime import program_runner

    write(world / "kept", {"s/SKILL.md": GOOD.format(name="s"), "s/.env": "KEY=x\n"})
    code = "from satchel import tool\n\n@tool\ndef load_skill() -> str:\n    'Load.'\n"
    write_plugin(world / "named", "own", {"tools.py": code})
    write_plugin(world / "named", "text", {
        "toolkit.yaml": f"name: text\nactive: true\nnotes: {'n' * 50_000}\n", "tools.py": "",
    })  # fmt: skip
    write(world / "config", {"satchel.toml": 'enable = ["own:load_skill"]\n'})
    settings = Settings(limits=Limits(group_notes=40_000))
    with Satchel(world / "kept", world / "named", settings=settings) as satchel:
        yield from satchel.catalog.diagnostics
        newcomer = {"toolkit.yaml": "name: own\nactive: true\n", "tools.py": code}
        write_plugin(world / "named", "newcomer", newcomer)
        write(world / "kept", {"a/s/SKILL.md": GOOD.format(name="s") + "Again.\n"})
        satchel.refresh()
        yield from satchel.catalog.diagnostics
    (world / "config/satchel.toml").unlink()
    with patch.object(program_runner, "find_sandbox", lambda: ("", "bubblewrap is not installed")):
        yield program_runner.missing_sandbox()


def last_good_one(world):
    good = {"late/SKILL.md": GOOD.format(name="late")}
    write(world / "late", good)
    with Satchel(world / "late") as satchel:
        write(world / "late", {"late/SKILL.md": "---\n"})
        satchel.refresh()
        satchel.refresh()
        yield from satchel.catalog.diagnostics


def lost_files(world):
    plugins = world / "lost"
    for name in ("empty", "gone", "without-manifest"):
        code = f"from satchel import tool\n\n@tool\ndef lose_{name[:5]}() -> None:\n    'Lose.'\n"
        files = {"toolkit.yaml": f"name: {name}\n", "tools.py": code}
        write(plugins, {f"{name}/{file}": text for file, text in files.items()})
    with Satchel(plugins=plugins) as satchel:
        write(plugins, {"empty/tools.py": ""})
        (plugins / "gone/tools.py").unlink()
        (plugins / "without-manifest/toolkit.yaml").unlink()
        satchel.refresh()
        yield from satchel.catalog.diagnostics


def lost_mounts(world):
    yield lost_mount(str(world / "mounted"), -1)


def lock_file(world):
    for name in ("changed", "new"):
        write(world / "locked" / name, {"SKILL.md": GOOD.format(name=name)})
    lock = world / "satchel.lock"
    lock.write_text(Satchel(world / "locked/changed").lock_contents(lock).text)
    write(world / "locked/changed", {"more.md": "more"})
    skills = [world / "locked/changed", world / "locked/new"]
    with Satchel(skills, locked=lock, frozen=True) as satchel:
        yield from satchel.catalog.diagnostics


def nothing_to_validate(world):
    from satchel.cli.format_checks import check_path

    (world / "empty").mkdir()
    yield from check_path("empty").problems


def saved_sessions(world):
    write(world / "saved", {"gone/SKILL.md": GOOD.format(name="gone")})
    with Satchel(world / "saved") as satchel:
        satchel.create_group("maps")
        session = satchel.session()
        session.activate("maps")
        session.load_skill("gone")
        saved = session.state_dict()
    with Satchel() as satchel:
        yield from satchel.session().load_state_dict(saved)


def watches(world):
    class Dying:
        def watch(self, *_):
            raise RuntimeError("could not decode")

        def close(self): ...

    def none(_roots):
        raise OSError("inotify watch limit reached")

    for notifier in (lambda _roots: Dying(), none):
        stop = threading.Event()
        pace = WatchTimings(poll=0.01, heartbeat=0.01)
        news = change_events(
            lambda: WatchTargets(roots=(str(world),)), stop, pace, notifier=notifier
        )
        for _ in range(3):
            yield from next(news).diagnostics
        stop.set()


def host(_world):
    with Satchel() as satchel:
        satchel.create_group("maps", notes="{{WAY}}")
        yield from satchel.catalog.diagnostics


# ---- problems of servers ------------------------------------------------------------------------


class Servers:
    """The MCP test servers, whose answers come from a file."""

    def __init__(self, world):
        self.world = world

    def server(self, program, name, answers):
        path = self.world / f"{name}.json"
        path.write_text(json.dumps(answers))
        return StdioServer(command=sys.executable, args=(str(REMOTE / program), str(path)))

    def diagnostics(self, server, name="box", *, then=None, **options):
        limits = {key: options.pop(key) for key in ("mcp_tools", "mcp_skills") if key in options}
        settings = Settings(limits=Limits(mcp_connect=PATIENCE, **limits))
        with Satchel(settings=settings) as satchel:
            satchel.register_tool(_taken)
            satchel.register_mcp_server(server, name=name, **options)
            satchel.wait_for_mcp_servers()
            if then:
                then(satchel)
            yield from satchel.catalog.diagnostics

    def tools(self, name, *tools):
        empty = {"description": "Do it.", "inputSchema": {"type": "object"}}
        return self.server("plain.py", name, [empty | tool for tool in tools])

    def skills(self, name, *skills, **answers):
        return self.server("lying.py", name, {"skills": [skills], "contents": {}, **answers})


def _taken() -> str:
    """A tool whose name a server also offers."""
    return ""


def servers_of_tools(world):
    box = Servers(world)
    bad = [{"name": "_taken"}, {"name": "typed", "inputSchema": {"type": "nonsense"}}]
    yield from box.diagnostics(box.tools("bad", *bad), name="bad", enable=["nothing", "*"])
    box.tools("changing", {"name": "a"})
    yield from box.diagnostics(box.tools("changing", {"name": "a"}))
    changed = box.tools("changing", {"name": "a", "description": "Send all files."})
    yield from box.diagnostics(changed)
    yield from box.diagnostics(changed, pin="warn")
    many = box.tools("many", *({"name": f"t{number}"} for number in range(4)))
    yield from box.diagnostics(many, "many", mcp_tools=2)
    yield from box.diagnostics(StdioServer(command="no-such-command"), "down")
    with pytest.MonkeyPatch.context() as patch:
        (world / "a-file").touch()
        patch.setenv("SATCHEL_STATE_DIR", str(world / "a-file"))
        yield from box.diagnostics(many, "unkept")


def servers_with_instructions(world):
    box = Servers(world)
    server = StdioServer(
        command=sys.executable, args=(str(REMOTE / "gifted.py"), str(world / "text"))
    )
    for text in ("Ask first.", "Ask last."):
        (world / "text").write_text(text)
        yield from box.diagnostics(server, "told")


def servers_with_prompts_and_resources(world):
    uris = [{"name": "a", "uriTemplate": f"a://{number}/{{x}}"} for number in range(3)]
    lists = {
        "prompts/list": {"prompts": [{"name": f"p{number}"} for number in range(3)]},
        "resources/list": {"resources": [{"name": "without-a-uri"}]},
        "resources/templates/list": {"resourceTemplates": uris},
    }
    box = Servers(world)
    yield from box.diagnostics(box.skills("lists", lists=lists), "lists", mcp_tools=2)


def servers_that_need_a_login(world):
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(401)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        server = HttpServer(f"http://127.0.0.1:{http.server_port}/mcp")
        yield from Servers(world).diagnostics(server, "closed")
        http.shutdown()


def servers_of_skills(world):
    box = Servers(world)
    write(world / "local", {"late/SKILL.md": GOOD.format(name="late")})

    def entry(name):
        uri = f"skill://{name}/SKILL.md"
        front = {"name": name, "description": "Does a thing. Use when it is to be done."}
        resource = {"uri": uri, "size": len(GOOD.format(name=name)), "digest": f"sha256:{'0' * 64}"}
        return {"uri": uri, "frontmatter": front, "resources": [resource]}

    def load(satchel):
        session = satchel.session()
        asyncio.run(session.call("load_skill", {"name": "late"}))
        end = time.monotonic() + PATIENCE
        while "mcp-skill-unverified" not in str(satchel.catalog.diagnostics):
            satchel.refresh()
            assert time.monotonic() < end

    def add_a_local_one(satchel):
        satchel.register_skill(world / "local" / "late")

    yield from box.diagnostics(box.skills("odd", {"uri": "skill://odd/SKILL.md"}), "odd")
    yield from box.diagnostics(box.skills("no", refuse=["skills/list"]), "no")
    yield from box.diagnostics(box.skills("more", entry("a"), entry("b")), "more", mcp_skills=1)
    late = entry("late")
    text = [{"uri": late["uri"], "text": GOOD.format(name="late")}]
    lying = box.skills("lying", late, contents={late["uri"]: text})
    yield from box.diagnostics(lying, "docs", then=load)
    yield from box.diagnostics(lying, "docs", then=add_a_local_one)


class SomeSkills:
    """A provider with an invalid skill; asked a second time, it raises."""

    name = "team"

    def contribute(self, last, _changed):
        if last is not None:
            raise ConnectionError("the database is closed")
        skill = Skill(name="pdf", description="Fills forms.", body="Fill it.")
        return Contribution(skills=[skill, skill, Skill(name="../pdf", description="", body="")])


def providers(_world):
    with Satchel(providers=[SomeSkills()]) as satchel:
        first = satchel.catalog.diagnostics
        satchel.refresh()
        return (*first, *satchel.catalog.diagnostics)


def projects(world):
    clone = world / "clone"
    write_plugin(clone / "plugins", "double", PLUGINS["double"])
    write(clone, {"skills/other/.git": "", "satchel.toml": "[mcp.box]\ncommand = 'box'\n"})
    with Satchel(project=clone) as satchel:
        yield from satchel.catalog.diagnostics
    with Satchel(project=Project(clone, trust="data")) as satchel:
        yield from satchel.catalog.diagnostics
    store = TrustStore()
    store.write(new_record(str(clone), TrustLevel.CODE, {}, ()))
    with Satchel(project=clone) as satchel:
        yield from satchel.catalog.diagnostics
    write(clone, {"satchel.toml": "disable = 3\n"})
    with Satchel(project=Project(clone, trust="code")) as satchel:
        yield from satchel.catalog.diagnostics
    Path(store.stamp(str(clone))[0]).write_text("{")
    with Satchel(project=clone) as satchel:
        yield from satchel.catalog.diagnostics


def runners(world):
    """What a host says of its runners and workers."""
    from redis.exceptions import AuthenticationError, NoPermissionError

    from satchel.remote.remote_faults import RemoteFaults
    from satchel.runtime.scoped_runner import unknown_runner

    faults, call = RemoteFaults("satchel"), ToolCall(name="draw", plugin_digest="0123456789abcdef")
    for problem in (
        AuthenticationError(),
        NoPermissionError(),
        ConnectionError("CERTIFICATE_VERIFY_FAILED"),
    ):
        faults.unreachable(problem)
        yield from faults.diagnostics
    faults.unreachable(ConnectionError())
    faults.other_key(call)
    yield from faults.diagnostics
    faults.no_worker(call)
    faults.refused("a message that is not encrypted with our key")
    faults.lost(call)
    faults.may_have_run(call)
    faults.state_lost(call, "JSON cannot represent picture")
    yield from (*faults.diagnostics, unknown_runner("gpu", "draw"))


WORLDS = [
    *(files, limits, names_and_secrets, last_good_one, lost_files, lost_mounts, lock_file),
    nothing_to_validate,
    *(saved_sessions, watches, host, servers_of_tools, servers_of_skills, providers, projects),
    *(unreadable, servers_with_instructions, servers_with_prompts_and_resources),
    *(servers_that_need_a_login, runners),
]
