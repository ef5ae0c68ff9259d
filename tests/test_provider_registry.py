"""Each provider is asked in a thread of its own; its last answer stays until the next good one."""

import threading

import pytest

from satchel.files.file_reader import Stamp
from satchel.provider_registry import ProviderRegistry
from satchel.providers.provider import Contribution
from satchel.providers.skill import Skill
from satchel.settings import Limits

EVERYTHING = None
NOTHING = frozenset()


class Scripted:
    """Answers by a function of how often it was asked."""

    name = "db"

    def __init__(self, answer, *watch):
        self.answer, self.watch, self.asked = answer, watch, []

    def contribute(self, _last, changed):
        self.asked.append(changed)
        return self.answer(len(self.asked))


def skills(*names):
    return Contribution(skills=[Skill(name=name, description="D.", body="B.") for name in names])


def registry(provider, on_change=lambda: None, seconds=30.0):
    created = ProviderRegistry(Limits(provider=seconds), on_change)
    created.add(provider)
    return created


def names(provided):
    return [skill.folder_name for item in provided for skill in item.skills]


def test_a_new_provider_is_asked_once_and_then_only_if_something_changed(tmp_path):
    watched, other = tmp_path / "watched", tmp_path / "other"
    provider = Scripted(lambda number: skills(f"s{number}"), watched)
    asked = registry(provider)
    assert names(asked.ask(NOTHING, (), 30)) == ["s1"]
    assert names(asked.ask(NOTHING, (), 30)) == ["s1"]
    assert names(asked.ask(frozenset({str(other)}), (), 30)) == ["s1"]
    assert names(asked.ask(frozenset({str(watched / "x")}), (), 30)) == ["s2"]
    assert names(asked.ask(NOTHING, {"db"}, 30)) == ["s3"]
    assert names(asked.ask(EVERYTHING, (), 30)) == ["s4"]
    assert provider.asked == [None, frozenset({str(watched / "x")}), None, None]


@pytest.mark.parametrize("fails", [False, True])
def test_what_it_watches_is_stamped_also_if_it_fails(tmp_path, fails):
    file = tmp_path / "a.db"
    file.write_text("1")
    asked = registry(Scripted(lambda _: 1 / 0 if fails else skills("a"), file))
    (first,) = asked.ask(EVERYTHING, (), 30)
    file.write_text("22")
    assert first.watched[0][1] != Stamp.at(str(file))
    (second,) = asked.ask(frozenset({str(file)}), (), 30)
    # Otherwise a watch would ask it again at each heartbeat.
    assert second.watched == ((str(file), Stamp.at(str(file))),)


def test_a_change_during_an_answer_is_asked_after_it(tmp_path):
    watched, begun = tmp_path / "watched", threading.Event()
    go, go_again, news = threading.Event(), threading.Event(), threading.Event()

    def answer(number):
        begun.set()
        assert (go if number == 1 else go_again).wait(30)
        return skills(f"s{number}")

    provider = Scripted(answer, watched)
    asked = registry(provider, news.set)
    assert names(asked.ask(EVERYTHING, (), 0)) == []
    assert names(asked.ask(frozenset({str(watched)}), {"db"}, 0)) == []
    assert begun.wait(30)
    assert len(provider.asked) == 1, "it is asked once at a time"
    go.set()
    assert news.wait(30)
    news.clear()
    assert names(asked.ask(NOTHING, (), 0)) == ["s1"]
    go_again.set()
    assert news.wait(30), "the second answer is news, too"
    assert names(asked.ask(NOTHING, (), 0)) == ["s2"]


def test_an_answer_in_time_is_no_news():
    news = []
    asked = registry(Scripted(lambda _: skills("a")), lambda: news.append(1))
    asked.ask(EVERYTHING, (), 30)
    assert news == []


def test_one_that_hangs_fails_when_its_time_is_over_and_the_others_answer():
    end = threading.Event()
    asked = registry(
        Scripted(lambda number: end.wait(60) if number > 1 else skills("a")), seconds=0.05
    )
    other = Scripted(lambda number: skills(f"other{number}"))
    other.name = "other"
    asked.add(other)
    while names(asked.ask(NOTHING, (), 30)) != ["a", "other1"]:
        pass  # the first answers may take longer than the limit, too
    asked.ask(EVERYTHING, (), 30)
    while names(asked.ask(NOTHING, (), 30)) != ["a", "other2"]:
        pass
    provided, _ = asked.ask(NOTHING, (), 0)
    assert [item.code for item in provided.plugin.diagnostics] == ["provider-failed"]
    assert "no answer within 0.05 s" in provided.plugin.diagnostics[0].message
    again = asked.ask(NOTHING, (), 0)[0].plugin
    assert again is provided.plugin, "the same failure changes nothing"
    end.set()


def test_only_the_pass_that_asked_one_that_hangs_waits_for_it():
    end = threading.Event()
    asked = registry(Scripted(lambda _: end.wait() and skills("a")), seconds=1000)
    other = Scripted(lambda number: skills(f"other{number}"))
    other.name = "other"
    asked.add(other)
    asked.ask(NOTHING, (), 0)
    assert names(asked.ask(NOTHING, {"other"}, 1000))[0].startswith("other")
    assert not end.is_set()
    end.set()
    assert "a" in names(asked.ask(NOTHING, {"db"}, 1000))


def test_one_path_to_watch_needs_no_list(tmp_path):
    file = tmp_path / "a.db"
    provider = Scripted(lambda number: skills(f"s{number}"))
    provider.watch = str(file)
    asked = registry(provider)
    asked.ask(NOTHING, (), 30)
    assert names(asked.ask(frozenset({str(file)}), (), 30)) == ["s2"]


def test_the_providers_of_a_plugin_follow_its_version():
    asked = registry(Scripted(lambda _: skills("host")))
    one, two = Scripted(lambda _: skills("one")), Scripted(lambda _: 1 / 0)
    assert asked.update([("clock", one, {})])
    assert not asked.update([("clock", one, {})])
    assert names(asked.ask(NOTHING, (), 30)) == ["host", "one"]
    assert asked.update([("clock", two, {"dsn": "a secret"})])
    # The new version fails, so the last contribution of the old one stays.
    assert names(asked.ask(NOTHING, (), 30)) == ["host", "one"]
    assert asked.update([])
    assert names(asked.ask(NOTHING, (), 30)) == ["host"]
