"""The watcher, fed by a notifier that hands out what a test wrote down."""

import os
import queue
import threading
import time
from dataclasses import replace

import pytest

from satchel.files import watcher
from satchel.files.file_reader import stamped
from satchel.files.watch_targets import WatchTargets
from satchel.files.watcher import change_events
from satchel.settings import WatchTimings

# Nothing happens by itself within a test, unless the test asks for it.
CALM = WatchTimings(
    step=0.001,
    heartbeat=0.005,
    settle=0.005,
    quiet=0.005,
    burst=3,
    patience=60,
    safety_scan_active=60,
    safety_scan_idle=60,
    poll=0.005,
)


class FakeNotifier:
    """Hands out batches of paths; an exception among them is raised, silence is a timeout."""

    def __init__(self, roots, batches):
        self.roots, self.closed = roots, False
        self._batches = batches

    def watch(self, _debounce_ms, _step_ms, timeout_ms, _stop_event):
        try:
            batch = self._batches.get(timeout=timeout_ms / 1000)
        except queue.Empty:
            return "timeout"
        if isinstance(batch, Exception):
            raise batch
        if callable(batch):
            batch = batch()
        return batch if isinstance(batch, str) else {(1, path) for path in batch}

    def close(self):
        self.closed = True


class Watch:
    """A watch over one folder: `send` makes events, `next` waits for the hint."""

    def __init__(self, root, pace=CALM, polling=False, failing=()):
        self.watched = WatchTargets(roots=(str(root),))
        self.stop = threading.Event()
        self.batches = queue.Queue()
        self.built = []
        self.asked = 0
        self._failing = list(failing)
        self._hints = change_events(
            self._watched, self.stop, pace, polling=polling, notifier=self._notifier
        )

    def _watched(self):
        self.asked += 1
        return self.watched

    def _notifier(self, roots):
        if self._failing:
            raise self._failing.pop(0)
        self.built.append(FakeNotifier(roots, self.batches))
        return self.built[-1]

    def send(self, *batches):
        for batch in batches:
            self.batches.put(batch)

    def next(self):
        """Wait for the next hint; a watch that is silent for long is a failure."""
        caught = []
        thread = threading.Thread(target=lambda: caught.append(next(self._hints)), daemon=True)
        thread.start()
        thread.join(60)
        assert caught, "no hint within ten seconds"
        return caught[0]

    def ended(self):
        self.stop.set()
        return next(self._hints, None) is None


@pytest.fixture
def watch(tmp_path):
    def make(pace=CALM, **parts):
        return Watch(tmp_path, pace, **parts)

    return make


def codes(hint):
    return [item.code for item in hint.diagnostics]


def test_once_the_watches_stand_everything_must_be_looked_at(watch, tmp_path):
    watched = watch()
    hint = watched.next()
    assert (hint.paths, hint.diagnostics) == (None, ())
    assert [notifier.roots for notifier in watched.built] == [[str(tmp_path)]]


def test_an_event_names_its_path(watch, tmp_path):
    watched = watch()
    watched.next()
    watched.send([str(tmp_path / "a")])
    assert watched.next().paths == {str(tmp_path / "a")}


def test_small_batches_go_at_once_and_one_by_one(watch, tmp_path):
    watched = watch()
    watched.next()
    watched.send(["a"], ["b"])
    assert [watched.next().paths, watched.next().paths] == [{"a"}, {"b"}]


def test_a_burst_becomes_one_change_event_when_it_is_over(watch):
    watched = watch()
    watched.next()
    watched.send(["a", "b", "c"], ["d"], ["e", "a"])
    assert watched.next().paths == set("abcde")


def test_a_burst_without_end_is_cut_when_patience_is_over(watch):
    watched = watch(replace(CALM, patience=0.0))
    watched.next()
    watched.send(["a", "b", "c"], ["d"])
    assert watched.next().paths == set("abc")


@pytest.mark.parametrize("below", ["", "skills/deep"])
def test_events_wait_while_git_changes_the_work_tree(tmp_path, below):
    lock = tmp_path / ".git/index.lock"
    lock.parent.mkdir()
    lock.write_text("")
    root = tmp_path / below
    root.mkdir(parents=True, exist_ok=True)
    watched = Watch(root)
    watched.next()

    def unlocked():
        lock.unlink()
        return ["c"]

    watched.send(["a"], "timeout", ["b"], "timeout", unlocked)
    assert watched.next().paths == set("abc")


def test_a_lock_that_stays_holds_events_no_longer_than_patience(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/index.lock").write_text("")
    watched = Watch(tmp_path, replace(CALM, patience=0.02))
    watched.next()
    watched.send(["a"])
    assert watched.next().paths == {"a"}


def test_a_root_that_is_replaced_is_watched_again(watch, tmp_path):
    watched = watch()
    watched.next()
    tmp_path.rename(tmp_path.with_name("moved"))
    tmp_path.mkdir()
    assert watched.next().paths is None
    assert [notifier.closed for notifier in watched.built] == [True, False]


def test_a_link_to_a_root_that_is_switched_is_watched_again(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "root").symlink_to("one")
    watched = Watch(tmp_path / "root")
    watched.next()
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(tmp_path / "root")
    assert watched.next().paths is None
    assert len(watched.built) == 2


def test_a_root_that_appears_is_watched_from_then_on(tmp_path):
    watched = Watch(tmp_path / "later")
    assert watched.next().paths is None
    assert watched.built == []
    (tmp_path / "later").mkdir()
    assert watched.next().paths is None
    assert [notifier.roots for notifier in watched.built] == [[str(tmp_path / "later")]]


def test_an_event_on_a_root_itself_sets_the_watches_again(watch, tmp_path):
    watched = watch()
    watched.next()
    watched.send([str(tmp_path), "a"])
    assert watched.next().paths is None
    assert len(watched.built) == 2


def test_other_roots_to_watch_set_the_watches_again(watch, tmp_path):
    watched = watch()
    watched.next()
    watched.watched = replace(watched.watched, roots=(str(tmp_path), "/absent"))
    assert watched.next().paths is None
    assert len(watched.built) == 2


def test_of_links_that_change_only_their_targets_are_watched(watch, tmp_path, clock):
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    os.mkdir(old)
    os.mkdir(new)
    watched = watch(replace(CALM, safety_scan_active=10, safety_scan_idle=10))
    watched.watched = replace(watched.watched, links=frozenset({("a", old)}))
    watched.next()
    watched.watched = replace(watched.watched, links=frozenset({("a", new)}))
    assert watched.next().paths == {"a"}
    assert [sorted(notifier.roots) for notifier in watched.built] == [[str(tmp_path)], [new, old]]
    for path in ("b", "c"):  # each notifier takes its turn
        watched.send([path])
        assert watched.next().paths == {path}
    watched.send(clock.after(11))  # the safety scan makes one notifier of both
    assert watched.next().paths is None
    assert [notifier.closed for notifier in watched.built] == [True, True, False]


def test_after_many_changes_of_links_one_notifier_watches_their_targets(watch, tmp_path):
    watched = watch()
    watched.next()
    for name in "abcde":
        (tmp_path / name).mkdir()
        watched.watched = replace(watched.watched, links=frozenset({(name, str(tmp_path / name))}))
        if name == "e":
            watched.send(["before"])  # it waits in a notifier that is closed
        assert name in watched.next().paths
    assert watched.next().paths == {"before"}
    *_, last = watched.built
    assert sorted(last.roots) == [str(tmp_path / name) for name in "abcde"]
    assert [notifier.closed for notifier in watched.built] == [False, *[True] * 4, False]


@pytest.fixture
def linked_watch(watch, tmp_path):
    """Return a watch, a link in its root, and the target of the link outside of it."""
    root, target = tmp_path / "root", tmp_path / "v1/skill"
    root.mkdir()
    target.mkdir(parents=True)
    (tmp_path / "current").symlink_to("v1")
    link = root / "link"
    link.symlink_to(tmp_path / "current/skill")
    watched = watch()
    watched.watched = WatchTargets(roots=(str(root),), links=frozenset({(str(link), str(target))}))
    watched.next()
    return watched, link, target


def test_a_link_is_reported_when_another_one_on_its_way_is_replaced(linked_watch, tmp_path):
    watched, link, _ = linked_watch
    (tmp_path / "v2/skill").mkdir(parents=True)
    (tmp_path / "other").symlink_to("v2")
    (tmp_path / "other").replace(tmp_path / "current")
    assert watched.next().paths == {str(link)}


def test_what_takes_the_place_of_a_target_is_watched(linked_watch, tmp_path):
    watched, link, target = linked_watch
    (tmp_path / "v1").rename(tmp_path / "old")
    assert watched.next().paths == {str(link)}
    target.mkdir(parents=True)
    assert watched.next().paths == {str(link)}
    assert watched.built[-1].roots == [str(target)]


@pytest.mark.parametrize("is_new", [False, True])
def test_an_event_below_a_link_is_one_of_its_target_too(watch, tmp_path, is_new):
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to("own")
    link, own = str(tmp_path / "link"), str(tmp_path / "own")
    watched = watch()
    with_link = replace(watched.watched, links=frozenset({(link, own)}))
    if not is_new:
        watched.watched = with_link
    watched.next()
    if is_new:
        watched.watched = with_link
        watched.next()
    for reported in (link, own):
        watched.send([reported + "/a"])
        assert watched.next().paths == {link + "/a", own + "/a"}


@pytest.mark.parametrize("problem", [RuntimeError("could not decode"), OSError("gone")])
def test_a_notifier_that_dies_is_started_again_and_everything_is_compared(watch, problem):
    watched = watch()
    watched.next()
    watched.send(problem)
    hint = watched.next()
    assert (hint.paths, codes(hint)) == (None, ["watcher-failed"])
    assert str(problem) in hint.diagnostics[0].message
    assert ("UTF-8" in hint.diagnostics[0].fix) is ("decode" in str(problem))
    watched.send(["a"])
    assert watched.next().paths == {"a"}
    assert [notifier.closed for notifier in watched.built] == [True, False]


def test_a_notifier_that_keeps_dying_is_replaced_by_comparing(watch):
    watched = watch()
    watched.send(*[RuntimeError("dead")] * 5)
    results = [codes(watched.next()) for _ in range(7)]
    assert results == [[], *[["watcher-failed"]] * 4, *[["watcher-polling"]] * 2]
    assert all(notifier.closed for notifier in watched.built)
    assert len(watched.built) == 5


def test_a_notifier_that_cannot_be_built_is_tried_a_few_times(watch):
    watched = watch(failing=[OSError("limit reached")] * 2)
    hint = watched.next()
    assert (hint.paths, codes(hint), len(watched.built)) == (None, ["watcher-failed"], 1)


def test_a_notifier_that_can_never_be_built_is_replaced_by_comparing(watch):
    watched = watch(failing=[OSError("inotify watch limit reached")] * 5)
    hint = watched.next()
    assert (hint.paths, codes(hint), watched.built) == (None, ["watcher-polling"], [])
    assert "max_user_watches" in hint.diagnostics[0].fix
    assert codes(watched.next()) == ["watcher-polling"]


class Clock:
    """A clock that a test puts forward, by a batch that says only that time went by."""

    ahead = 0.0
    computed = 0.0

    def thread_time(self):
        return self.computed

    def monotonic(self):
        return time.monotonic() + self.ahead

    def after(self, seconds):
        def batch():
            self.ahead += seconds
            return "timeout"

        return batch


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("satchel.files.watcher.time", clock)
    return clock


def test_trouble_is_over_when_the_watch_was_well_for_long(watch, clock):
    watched = watch(replace(CALM, safety_scan_active=6, safety_scan_idle=6))
    watched.next()
    watched.send(RuntimeError("dead"), clock.after(7), clock.after(7))
    assert [codes(watched.next()) for _ in range(3)] == [
        ["watcher-failed"],
        ["watcher-failed"],
        [],
    ]


def test_everything_is_compared_now_and_then_and_sooner_after_an_event(watch, clock):
    watched = watch(replace(CALM, safety_scan_active=10, safety_scan_idle=1_000))
    watched.next()
    watched.send(clock.after(11))
    assert watched.next().paths is None
    watched.send(clock.after(500), ["a"])
    assert watched.next().paths == {"a"}
    watched.send(clock.after(11))
    assert watched.next().paths is None
    watched.send(clock.after(1_001))
    assert watched.next().paths is None


def test_comparing_everything_takes_at_most_a_hundredth_of_the_time(watch, clock):
    watched = watch(replace(CALM, safety_scan_active=10, safety_scan_idle=10))
    watched.next()
    clock.computed += 0.5  # the receiver of the first event compares everything
    watched.send(clock.after(49), ["a"])
    assert watched.next().paths == {"a"}
    watched.send(clock.after(49), ["b"])
    assert watched.next().paths == {"b"}
    watched.send(clock.after(51))
    assert watched.next().paths is None
    watched.send(clock.after(11))  # it computed nothing, so the pause is the usual one
    assert watched.next().paths is None


def test_everything_is_compared_again_soon_while_handles_are_missing(watch, tmp_path, clock):
    watched = watch(replace(CALM, safety_scan_active=10, safety_scan_idle=1_000))
    watched.watched = replace(watched.watched, unreadable=(str(tmp_path),))
    watched.next()
    for _ in range(2):
        watched.send(clock.after(11))
        assert watched.next().paths is None


def test_what_was_half_written_is_looked_at_again_by_itself(watch):
    watched = watch()
    watched.next()
    watched.watched = replace(watched.watched, settling=frozenset({"torn"}))
    assert [watched.next().paths, watched.next().paths] == [{"torn"}, {"torn"}]


def test_what_was_half_written_is_looked_at_with_the_next_event_as_well(watch):
    watched = watch(replace(CALM, settle=60, heartbeat=60))
    watched.next()
    watched.watched = replace(watched.watched, settling=frozenset({"torn"}))
    watched.send(["a"])
    assert watched.next().paths == {"a", "torn"}


def test_a_package_that_is_installed_is_noticed(watch, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    os.utime(site, (1, 1))
    watched = watch()
    watched.watched = replace(watched.watched, installed=stamped([str(site)]))
    watched.next()
    (site / "acme.dist-info").mkdir()
    assert watched.next().paths is None
    assert len(watched.built) == 1


def test_the_end_of_an_installation_is_noticed(watch, tmp_path):
    record = tmp_path / "RECORD"
    watched = watch()
    watched.watched = replace(watched.watched, awaited=(str(record),))
    watched.next()
    record.write_text("")
    assert watched.next().paths is None


def test_polling_compares_everything_at_each_tick_and_says_so_once(watch):
    watched = watch(polling=True)
    results = [watched.next() for _ in range(3)]
    assert [hint.paths for hint in results] == [None] * 3
    assert [codes(hint) for hint in results] == [["watcher-polling"]] * 3
    assert "switched off" in results[0].diagnostics[0].message
    assert watched.built == []


def test_polling_is_quick_while_something_is_half_written(watch):
    watched = watch(replace(CALM, poll=60), polling=True)
    watched.watched = replace(watched.watched, settling=frozenset({"torn"}))
    watched.next()
    assert watched.next().paths is None


@pytest.mark.parametrize("polling", [False, True])
def test_stopping_ends_the_change_events_and_lets_everything_go(watch, polling):
    watched = watch(polling=polling)
    watched.next()
    open_files = len(os.listdir("/proc/self/fd"))
    assert watched.ended()
    assert all(notifier.closed for notifier in watched.built)
    assert len(os.listdir("/proc/self/fd")) <= open_files


def test_a_watch_that_is_stopped_before_it_begins_gives_no_change_event(watch):
    watched = watch()
    assert watched.ended()
    assert watched.built == []


def test_stopping_wakes_a_watch_that_waits_for_its_root(tmp_path):
    watched = Watch(tmp_path / "absent", replace(CALM, heartbeat=60))
    watched.next()
    thread = threading.Thread(target=lambda: next(watched._hints, None), daemon=True)
    thread.start()
    watched.stop.set()
    thread.join(60)
    assert not thread.is_alive()


def test_stopping_wakes_the_native_notifier(tmp_path):
    stop = threading.Event()
    watched = WatchTargets(roots=(str(tmp_path),))
    result = change_events(lambda: watched, stop, replace(CALM, heartbeat=60))
    assert next(result).paths is None
    thread = threading.Thread(target=lambda: next(result, None), daemon=True)
    thread.start()
    stop.set()
    thread.join(60)
    assert not thread.is_alive()


def test_the_native_notifier_reports_a_file_that_is_written(tmp_path):
    stop = threading.Event()
    result = change_events(lambda: WatchTargets(roots=(str(tmp_path),)), stop, CALM)
    assert next(result).paths is None
    (tmp_path / "a").write_text("x")
    assert next(result).paths == {str(tmp_path / "a")}
    stop.set()
    assert next(result, None) is None


def test_what_becomes_readable_is_watched_from_then_on(tmp_path, monkeypatch):
    watched = Watch(tmp_path)
    state = [False]
    monkeypatch.setattr(watcher, "readable_ones", lambda paths: tuple(state * len(paths)))
    watched.watched = replace(watched.watched, unreadable=(str(tmp_path / "locked"),))
    assert watched.next().paths is None

    def readable_now():
        state[0] = True
        return "timeout"

    watched.send(readable_now)
    assert watched.next().paths is None, "the watches were set anew, and everything was compared"


def test_a_lock_that_is_there_while_nothing_changes_yet_is_no_dead_gits(tmp_path):
    """Git takes its lock first, and may read for long before it writes the first file."""
    lock = tmp_path / ".git/index.lock"
    lock.parent.mkdir()
    watched = Watch(tmp_path)
    watched.next()
    lock.write_text("")

    def unlocked():
        lock.unlink()
        return ["b"]

    watched.send("timeout", ["a"], "timeout", unlocked)
    assert watched.next().paths == set("ab")
