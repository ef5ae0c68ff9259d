"""Installing the requirements of isolated plugins."""

import os

import pytest

from satchel.workers.plugin_environments import installed


@pytest.mark.skipif(os.name != "posix", reason="the installer is a shell script")
def test_the_settings_of_the_current_folder_do_not_choose_the_index(tmp_path, monkeypatch):
    uv, ran_in = tmp_path / "uv", tmp_path / "ran-in"
    uv.write_text(f"#!/bin/sh\npwd > {ran_in}\n")
    uv.chmod(0o755)
    monkeypatch.setattr("satchel.workers.plugin_environments.find_program", lambda _: str(uv))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = installed(["acme"], 60)
    # uv also reads the settings of the folders above.
    assert os.path.dirname(ran_in.read_text().strip()) == os.path.dirname(folder)
