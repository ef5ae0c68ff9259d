"""Build the documentation site into `site/`: pages, their Markdown, `llms.txt` and JSON Schemas.

The Markdown and `llms.txt` are for models that read the documentation, the schemas for editors.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from satchel.formats.manifest_schemas import MANIFEST_SCHEMAS

ROOT = Path(__file__).parents[1]
ADDRESS = "https://satchel.dev/schemas"
FILES = {"toolkit": ["**/plugins/*/toolkit.yaml"], "satchel": ["satchel.toml"]}
"""Where an editor may expect a manifest of ours; a `plugin.json` may be that of another tool."""
DOCS, SITE = ROOT / "docs", ROOT / "site"
SUMMARY = (
    "Manages an agent's skills and tools: a Python library, a command line, "
    "an MCP server and client."
)


def llms_text(index: str) -> str:
    """Return `llms.txt` (llmstxt.org), made from the Markdown of the index page."""
    return f"# Satchel\n\n> {SUMMARY}\n\n{index[index.index('## ') :]}"


def write_schemas(folder: Path) -> None:
    """Write the JSON Schema of each manifest, and entries for the catalog of SchemaStore."""
    folder.mkdir()
    for name, make in MANIFEST_SCHEMAS.items():
        schema = {"$id": f"{ADDRESS}/{name}.json", **make()}
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2), "utf-8")
    entries = [
        {
            "name": f"Satchel ({patterns[-1].rpartition('/')[2]})",
            "description": f"{name} manifest of Satchel",
            "fileMatch": patterns,
            "url": f"{ADDRESS}/{name}.json",
        }
        for name, patterns in FILES.items()
    ]
    (folder / "schemastore.json").write_text(json.dumps(entries, indent=2), "utf-8")


def main() -> None:
    """Build everything; a warning of the builder ends it."""
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, check=True)
    for page in DOCS.rglob("*.md"):
        shutil.copyfile(page, SITE / page.relative_to(DOCS))
    (SITE / "llms.txt").write_text(llms_text((DOCS / "index.md").read_text("utf-8")), "utf-8")
    write_schemas(SITE / "schemas")


if __name__ == "__main__":
    main()
