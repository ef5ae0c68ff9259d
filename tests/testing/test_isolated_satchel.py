"""A scratch satchel knows nothing of the user, and leaves nothing."""

import asyncio
import os
from pathlib import Path

import pytest

from satchel.configuration.configuration import configuration_path
from satchel.testing import scratch_satchel, write_plugin

TOOL = """
    from satchel import tool

    @tool(state=["unit"])
    def unit(unit: str = "none") -> str:
        "Tell the unit."
        return unit
"""


@pytest.fixture
def plugins(tmp_path):
    write_plugin(tmp_path / "plugins", "acme", TOOL)
    return tmp_path / "plugins"


def reported(app):
    return asyncio.run(app.session().call("unit")).text


def test_neither_the_environment_nor_the_users_file_counts(plugins, monkeypatch):
    file = Path(configuration_path("acme"))
    file.parent.mkdir(parents=True)
    file.write_text("UNIT=file\n")
    with scratch_satchel(plugins=plugins) as app:
        assert reported(app) == "none"
    monkeypatch.setenv("SATCHEL_ACME_UNIT", "environment")
    with scratch_satchel(plugins=plugins) as app:
        assert reported(app) == "none"
    assert os.environ["SATCHEL_ACME_UNIT"] == "environment"


def test_what_the_user_disabled_is_on(plugins, config_folder):
    config_folder.mkdir()
    (config_folder / "satchel.toml").write_text('disable = ["acme"]\n')
    with scratch_satchel(plugins=plugins) as app:
        assert reported(app) == "none"


def test_configuration_is_given_as_to_a_satchel(plugins):
    with scratch_satchel(plugins=plugins, config={"acme": {"unit": "code"}}) as app:
        assert reported(app) == "code"


def test_a_change_of_the_scratch_configuration_is_seen_and_is_gone_afterwards(plugins):
    with scratch_satchel(plugins=plugins) as app:
        file = Path(configuration_path("acme"))
        file.parent.mkdir(parents=True)
        file.write_text("UNIT=file\n")
        app.refresh()
        assert reported(app) == "file"
    assert not file.exists()
    with scratch_satchel(plugins=plugins) as app:
        assert reported(app) == "none"


def test_the_environment_is_put_back_when_the_test_fails(plugins):
    before = dict(os.environ)
    with pytest.raises(ZeroDivisionError), scratch_satchel(plugins=plugins):
        os.environ["SATCHEL_LEFT_BEHIND"] = "1"
        raise ZeroDivisionError
    assert dict(os.environ) == before


def test_it_is_closed_at_the_end_so_that_plugins_are_shut_down(tmp_path):
    source = """
        from pathlib import Path
        from satchel import hookimpl

        @hookimpl
        def satchel_shutdown():
            Path(__file__).with_name("ended").touch()
    """
    path = write_plugin(tmp_path / "plugins", "acme", source)
    with scratch_satchel(plugins=tmp_path / "plugins") as app:
        assert app.catalog.plugins["acme"].is_served
        assert not (path / "ended").exists()
    assert (path / "ended").exists()


def test_other_parameters_are_those_of_a_satchel(plugins):
    with scratch_satchel(plugins=plugins, run_code=False) as app:
        assert app.catalog.tools["unit"].tool is None
    with pytest.raises(TypeError), scratch_satchel(plugin=plugins):
        pass
