"""Sessions: the active groups, loaded skills, steps and calls of one conversation each."""

from satchel.session.session import Session
from satchel.session.session_options import SessionOptions
from satchel.session.session_state import SkillContent
from satchel.session.step import Step, StepChanges

__all__ = ["Session", "SessionOptions", "SkillContent", "Step", "StepChanges"]
