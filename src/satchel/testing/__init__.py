"""Helpers to test your own plugins and the hosts that use Satchel.

They are plain functions and context managers; `satchel.testing.fixtures` has a pytest fixture.
"""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.testing.fake_changes import change, feed
    from satchel.testing.isolated_satchel import scratch_satchel
    from satchel.testing.recorder import Recorder
    from satchel.testing.sample_files import write_plugin, write_skill
    from satchel.testing.scripted_client import ScriptedClient
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "fake_changes": "change feed",
            "recorder": "Recorder",
            "sample_files": "write_plugin write_skill",
            "isolated_satchel": "scratch_satchel",
            "scripted_client": "ScriptedClient",
        },
    )

__all__ = [
    "Recorder",
    "ScriptedClient",
    "change",
    "feed",
    "scratch_satchel",
    "write_plugin",
    "write_skill",
]
