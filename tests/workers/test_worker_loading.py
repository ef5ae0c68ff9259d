"""What becomes of a plugin whose process says what it brings; no process is started."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from satchel.catalog.catalog_entries import PluginContribution, Status
from satchel.configuration.configuration import Configuration
from satchel.diagnostics import Where, make_diagnostic
from satchel.formats.config_fields import ConfigField
from satchel.settings import Limits
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.plugin_formats import PluginFormat, policy_of
from satchel.sources.plugin_scan import scan_plugins
from satchel.sources.search_roots import Precedence, RootKind, search_root
from satchel.workers.worker_health import with_health
from satchel.workers.worker_loading import load_worker
from satchel.workers.worker_processes import WorkerHandle

TOOL = {
    "call": "act", "name": "act", "description": "Act.", "parameters": {"type": "object"},
    "output": None, "annotations": {}, "examples": (), "timeout": None, "idempotent": False,
    "remember": "turn",
    "runner_name": "",
    "background": False, "groups": (), "takes_context": False,
    "version": "1", "path": "tools.py", "contract": None,
}  # fmt: skip
ABOUT = {
    "tools": [TOOL], "offers": [], "groups": [], "skills": (), "sections": (), "state": "ok",
    "diagnostics": [],
}  # fmt: skip
DOWN = make_diagnostic("plugin-worker-down", Where("/p"), "it ended with token-1", "wait")


class Processes:
    """Stands in for `WorkerPool`: each start takes the next of what processes say."""

    limits, errors = Limits(), "summary"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.started = []

    def start(self, name, server, values):
        self.started.append(dict(values))
        answer = self.answers.pop(0)
        trouble = answer if not isinstance(answer, dict) else None
        about = answer if isinstance(answer, dict) else {}
        offer = SimpleNamespace(outage=trouble, about=about, diagnostics=(), is_up=trouble is None)
        return WorkerHandle(SimpleNamespace(snapshot=offer), values)


@pytest.fixture
def finding(tmp_path, write_plugin) -> PluginFinding:
    write_plugin(tmp_path, "demo", "isolation: process\n", tools="X = 1\n")
    (finding,) = scan_plugins(search_root(tmp_path, RootKind.PLUGINS), Limits()).findings.values()
    return finding


@pytest.fixture
def load(finding):
    def load(processes, read=None, **values):
        read = read or supply()

        def configured(of):
            all_values = {item.key: item.default for item in of.config} | values
            return Configuration(
                plugin="demo", path="/c/demo.env", values=all_values, fields=of.config
            )

        return load_worker(read, finding, configured, processes)

    return load


def supply(**parts) -> PluginContribution:
    return PluginContribution(
        name="demo",
        source="plugins",
        scope=Precedence.EXPLICIT,
        path="/p",
        unit="/p",
        rank=(),
        digest="1",
        **parts,
    )


def test_what_the_process_says_is_what_the_plugin_brings(load):
    created = load(Processes(ABOUT))
    assert (created.state, [tool.name for tool in created.tools]) == (Status.OK, ["act"])
    assert isinstance(created.code, WorkerHandle)


@pytest.mark.parametrize("state", [Status.DEGRADED, Status.HELD])
def test_the_state_that_the_process_finds_is_kept_with_what_it_serves(load, state):
    created = load(Processes(ABOUT | {"state": str(state)}))
    assert (created.state, len(created.tools)) == (state, 1)


def test_of_what_failed_there_nothing_is_taken(load):
    problem = make_diagnostic(
        "plugin-import-failed", Where("/p/tools.py", 3), "ValueError: no"
    ).as_dict()
    created = load(Processes(ABOUT | {"state": "failed", "diagnostics": [problem]}))
    assert (created.state, created.tools, created.code) == (Status.FAILED, (), None)
    assert [(item.code, item.where.line) for item in created.diagnostics] == [
        ("plugin-import-failed", 3)
    ]


def test_a_process_that_does_not_come_up_fails_its_plugin_without_its_secrets(load):
    created = load(Processes(DOWN), token="token-1")
    (problem,) = created.diagnostics
    assert (created.state, problem.code) == (Status.FAILED, "plugin-worker-down")
    assert "token-1" not in problem.message
    assert "when the code changes" in problem.fix


def test_of_an_open_plugin_only_the_extension_fails(load):
    created = load(Processes(DOWN), supply(policy=policy_of(PluginFormat.OPEN)))
    assert created.state is Status.DEGRADED


@pytest.mark.parametrize("state", ["fine", None, 3])
def test_a_process_that_talks_nonsense_fails_its_plugin(load, state):
    created = load(Processes(ABOUT | {"state": state}))
    assert (created.state, [item.code for item in created.diagnostics]) == (
        Status.FAILED,
        ["plugin-worker-down"],
    )


def test_a_process_whose_code_declares_fields_is_started_with_their_values(load):
    declared = {"name": "LEVEL", "default": "high", "options": ()}
    processes = Processes({"fields": [declared]}, ABOUT)
    created = load(processes)
    assert processes.started == [{}, {"level": "high"}]
    assert ([item.key for item in created.config], created.state) == (["level"], Status.OK)


def test_a_field_that_is_known_does_not_start_it_again(load):
    config = (ConfigField(name="LEVEL", default="low"),)
    declared = {"name": "LEVEL", "default": "high", "options": ()}
    processes = Processes(ABOUT | {"fields": [declared]})
    load(processes, supply(config=config))
    assert processes.started == [{"level": "low"}]


def test_a_value_that_json_would_change_is_not_sent(load):
    processes = Processes(ABOUT)
    created = load(processes, level=1, thing=object())
    assert processes.started == [{"level": 1}]
    assert [(item.code, "'thing'" in item.message) for item in created.diagnostics] == [
        ("plugin-not-isolated", True)
    ]


def test_health_is_that_of_the_process_which_serves(load):
    good = load(Processes(ABOUT))
    assert with_health(good, None) is good
    good.code.snapshot.outage = DOWN
    sick = with_health(good, None)
    assert [item.code for item in sick.diagnostics] == ["plugin-worker-down"]
    assert with_health(sick, None) is sick
    broken = supply(state=Status.FAILED)
    assert [item.code for item in with_health(broken, good).diagnostics] == ["plugin-worker-down"]
    for state in (Status.DISABLED, Status.REVOKED, Status.HELD):
        off = replace(broken, state=state)
        assert with_health(off, good) is off
    good.code.snapshot.outage = None
    assert with_health(sick, None).diagnostics == ()
