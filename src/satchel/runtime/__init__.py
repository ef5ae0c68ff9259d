"""Running a call: from the model's wish to a result, whatever the tool does."""

from satchel.runtime.call import run_call

__all__ = ["run_call"]
