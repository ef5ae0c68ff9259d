"""What happens on disk while we watch: each of these was seen to defeat a loader."""

import os
import shutil
import subprocess
import sys
import threading
from functools import partial

import pytest

from satchel import Settings, WatchTimings
from satchel.files.watcher import native_notifier


def test_a_root_that_does_not_exist_yet_is_watched_once_it_does(watched, tmp_path, write_skill):
    root = tmp_path / "later" / "skills"
    with watched(skills=[root]) as seen:
        write_skill(root, "pdf")
        seen.until_names("pdf")
        seen.until_as_cold()


def test_a_root_that_is_deleted_and_made_again_is_watched_on(watched, root, write_skill):
    write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        for round_ in range(3):
            shutil.rmtree(root)
            seen.until_names()
            write_skill(root, f"again-{round_}")
            seen.until_names(f"again-{round_}")
            write_skill(root, "more")
            seen.until_names(f"again-{round_}", "more")
        seen.until_as_cold()


def test_a_root_made_again_in_the_same_instant_is_watched_on(watched, root, write_skill):
    write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        shutil.rmtree(root)
        write_skill(root, "docx")
        seen.until_names("docx")
        write_skill(root, "xlsx")
        seen.until_names("docx", "xlsx")


# Without safety scans, which would find what the events miss.
ONLY_EVENTS = Settings(
    pace=WatchTimings(
        heartbeat=0.05, settle=0.1, quiet=0.05, safety_scan_active=1e6, safety_scan_idle=1e6
    )
)


@pytest.mark.parametrize(
    "layout",
    [
        ("one/aa", "one/own"),
        ("one/zz", "one/own"),
        ("one/group/aa", "one/own"),
        ("one/aa", "one/group"),
        ("two/own", "one/own"),
        ("one/own", "two/own"),
        ("two/aa", "one/group"),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_an_edit_of_a_skill_that_a_link_reaches_too_is_an_event(
    watched, tmp_path, write_skill, layout, is_new
):
    link, own = layout

    def is_served(number):
        return f"thing {number}." in seen.app.catalog.skills["own"].description

    def edit(number):
        folder = tmp_path / own
        where = folder if own.endswith("group") else folder.parent
        write_skill(where, "own", description=f"Does thing {number}.")

    for root in ("one", "two"):
        write_skill(tmp_path / root, "other")
    edit(0)
    (tmp_path / link).parent.mkdir(exist_ok=True)

    def make_link():
        (tmp_path / link).symlink_to(os.path.relpath(tmp_path / own, (tmp_path / link).parent))

    if not is_new:
        make_link()
    with watched(skills=[tmp_path / "one", tmp_path / "two"], settings=ONLY_EVENTS) as seen:
        if is_new:
            make_link()
        for number in range(1, 4):
            edit(number)
            seen.until(partial(is_served, number))
        seen.until_as_cold()


def test_a_root_that_is_replaced_by_a_rename_is_the_new_one(watched, root, tmp_path, write_skill):
    write_skill(root, "old")
    write_skill(tmp_path / "next", "new")
    with watched(skills=[root]) as seen:
        root.rename(tmp_path / "previous")
        (tmp_path / "next").rename(root)
        seen.until_names("new")
        write_skill(root, "newer")
        seen.until_names("new", "newer")
        write_skill(tmp_path / "previous", "elsewhere")
        seen.until_as_cold()


def test_the_folder_above_the_root_may_be_renamed_too(watched, tmp_path, write_skill):
    root = tmp_path / "project" / "skills"
    write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        (tmp_path / "project").rename(tmp_path / "moved")
        seen.until_names()
        write_skill(root, "back")
        seen.until_names("back")


def test_a_nested_folder_with_a_file_written_at_once_is_never_missed(watched, root, write_skill):
    with watched(skills=[root]) as seen:
        names = [f"skill-{number}" for number in range(100)]
        for number, name in enumerate(names):
            write_skill(root / f"team-{number}" / "deep" / "down", name)
            seen.until(lambda name=name: name in seen.app.catalog.skills)
        seen.until_names(*names)
        seen.until_as_cold()


def test_a_populated_folder_moved_in_and_out_comes_and_goes(watched, root, tmp_path, write_skill):
    for name in ("pdf", "docx"):
        write_skill(tmp_path / "elsewhere" / "office", name)
    with watched(skills=[root]) as seen:
        (tmp_path / "elsewhere" / "office").rename(root / "office")
        seen.until_names("docx", "pdf")
        write_skill(root / "office", "xlsx")
        seen.until_names("docx", "pdf", "xlsx")
        (root / "office").rename(tmp_path / "elsewhere" / "office")
        seen.until_names()
        seen.until_as_cold()


def test_a_file_saved_again_and_again_by_atomic_rename_is_always_current(
    watched, root, write_skill, skill_text
):
    skill = write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        for number in range(20):
            fresh = skill / ".SKILL.md.tmp"
            fresh.write_text(skill_text("pdf", f"Version {number}."))
            fresh.replace(skill / "SKILL.md")
            seen.until(
                lambda number=number: (
                    seen.app.catalog.skills["pdf"].description == f"Version {number}."
                )
            )
        seen.until_as_cold()


def test_edits_of_the_same_length_in_the_same_second_are_all_seen(watched, root, write_skill):
    write_skill(root, "pdf", description="aaaa")
    with watched(skills=[root]) as seen:
        for letter in "bcdefghijk":
            write_skill(root, "pdf", description=letter * 4)
            seen.until(
                lambda letter=letter: seen.app.catalog.skills["pdf"].description == letter * 4
            )


def test_a_file_written_in_pieces_ends_whole_and_is_never_called_broken(
    watched, root, write_skill, skill_text
):
    skill = write_skill(root, "pdf", description="Old.")
    text = skill_text("pdf", "New.", "Step by step.\n" * 20)
    with watched(skills=[root]) as seen:
        with (skill / "SKILL.md").open("w") as file:
            for start in range(0, len(text), 7):
                file.write(text[start : start + 7])
                file.flush()
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "New.")
        seen.until_as_cold()
        assert {event for event, _, _ in seen.events()} == {"changed"}


def test_a_root_that_is_a_link_may_be_switched_to_another_folder(watched, tmp_path, write_skill):
    write_skill(tmp_path / "v1", "one")
    write_skill(tmp_path / "v2", "two")
    root = tmp_path / "current"
    root.symlink_to(tmp_path / "v1")
    with watched(skills=[root]) as seen:
        seen.until_names("one")
        fresh = tmp_path / "current.new"
        fresh.symlink_to(tmp_path / "v2")
        fresh.replace(root)
        seen.until_names("two")
        write_skill(tmp_path / "v2", "three")
        seen.until_names("three", "two")
        write_skill(tmp_path / "v1", "unseen")
        seen.until_as_cold()


def test_a_link_inside_the_root_may_be_switched_as_mounted_configuration_is(
    watched, root, write_skill
):
    write_skill(root / "..v1", "pdf", description="One.")
    write_skill(root / "..v2", "pdf", description="Two.")
    (root / "..data").symlink_to("..v1")
    (root / "pdf").symlink_to("..data/pdf")
    with watched(skills=[root]) as seen:
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "One.")
        (root / "..next").symlink_to("..v2")
        (root / "..next").replace(root / "..data")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "Two.")
        write_skill(root / "..v2", "pdf", description="Two, edited.")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "Two, edited.")
        seen.until_as_cold()


def test_a_folder_reachable_by_two_paths_is_current_by_both(watched, root, write_skill):
    write_skill(root / "real", "pdf", description="Old.")
    (root / "alias").symlink_to("real")
    with watched(skills=[root]) as seen:
        write_skill(root / "real", "pdf", description="New.")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "New.")
        seen.until_as_cold()


@pytest.mark.parametrize("hidden", [".venv", "node_modules", ".git"])
def test_a_root_inside_a_folder_that_watchers_filter_is_watched(
    watched, tmp_path, write_skill, hidden
):
    root = tmp_path / hidden / "lib" / "skills"
    write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        write_skill(root, "docx")
        seen.until_names("docx", "pdf")


def test_a_file_name_that_is_not_utf8_does_not_end_the_watch_and_is_reported(
    watched, root, write_skill
):
    skill = write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        with open(os.fsencode(skill) + b"/bad\xff", "wb"):
            pass
        seen.until(
            lambda: (
                {"watcher-failed", "source-name-not-utf8"}
                <= {item.code for item in seen.app.catalog.diagnostics}
            )
        )
        write_skill(root, "docx")
        seen.until_names("docx", "pdf")
        write_skill(root, "pdf", description="Edited.")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "Edited.")


class Lossy:
    """A notifier that loses, repeats and reorders what it hears."""

    def __init__(self, roots: list[str]) -> None:
        self._real, self._count = native_notifier(roots), 0

    def watch(self, *arguments):
        news = self._real.watch(*arguments)
        self._count += 1
        return "timeout" if self._count % 3 else news

    def close(self) -> None:
        self._real.close()


def test_events_that_were_lost_are_made_up_for(watched, root, write_skill):
    with watched(notifier=Lossy, skills=[root]) as seen:
        for number in range(5):
            write_skill(root, f"skill-{number}")
            seen.until(lambda number=number: f"skill-{number}" in seen.app.catalog.skills)
        seen.until_as_cold()


def test_a_watcher_that_dies_is_started_again(watched, root, write_skill):
    deaths = iter([True, True])

    class Mortal(Lossy):
        def watch(self, *arguments):
            news = self._real.watch(*arguments)
            if not isinstance(news, str) and next(deaths, False):
                raise RuntimeError("it died")
            return news

    with watched(notifier=Mortal, skills=[root]) as seen:
        for number in range(3):
            write_skill(root, f"skill-{number}")
            seen.until(lambda number=number: f"skill-{number}" in seen.app.catalog.skills)
        seen.until(lambda: "watcher-failed" in {d.code for d in seen.app.catalog.diagnostics})


def test_without_any_notification_from_the_system_the_folders_are_compared(
    watched, root, write_skill
):
    def no_inotify(_roots):
        raise OSError("inotify limit reached")

    with watched(notifier=no_inotify, skills=[root]) as seen:
        seen.until(lambda: "watcher-polling" in {d.code for d in seen.app.catalog.diagnostics})
        write_skill(root, "pdf")
        seen.until_names("pdf")
        write_skill(root, "pdf", description="In the same second.")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "In the same second.")
        shutil.rmtree(root)
        seen.until_names()


def test_polling_can_be_chosen(watched, root, write_skill):
    settings = Settings(polling=True, pace=WatchTimings(poll=0.05))
    with watched(skills=[root], settings=settings) as seen:
        write_skill(root, "pdf")
        seen.until_names("pdf")


def test_deleting_removes(watched, root, write_skill):
    for name in ("pdf", "docx"):
        write_skill(root, name)
    with watched(skills=[root]) as seen:
        shutil.rmtree(root / "pdf")
        seen.until_event("removed", "pdf")
        (root / "docx" / "SKILL.md").unlink()
        seen.until_event("removed", "docx")
        seen.until_as_cold()


def git(folder, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "gc.auto=0"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
def test_a_checkout_of_thousands_of_files_is_a_few_scans_and_one_result(
    watched, tmp_path, write_skill
):
    project, count = tmp_path / "project", 1500
    root = project / "skills"
    git(tmp_path, "init", "-q", "-b", "one", str(project))
    for number in range(count):
        write_skill(root, f"skill-{number}", description="One.")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "one")
    git(project, "checkout", "-qb", "two")
    for number in range(count):
        write_skill(root, f"skill-{number}", description="Two.")
    git(project, "commit", "-qam", "two")
    with watched(skills=[root]) as seen:
        first = seen.app.catalog.generation
        git(project, "checkout", "-q", "one")
        seen.until(
            lambda: {skill.description for skill in seen.app.catalog.skills.values()} == {"One."}
        )
        assert len(seen.app.catalog.skills) == count
        assert seen.app.catalog.generation - first <= 5
        seen.until_as_cold()


def test_a_broken_edit_keeps_the_last_good_version_and_a_fix_recovers(watched, root, write_skill):
    skill = write_skill(root, "pdf", description="Good.")
    with watched(skills=[root]) as seen:
        (skill / "SKILL.md").write_text("no frontmatter any more")
        change = seen.until_event("stale", "pdf")
        entry = seen.app.catalog.skills["pdf"]
        assert (entry.state, entry.description) == ("stale", "Good.")
        assert {"skill-no-frontmatter", "last-good"} <= {item.code for item in entry.diagnostics}
        assert "SKILL.md" in change.message
        assert "Good." in seen.app.session().prompt()
        write_skill(root, "pdf", description="Mended.")
        seen.until_event("recovered", "pdf")
        assert seen.app.catalog.skills["pdf"].description == "Mended."
        seen.until_as_cold()


def test_a_broken_edit_that_is_deleted_leaves_nothing(watched, root, write_skill):
    skill = write_skill(root, "pdf")
    with watched(skills=[root]) as seen:
        (skill / "SKILL.md").write_text("---\n")
        seen.until_event("stale", "pdf")
        shutil.rmtree(skill)
        seen.until_event("removed", "pdf")
        seen.until_as_cold()


def test_an_edit_of_a_file_beside_skill_md_is_reported(watched, root, write_skill):
    skill = write_skill(root, "pdf")
    (skill / "references").mkdir()
    with watched(skills=[root]) as seen:
        (skill / "references" / "forms.md").write_text("Fields.")
        change = seen.until_event("changed", "pdf")
        assert change.message == "references/forms.md"


def test_a_reader_sees_one_generation_or_the_next_never_a_mix(watched, root, write_skill):
    """Two skills are switched together by one rename; nobody may see one of each."""
    for version in ("one", "two"):
        for name in ("a", "b"):
            write_skill(root / f"..{version}", name, description=version)
    (root / "now").symlink_to("..one")
    mixes, stop = [], threading.Event()
    with watched(skills=[root]) as seen:

        def read() -> None:
            while not stop.is_set():
                versions = {skill.description for skill in seen.app.catalog.skills.values()}
                if len(versions) > 1:
                    mixes.append(versions)

        reader = threading.Thread(target=read)
        reader.start()
        for version in ("two", "one") * 5:
            (root / "next").symlink_to(f"..{version}")
            (root / "next").replace(root / "now")
            seen.until(lambda version=version: seen.app.catalog.skills["b"].description == version)
        stop.set()
        reader.join()
    assert not mixes


def test_the_watch_ends_at_once_and_leaves_no_thread(watched, root):
    before = set(threading.enumerate())
    with watched(skills=[root]):
        assert any(thread.name == "satchel-watch" for thread in threading.enumerate())
    assert set(threading.enumerate()) <= before


@pytest.mark.skipif(sys.platform != "linux", reason="file descriptors are counted in /proc")
def test_watching_again_and_again_leaks_no_descriptor(watched, root):
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    with watched(skills=[root]):
        pass
    before = count()
    for _ in range(5):
        with watched(skills=[root]) as seen:
            pass
    # The backend closes its own on a thread of its own.
    seen.until(lambda: count() <= before)


def test_a_broken_copy_never_shadows_a_good_one(watched, root, write_skill):
    write_skill(root / "x", "pdf", description="x")
    with watched(skills=[root]) as seen:
        write_skill(root / "x", "pdf", text="broken")
        seen.until_event("stale", "pdf")
        assert seen.app.catalog.skills["pdf"].description == "x"
        write_skill(root / "y", "pdf", description="y")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "y")
        write_skill(root / "x", "pdf", description="x, mended")
        seen.until(lambda: seen.app.catalog.skills["pdf"].description == "x, mended")
        seen.until_as_cold()
