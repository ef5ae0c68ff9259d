"""A project whose trust, code and settings change while we watch."""

import pytest

from satchel import Project
from satchel.configuration.projects import TrustLevel
from satchel.trust.project_inventory import read_inventory
from satchel.trust.trust_record import TrustStore

TOOLS = """
from satchel import tool

@tool
def answer() -> str:
    "Answer."
    return "{word}"
"""


@pytest.fixture
def project(tmp_path, write_skill):
    folder = tmp_path / "project"
    (folder / "plugins/demo").mkdir(parents=True)
    (folder / "plugins/demo/toolkit.yaml").write_text("name: demo\nactive: true\n")
    (folder / "plugins/demo/tools.py").write_text(TOOLS.format(word="one"))
    write_skill(folder / "skills", "pdf")
    return folder


def trust(project, level):
    TrustStore().write(read_inventory(Project(project)).record(TrustLevel(level)))


def say(app):
    result = app.session().call_sync("answer", {})
    return "" if result.is_error else result.text


def test_trust_that_is_given_changed_and_taken_counts_at_once(watched, project):
    with watched(project=project) as seen:
        assert not seen.app.catalog.skills
        trust(project, "data")
        seen.until_names("pdf")
        assert say(seen.app) == ""
        seen.until_as_cold()
        trust(project, "code")
        seen.until(lambda: say(seen.app) == "one")
        seen.until_as_cold()
        TrustStore().revoke(str(project))
        seen.until_names()
        seen.until_as_cold()


def test_changed_code_waits_until_it_is_trusted(watched, project):
    trust(project, "code")
    with watched(project=project) as seen:
        assert say(seen.app) == "one"
        (project / "plugins/demo/tools.py").write_text(TOOLS.format(word="two"))
        seen.until(lambda: seen.app.catalog.plugin("demo").state == "stale")
        assert say(seen.app) == "one"
        trust(project, "code")
        seen.until(lambda: say(seen.app) == "two")
        seen.until_as_cold()


def test_code_that_goes_back_to_what_was_trusted_is_used_again(watched, project):
    trust(project, "code")
    file = project / "plugins/demo/tools.py"
    with watched(project=project) as seen:
        before = file.read_text()
        file.write_text(TOOLS.format(word="two"))
        seen.until(lambda: seen.app.catalog.plugin("demo").state == "stale")
        file.write_text(before)
        seen.until(lambda: seen.app.catalog.plugin("demo").state == "ok")
        assert say(seen.app) == "one"
        seen.until_as_cold()


def test_settings_of_a_project_wait_while_those_for_skills_count_at_once(watched, project):
    (project / "satchel.toml").write_text("disable = ['tool:answer']\n")
    trust(project, "code")
    with watched(project=project) as seen:
        assert say(seen.app) == ""
        (project / "satchel.toml").write_text("disable = ['skill:pdf']\n")
        # Nothing beyond skills is left in the file, so there is nothing to trust.
        seen.until(lambda: say(seen.app) == "one")
        seen.until_names()
        seen.until_as_cold()
        (project / "satchel.toml").write_text("disable = ['demo']\n")
        seen.until_names("pdf")
        assert say(seen.app) == "one"
