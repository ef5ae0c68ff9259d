"""Sessions: the active groups, loaded skills, steps and calls of one conversation each."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.session.conversation_replay import ReplayDifference, replay
    from satchel.session.recording import Recording
    from satchel.session.session import Session
    from satchel.session.session_options import SessionOptions
    from satchel.session.session_state import SkillContent
    from satchel.session.step import Step, StepChanges
    from satchel.session.step_plan import StepPlan
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "recording": "Recording",
            "conversation_replay": "ReplayDifference replay",
            "session": "Session",
            "session_options": "SessionOptions",
            "session_state": "SkillContent",
            "step": "Step StepChanges",
            "step_plan": "StepPlan",
        },
    )
