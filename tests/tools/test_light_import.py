import subprocess
import sys

import satchel.tools


def test_the_front_door_offers_what_it_lists():
    assert all(hasattr(satchel.tools, name) for name in satchel.tools.__all__)


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, satchel.tools\n"
        "print({'pydantic', 'pydantic_core', 'griffe'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert ended.stdout == "set()\n"
