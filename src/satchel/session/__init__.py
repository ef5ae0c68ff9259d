"""Sessions: one conversation each, with its groups, its skills, its steps and its calls."""

from satchel.session.session import Session
from satchel.session.session_options import SessionOptions
from satchel.session.session_state import SkillContent
from satchel.session.step import Step, StepChanges

__all__ = ["Session", "SessionOptions", "SkillContent", "Step", "StepChanges"]
