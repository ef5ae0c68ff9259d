"""A scratch world has nothing of the user's, and is gone afterwards."""

import os

from satchel.configuration.configuration import config_folder
from satchel.configuration.scratch_world import scratch_world


def test_the_configuration_folder_is_inside_and_not_there_yet():
    before = config_folder()
    with scratch_world() as folder:
        assert config_folder().startswith(folder)
        assert os.listdir(folder) == []
    assert config_folder() == before
    assert not os.path.exists(folder)


def test_worlds_may_lie_in_each_other(monkeypatch):
    monkeypatch.setenv("SATCHEL_ACME_KEY", "user")
    with scratch_world() as outer:
        os.environ["SATCHEL_ACME_KEY"] = "outer"
        with scratch_world() as inner:
            assert inner != outer
            assert "SATCHEL_ACME_KEY" not in os.environ
        assert os.environ["SATCHEL_ACME_KEY"] == "outer"
        assert config_folder().startswith(outer)
    assert os.environ["SATCHEL_ACME_KEY"] == "user"


def test_what_a_world_sets_is_unset_afterwards():
    with scratch_world():
        os.environ["SATCHEL_ACME_NEW"] = "inside"
    assert "SATCHEL_ACME_NEW" not in os.environ


def test_other_variables_stay(monkeypatch):
    monkeypatch.setenv("OTHER", "1")
    with scratch_world():
        assert os.environ["OTHER"] == "1"
        os.environ["OTHER"] = "2"
    assert os.environ["OTHER"] == "2"
