"""The how-to page of each framework runs as it is written, in the framework's environment."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("use-with-*.md"))
OFFLINE = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "true",
    "SATCHEL": str(ROOT / ".venv" / "bin" / "satchel"),
}
"""Also the command of an environment with the extra `mcp`, for frameworks that cannot have it."""
NAMES = [page.stem.removeprefix("use-with-").replace("-", "_") for page in PAGES]


@pytest.mark.parametrize(("name", "page"), list(zip(NAMES, PAGES, strict=True)), ids=NAMES)
def test_the_page_runs_as_it_is_written(name, page, tmp_path):
    blocks = re.findall(
        rf"^```python {name}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    assert blocks, f"write ```python {name}"
    compile("\n".join(blocks), str(page), "exec")
    if os.environ.get("SATCHEL_ADAPTER") != name:
        pytest.skip("it runs in the framework's environment: make adapters")
    for folder in ("skills", "plugins"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env=os.environ | OFFLINE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
