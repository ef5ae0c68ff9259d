from satchel.prompt.skill_prompt import SkillPrompt
from satchel.settings import Limits


def test_a_style_shows_no_more_of_a_description_than_the_limits_allow():
    style = SkillPrompt(budget=7, description_length=100)
    assert style.within(Limits(description_shown=40)) == SkillPrompt(
        budget=7, description_length=40
    )
    assert style.within(Limits(description_shown=200)) == style
