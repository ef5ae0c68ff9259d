"""Which servers of a project use none of its files; `test_code_units.py` has the commands."""

import os

from satchel.trust.fetched_servers import may_use_project

TABLE = {"command": "npx", "args": ["serve", "sub/run"]}


def test_a_folder_that_cannot_be_listed_may_hold_what_is_named(tmp_path, monkeypatch):
    assert not may_use_project(TABLE, str(tmp_path))

    def refuse(_path):
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    assert may_use_project(TABLE, str(tmp_path))
