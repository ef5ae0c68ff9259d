"""`watch` as a real process: its lines, and how it ends."""

import json
import signal

import pytest


@pytest.fixture
def armed(start, here):
    """Start a watch of `skills` and `plugins`, and wait until it stands."""

    def armed(*args, **env):
        for folder in ("skills", "plugins"):
            (here / folder).mkdir(exist_ok=True)
        watch = start("watch", "--skills", "skills", "--plugins", "plugins", *args, **env)
        watch.until("^watching skills, plugins, press Ctrl-C", "stderr")
        return watch

    return armed


def test_it_reports_what_is_loaded_and_then_each_change(armed, here, write_skill, toolkit):
    write_skill(here / "skills", "pdf")
    watch = armed()
    assert watch.until("skill") == "loaded 1 skill: pdf"
    assert watch.until("tool") == "loaded 2 tools: echo, kinds"
    assert watch.until("^prompt").endswith("characters, 2 tools")
    write_skill(here / "skills", "pdf", description="Changed.")
    assert watch.until(r"^\d\d:\d\d:\d\d changed skill pdf \(skills\) SKILL.md$")


def test_it_says_how_skills_are_listed_before_it_waits(start, here, write_skill):
    write_skill(here / "skills", "pdf")
    watch = start("watch", "--skills", "skills")
    assert watch.until("listing", "stderr") == "skill listing: 1 skill in full"
    watch.until("^watching skills, press Ctrl-C", "stderr")


def test_a_broken_edit_is_stale_with_the_reason_and_its_fix_recovers(armed, here, write_skill):
    write_skill(here / "skills", "pdf")
    watch = armed("--json")
    write_skill(here / "skills", "pdf", text="no frontmatter")
    stale = json.loads(watch.until('"stale"'))
    assert (stale["kind"], stale["name"], stale["source"]) == ("skill", "pdf", "skills")
    assert watch.until("skill-no-frontmatter.* -> Begin with", "stderr")
    write_skill(here / "skills", "pdf")
    assert json.loads(watch.until('"recovered"'))["generation"] == stale["generation"] + 1


def test_a_skill_that_moved_is_reported_with_its_short_path(armed, here, write_skill):
    write_skill(here / "skills", "pdf")
    watch = armed()
    (here / "skills" / "pdf").rename(here / "skills" / "pdf2")
    assert watch.until("changed skill").endswith("changed skill pdf (skills) now skills/pdf2")


TOOL = "from satchel import tool\n\n\n@tool\ndef one() -> str:\n    'Count.'\n    return"
SOURCES = ("--skills", "skills", "--plugins", "plugins")


def test_it_begins_with_the_errors_and_reports_one_fault_once(
    start, here, write_skill, write_plugin
):
    write_skill(here / "skills", "an-earlier-path", text="---\ndescription: Warns.\n---\nBody.\n")
    write_skill(here / "skills", "bad", text="no frontmatter")
    write_plugin(here / "plugins", "demo", tools="x = 1")
    watch = start("watch", *SOURCES)
    assert watch.until(r"(error|warning)\[", "stderr").startswith(
        "skills/bad/SKILL.md:1: error[skill-no-frontmatter]"
    )
    watch.until("^watching", "stderr")
    (here / "plugins" / "demo" / "tools.py").write_text("import nothing_of_that_name\n")
    line = watch.until("nothing_of_that_name", "stderr")
    assert line.startswith("plugins/demo/tools.py:1: error[plugin-import-failed]")
    write_skill(here / "skills", "late")
    watch.until("added skill late")
    watch.process.send_signal(signal.SIGTERM)
    messages = [*watch.rest("stdout"), *watch.rest("stderr")]
    assert not [line for line in messages if "nothing_of_that_name" in line]


def test_what_happened_to_a_plugin_is_one_line(armed, here, toolkit):
    watch = armed()
    (here / "plugins" / "demo").rename(here / "gone")
    line = watch.until("removed plugin demo")
    assert "with " in line
    assert "tool echo" in line
    watch.process.send_signal(signal.SIGTERM)
    assert not [line for line in watch.rest("stdout") if "removed" in line]


def test_json_is_one_event_a_line_and_nothing_else_on_stdout(armed, here, write_skill, toolkit):
    write_skill(here / "skills", "pdf")
    watch = armed("--json")
    write_skill(here / "skills", "two")
    events = [json.loads(watch.until("{"))]
    while events[-1]["event"] == "loaded":
        events.append(json.loads(watch.until("{")))
    loaded = {(event["kind"], event["name"]) for event in events[:-1]}
    assert ("skill", "pdf") in loaded
    assert ("tool", "echo") in loaded
    assert (events[-1]["event"], events[-1]["name"]) == ("added", "two")


def test_it_waits_for_a_folder_that_is_empty_yet(armed, here, write_skill):
    watch = armed("--json")
    assert watch.process.poll() is None
    write_skill(here / "skills", "late")
    assert json.loads(watch.until('"added"'))["name"] == "late"


def test_trouble_without_an_entry_is_reported_too(armed, here, write_skill):
    write_skill(here / "skills", "pdf")
    watch = armed()
    (here / "skills" / "lower").mkdir()
    (here / "skills" / "lower" / "skill.md").touch()
    assert watch.until("skill-file-case", "stderr")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_well(armed, number):
    watch = armed()
    watch.process.send_signal(number)
    assert not any("Traceback" in line for line in watch.rest("stderr"))
    assert watch.process.returncode == 0


def test_ctrl_c_ends_it_whatever_a_plugin_or_a_shell_did_to_the_signal(start, here, write_plugin):
    write_plugin(
        here / "plugins",
        "rude",
        tools="""
            import signal, threading, time
            threading.Thread(target=time.sleep, args=(3600,)).start()
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            except ValueError:
                pass
        """,
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is ignored is inherited
    try:
        watch = start("watch", "--plugins", "plugins")
    finally:
        signal.signal(signal.SIGINT, before)
    watch.until("^watching", "stderr")
    watch.process.send_signal(signal.SIGINT)
    watch.rest()
    assert watch.process.returncode == 0


def test_a_reader_that_goes_away_ends_it(execute, here, write_skill):
    write_skill(here / "skills", "pdf")
    done = execute(
        script="set -o pipefail; (while sleep 0.2; do touch skills/pdf/$RANDOM; done) &"
        " $SATCHEL watch --skills skills | head -1; echo $?; kill %1"
    )
    assert done.stdout == "loaded 1 skill: pdf\n0\n"


def test_a_slow_consumer_reads_every_line_at_once(armed, here, write_skill):
    watch = armed("--json")
    for number in range(5):
        write_skill(here / "skills", f"s{number}")
        assert json.loads(watch.until('"added"'))["name"] == f"s{number}"


def test_what_one_cause_did_to_another_plugin_is_one_line_too(armed, here, write_plugin):
    code = "\n".join(
        f'@tool\ndef {name}() -> int:\n    """Count."""\n    return 1\n'
        for name in ("one", "two", "six")
    )
    for name in ("aa", "bb"):
        write_plugin(here / "plugins", name, tools=f"from satchel import tool\n\n{code}")
    watch = armed()
    with (here / "plugins" / "aa" / "tools.py").open("a") as file:
        file.write("import nosuch\n")
    stale = watch.until("stale plugin aa")
    parts = stale.partition("with ")[2]
    assert parts == (
        "group aa, tool one, tool six, tool two; "
        "so bb changed: tool one (held), tool six (held), tool two (held)"
    )
    assert watch.until("and 2 more warnings .tool-name-held. of this place", "stderr")
    watch.process.send_signal(signal.SIGTERM)
    assert not [line for line in watch.rest("stdout") if "tool" in line]


def test_what_the_removal_of_a_plugin_changed_elsewhere_is_in_its_line(
    armed, here, write_skill, write_plugin
):
    for name in ("aa", "bb"):
        folder = write_plugin(here / "plugins", name, tools=f"{TOOL} '{name}'\n")
        write_skill(folder / "skills", "pdf", description=f"Of {name}.")
    watch = armed()
    (here / "plugins" / "aa").rename(here / "gone")
    assert watch.until("removed plugin aa").endswith(
        "with group aa, skill pdf, tool one; so bb changed: group bb, skill pdf, tool one"
    )
    write_skill(here / "skills", "late")
    assert watch.until("skill|tool|group").endswith("added skill late (skills)")


def test_errors_of_one_text_at_two_places_are_both_written(start, here, write_skill):
    for name in ("one", "two"):
        write_skill(here / "skills", name, text="no frontmatter")
    watch = start("watch", "--skills", "skills")
    for name in ("one", "two"):
        watch.until(f"skills/{name}/SKILL.md:1: error", "stderr")
    watch.until("^watching", "stderr")


def test_alike_warnings_and_the_plugins_of_one_broken_marketplace_are_one_line(
    start, here, write_skill
):
    plugins = []
    for name in ("aa", "bb", "cc"):
        folder = here / "market" / name
        text = f"---\nname: {name}\ndescription: D.\n---\nb\n"
        write_skill(folder / "skills", f"skill-{name}", text=text)
        plugins.append({"name": name, "source": f"./{name}", "strict": False})
    listing = here / "market" / ".claude-plugin" / "marketplace.json"
    listing.parent.mkdir()
    (here / "market" / "none").mkdir()
    plugins.append({"name": "none", "source": "./none", "strict": False})
    content = json.dumps({"name": "m", "owner": {"name": "o"}, "plugins": plugins})
    listing.write_text(content)
    watch = start("watch", "--plugins", "market")
    assert watch.until("and 2 more warnings .skill-name-folder. at 2 other places$", "stderr")
    watch.until("^watching", "stderr")
    listing.write_text("{" + content)
    assert watch.until(r"stale 4 plugins \(market\): aa, bb, cc and 1 more")
    assert watch.until("marketplace-", "stderr")
    listing.write_text(content)
    assert watch.until(r"recovered 4 plugins \(market\): aa, bb, cc and 1 more")
    watch.process.send_signal(signal.SIGTERM)
    assert not [line for line in watch.rest("stderr") if "plugin-unused" in line]


@pytest.fixture
def bundle(here):
    """Write a plugin for Claude with a command and a skill."""

    def bundle(name):
        folder = here / "plugins" / name
        for path, text in {
            ".claude-plugin/plugin.json": json.dumps({"name": name, "description": "D."}),
            f"commands/{name}-go.md": "---\ndescription: Go.\n---\nGo.\n",
            f"skills/{name}-s/SKILL.md": f"---\nname: {name}-s\ndescription: D.\n---\nBody.\n",
        }.items():
            (folder / path).parent.mkdir(parents=True)
            (folder / path).write_text(text)
        return folder

    return bundle


def test_a_renamed_plugin_is_one_line_and_shadows_nothing(armed, here, bundle):
    folder = bundle("aa")
    watch = armed()
    folder.rename(folder.with_name("bb"))
    assert watch.until("(changed|added|removed) ").endswith(
        "changed plugin aa (plugins) now plugins/bb with skill aa-go, skill aa-s"
    )
    watch.process.send_signal(signal.SIGTERM)
    assert not [line for line in watch.rest("stderr") if "shadowed" in line]


def test_many_that_come_and_go_at_once_are_one_line(armed, here, bundle, write_skill):
    for name in ("aa", "bb", "cc", "dd", "ee"):
        bundle(name)
        write_skill(here / "skills", f"skill-{name}")
    watch = armed()
    for folder, parts in (("skills", ""), ("plugins", " with 10 skills")):
        kind = folder.removesuffix("s")
        (here / folder).rename(here / "gone")
        names = f"{'skill-' if kind == 'skill' else ''}aa"
        line = watch.until("removed")
        assert f"removed 5 {kind}s ({folder}): {names}, " in line
        assert line.endswith(f" and 2 more{parts}")
        (here / "gone").rename(here / folder)
        assert f"added 5 {kind}s ({folder}): {names}, " in watch.until("added")
    watch.process.send_signal(signal.SIGTERM)
    assert not [line for line in watch.rest("stdout") if "skill" in line]


def test_a_removed_plugin_is_one_line_with_its_commands(armed, here, bundle):
    folder = bundle("aa")
    watch = armed()
    folder.rename(here / "gone")
    assert watch.until("removed").endswith(
        "removed plugin aa (plugins) with skill aa-go, skill aa-s"
    )
