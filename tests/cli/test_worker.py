"""`satchel worker`: what options and the user's file say. Its calls are tried in tests/remote."""

import asyncio

import pytest

pytest.importorskip("docket", reason="pydocket is not installed")

import satchel.remote

KEY = "0123456789abcdef0123456789abcdef"
TABLE = """
[worker]
redis = "redis://file:1"
name = "fleet"
key-file = "key"
groups = ["gpu"]
concurrency = 3
group-limits = { gpu = 1 }
limits = { tool_call = 600, result_text = 1000, find_folders = 7 }
"""


@pytest.fixture
def started(monkeypatch):
    """Replace the worker by one that ends at once, and return what it was started with."""
    calls = []

    class Worker:
        digests = ()

        def __init__(self, app, url, **options):
            calls.append({"url": url, **options})
            self.ready = asyncio.Event()

        async def run(self):
            self.ready.set()
            await asyncio.sleep(0)

    monkeypatch.setattr(satchel.remote, "ToolWorker", Worker)
    return calls


@pytest.fixture
def file(config_folder):
    config_folder.mkdir(parents=True, exist_ok=True)
    (config_folder / "key").write_text(KEY)
    file = config_folder / "satchel.toml"
    file.write_text(TABLE)
    return file


def test_the_file_says_what_no_option_says(run, here, file, started):
    assert run("worker").exit_code == 0
    (created,) = started
    limits = created.pop("limits")
    assert created == {
        "url": "redis://file:1",
        "key": KEY,
        "name": "fleet",
        "groups": ["gpu"],
        "concurrency": 3,
        "group_limits": {"gpu": 1},
    }
    assert (limits.tool_call, limits.result_text, limits.find_folders) == (600, 1000, 7)


def test_an_option_wins_over_the_file(run, here, file, started):
    (here / "other").write_text("another key of sufficient length")
    arguments = ["--redis", "redis://option:1", "--name", "n", "--key-file", "other"]
    arguments += ["--concurrency", "9", "--group", "cpu", "--find-folders", "8"]
    assert run("worker", *arguments).exit_code == 0
    (created,) = started
    assert created["url"] == "redis://option:1"
    assert created["key"] == "another key of sufficient length"
    assert (created["name"], created["concurrency"], list(created["groups"])) == ("n", 9, ["cpu"])


def test_without_a_file_the_options_and_the_variable_suffice(run, here, started, monkeypatch):
    monkeypatch.setenv("SATCHEL_REMOTE_KEY", KEY)
    assert run("worker", "--redis", "redis://option:1").exit_code == 0
    (created,) = started
    assert (created["key"], created["name"], created["concurrency"]) == (KEY, "satchel", 10)


def test_without_a_redis_it_says_where_to_name_one(run, here, started):
    result = run("worker")
    assert result.exit_code == 1
    assert "no redis is named" in result.stderr
    assert "--redis URL" in result.stderr
    assert not started


def test_without_a_key_it_says_where_to_give_one(run, here, started):
    result = run("worker", "--redis", "redis://option:1")
    assert result.exit_code == 1
    message = " ".join(result.stderr.split())
    assert "no key is given" in message
    assert "--key-file FILE, or set SATCHEL_REMOTE_KEY" in message
    assert not started


def test_a_group_that_no_plugin_has_is_warned_of(run, here, file, started, write_plugin):
    tools = """
    from satchel import tool

    @tool(group="gpu")
    def draw() -> str:
        "Draw."
    """
    write_plugin(here / "plugins", "pictures", tools=tools)
    arguments = ("worker", "--plugins", "plugins")
    assert "no plugin has" not in run(*arguments).stderr
    message = " ".join(run(*arguments, "--group", "gpuu").stderr.split())
    assert "no plugin has the group 'gpuu'" in message
    assert "gpu?" in message


@pytest.mark.slow
def test_what_it_cannot_run_is_named_at_the_start_and_when_it_breaks(start, here, write_plugin):
    plugins = here / "plugins"
    write_plugin(plugins, "good", tools="")
    write_plugin(plugins, "bad", tools='raise RuntimeError("broken")')
    options = ("--plugins", "plugins", "--redis", "memory://")
    worker = start("worker", *options, SATCHEL_REMOTE_KEY=KEY)
    assert "bad/tools.py:1: error[plugin-import-failed]" in worker.until("bad", "stderr")
    assert worker.until("satchel doctor", "stderr").startswith("1 error")
    worker.until("^ready: ", "stderr")
    write_plugin(plugins, "good", tools="def (")
    assert "good/tools.py:1:5: error[plugin-syntax]" in worker.until("good", "stderr")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("concurrency = 0", "concurrency must be a whole number above 0"),
        ("concurency = 2", "did you mean 'concurrency'?"),
        ("group-limits = { gpu = 0 }", "group-limits must map names of groups"),
        ("limits = { tool_cal = 5 }", "limits has no 'tool_cal'; did you mean 'tool_call'?"),
        ("limits = { result_text = 1.5 }", "'result_text', which must be a whole number"),
        ("limits = { tool_call = 0 }", "limits must map names of limits to numbers above 0"),
        ("limits = { tool_call = inf }", "limits must map names of limits to numbers above 0"),
        ('key-file = "gone"', "cannot read the key"),
    ],
)
def test_a_wrong_table_is_refused_with_its_fault(run, file, started, line, text):
    file.write_text(f'[worker]\nredis = "redis://file:1"\n{line}\n')
    result = run("worker")
    assert result.exit_code == 1
    assert text in " ".join(result.stderr.split())
    assert not started
