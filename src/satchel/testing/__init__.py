"""Helpers to test your own plugins and the hosts that use Satchel.

They are plain functions and context managers; `satchel.testing.fixtures` has a pytest fixture.
"""

from satchel.testing.fake_changes import change, feed
from satchel.testing.recorder import Recorder
from satchel.testing.sample_files import write_plugin, write_skill
from satchel.testing.scratch_satchel import scratch_satchel
from satchel.testing.scripted_client import ScriptedClient

__all__ = [
    "Recorder",
    "ScriptedClient",
    "change",
    "feed",
    "scratch_satchel",
    "write_plugin",
    "write_skill",
]
