"""Every message of the source is in a snapshot."""

import pytest
from catalogue import entries_of, entries_of_package, packages

MADE_BY_RUNNING = {"rendered", "calls", "shown", "screens"}


@pytest.mark.parametrize("package", packages())
def test_the_messages_of_a_package_are_as_they_were_reviewed(package, snapshot):
    snapshot(package, entries_of_package(package))


def test_no_snapshot_is_left_of_a_removed_package(snapshot_names):
    assert snapshot_names - MADE_BY_RUNNING <= set(packages())


@pytest.mark.parametrize(
    ("source", "entries"),
    [
        ("report('yaml-invalid', at, f'bad {x.key!r}', 'Mend it.')",
         ["diagnostic yaml-invalid: bad {key} | Mend it."]),
        ("self.note('yaml-invalid', 'it is bad')", ["diagnostic yaml-invalid: it is bad"]),
        ("def f():\n m = 'it is ' + ('on' if x else 'off')\n raise OddError(m)",
         ["error OddError: it is (on / off)"]),
        ("def f(m):\n raise OddError(m)", ["error OddError: (computed in f) {m}"]),
        ("failure('gone', one_line('it went away'), id)", ["failure gone: it went away | {id}"]),
        ("def f():\n return 'no such thing'", ["text f: no such thing"]),
        ("def f():\n 'Not a message at all.'\n x = {'some-key': 1}", []),
        ("note('what it is', 'what to do')", ["text module: what it is | what to do"]),
        ("_log.warning('all of %s is lost', x)", ["log warning: all of %s is lost | {x}"]),
        ("@tool\ndef f():\n 'Do it.\\n\\nNow.'", ["tool f: Do it.\n\n    Now."]),
        ("import click\nclick.option('--x', help='Do it.')", ["cli option: --x | Do it."]),
    ],
)  # fmt: skip
def test_calls_that_create_messages_are_found(source, entries):
    assert entries_of(source) == entries
