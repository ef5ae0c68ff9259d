"""Build the documentation site into `site/`: the pages, their Markdown, and `llms.txt`.

The Markdown and `llms.txt` are for models that read the documentation.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS, SITE = ROOT / "docs", ROOT / "site"
SUMMARY = "Manages an agent's skills and tools: a Python library, a command line, an MCP server and client."


def llms_text(index: str) -> str:
    """Return `llms.txt` (llmstxt.org), made from the Markdown of the index page."""
    return f"# Satchel\n\n> {SUMMARY}\n\n{index[index.index('## ') :]}"


def main() -> None:
    """Build everything; a warning of the builder ends it."""
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, check=True)
    for page in DOCS.rglob("*.md"):
        shutil.copyfile(page, SITE / page.relative_to(DOCS))
    (SITE / "llms.txt").write_text(llms_text((DOCS / "index.md").read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
