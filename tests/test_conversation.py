"""The scripted conversation of the documentation goes exactly as its page says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "conversation.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_what_is_said_is_what_the_page_prints(tmp_path):
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks("python")))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (printed,) = blocks("text")
    assert done.stdout.replace(str(tmp_path), "FOLDER").strip() == printed.strip()


def test_the_model_does_all_that_a_session_offers_it():
    (script,) = re.findall(r"^SCRIPT = \[\n(.*?)^\]", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert re.findall(r'ToolCall\("(\w+)"', script) == [
        "search_tools",
        "reset_equipped_tools",
        "load_skill",
        "read_skill_file",
        "find_train",
        "reset_equipped_tools",
    ]
