"""Build the documentation site into `site/`: pages, their Markdown, `llms.txt` and JSON Schemas.

The Markdown and `llms.txt` are for models that read the documentation, the schemas for editors.
"""

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import satchel
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


def search_script(index: str, worker: str) -> str:
    """Return `search.js`, which the theme loads from disk in place of `search.json`."""
    return f"var __index = {index}, __worker = {json.dumps(worker)};\n"


def api_markdown() -> str:
    """Return the Python API as Markdown: each public name with its signature and docstring."""
    parts = ["# Python API\n"]
    for name in sorted(satchel.__all__):
        value = getattr(satchel, name)
        parts.append(_described("##", name, value))
        if inspect.isclass(value):
            members = [(key, getattr(value, key)) for key in sorted(vars(value)) if key[0] != "_"]
            parts += [
                _described("###", f"{name}.{key}", member)
                for key, member in members
                if callable(member) or isinstance(member, property)
            ]
    return "\n".join(parts)


def _described(level: str, name: str, value: object) -> str:
    try:
        signature = f"\n```python\n{name}{inspect.signature(value)}\n```\n"  # type: ignore[arg-type]
    except (TypeError, ValueError):  # no callable
        signature = ""
    return f"{level} {name}\n{signature}\n{inspect.getdoc(value) or ''}\n"


def main() -> None:
    """Build everything; a warning of the builder ends it."""
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, check=True)
    for page in DOCS.rglob("*.md"):
        shutil.copyfile(page, SITE / page.relative_to(DOCS))
    (SITE / "reference/api.md").write_text(api_markdown(), "utf-8")
    (worker,) = (SITE / "assets/javascripts/workers").glob("search.*.js")
    index = (SITE / "search.json").read_text("utf-8")
    (SITE / "search.js").write_text(search_script(index, worker.read_text("utf-8")), "utf-8")
    (SITE / "llms.txt").write_text(llms_text((DOCS / "index.md").read_text("utf-8")), "utf-8")
    write_schemas(SITE / "schemas")


if __name__ == "__main__":
    main()
