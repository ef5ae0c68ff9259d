"""Stand-ins for people who test their own plugins, and hosts that use Satchel.

Plain functions and context managers; `satchel.testing.fixtures` has them for pytest.
"""

from satchel.testing.changes import change, feed
from satchel.testing.recording import Recorder
from satchel.testing.scratch import scratch_satchel
from satchel.testing.writing import write_plugin, write_skill

__all__ = ["Recorder", "change", "feed", "scratch_satchel", "write_plugin", "write_skill"]
