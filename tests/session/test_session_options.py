"""What a host chooses for its sessions."""

from dataclasses import FrozenInstanceError

import pytest

from satchel import DefinitionError, Satchel
from satchel.session.session_options import SessionOptions


def test_by_default_the_model_chooses_groups_and_loads_skills_and_runs_nothing():
    options = SessionOptions()
    assert (options.meta_tool, options.skill_tools, options.scripts) == (True, True, False)
    assert options.search is None
    assert (options.notes_in_prompt, options.notes_in_answer) == (True, True)


@pytest.mark.parametrize("junk", ["", "Prompt", "none", None, True, ["prompt"]])
def test_notes_that_would_go_nowhere_are_refused(junk):
    with pytest.raises(
        DefinitionError, match="notes must be one of prompt, answer, both"
    ) as problem:
        SessionOptions(notes=junk)
    assert "notes='both'" in problem.value.fix
    with pytest.raises(DefinitionError):
        Satchel().session(notes=junk)


def test_they_never_change_and_equal_ones_are_one():
    options = SessionOptions(search=True)
    with pytest.raises(FrozenInstanceError):
        options.search = False
    assert hash(options) == hash(SessionOptions(search=True))
    assert options != SessionOptions(search=False)


@pytest.mark.parametrize(
    "options", [{"scripts": "false"}, {"search": "no"}, {"search": 0}, {"meta_tool": 1}]
)
def test_a_choice_is_true_or_false_and_no_word_for_it(options):
    with pytest.raises(DefinitionError):
        Satchel().session(**options)


def test_without_a_meta_tool_notes_are_in_the_prompt_whatever_is_said():
    app = Satchel()
    app.create_group("maps", notes="Be careful.", active=True)
    assert "Be careful." in app.session(meta_tool=False, notes="answer").prompt()
