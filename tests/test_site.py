"""The documentation site has every page, and needs nothing from elsewhere."""

import json
import re
import runpy
from pathlib import Path

import pytest
import yaml

import satchel

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
LOADED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)'
    r'|<link rel="(?:stylesheet|icon)" href="([^"]+)'
)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def test_the_navigation_has_every_page_once():
    sections = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = [
        page
        for section in sections
        for page in (next(iter(section.values())) if isinstance(section, dict) else [section])
    ]
    assert sorted(pages) == PAGES


def test_the_index_or_that_of_its_folder_links_every_page():
    linked = {
        (page.parent / target).relative_to(DOCS).as_posix()
        for page in DOCS.rglob("index.md")
        for target in re.findall(r"\]\(([\w/-]+\.md)", page.read_text())
    }
    assert [page for page in PAGES if page not in linked] == ["index.md"]


def test_the_moving_pictures_show_what_their_pages_print():
    casts = runpy.run_path(str(ROOT / "tools/draw_casts.py"))["pictures"]()
    assert len(casts) >= 4
    for name, text in casts.items():
        assert (DOCS / f"images/{name}.svg").read_text("utf-8") == text, (
            f"run: python tools/draw_casts.py (for {name})"
        )
        assert text.count("<text") > 5


def test_lists_begin_after_an_empty_line():
    """Markdown of the site needs it; GitHub's does not."""
    faults = []
    for page in PAGES:
        text = re.sub(
            r"^ *```.*?^ *```", "", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL
        )
        for before, line in zip(text.splitlines(), text.splitlines()[1:], strict=False):
            starts = re.match(r"(?:[-*]|\d+\.) ", line)
            if starts and before.strip() and not re.match(r"\s*(?:[-*]|\d+\.) |\s+", before):
                faults.append(f"{page}: {line}")
    assert faults == []


@pytest.fixture
def site(built_site):
    return built_site


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site):
    outside = set()
    for page in site.rglob("*.html"):
        targets = {"".join(item) for item in LOADED.findall(page.read_text())}
        assert targets
        outside |= {target for target in targets if re.match(r"(?:https?:)?//", target)}
    assert outside == set()


@pytest.mark.slow
def test_models_find_the_markdown_of_every_page(site):
    llms = (site / "llms.txt").read_text()
    assert llms.startswith("# Satchel\n\n> Manages")
    for target in re.findall(r"\]\(([\w/.-]+\.md)", llms):
        if target != "reference/api.md":
            assert (site / target).read_text() == (DOCS / target).read_text()
    api = (site / "reference/api.md").read_text()
    assert [name for name in satchel.__all__ if f"\n## {name}\n" not in api] == []
    assert "Session.load_skill(self, name: " in api
    assert ":::" not in api


@pytest.mark.slow
def test_editors_find_the_schema_of_each_manifest(site):
    for entry in json.loads((site / "schemas/schemastore.json").read_text()):
        schema = json.loads((site / "schemas" / entry["url"].rpartition("/")[2]).read_text())
        assert schema["$id"] == entry["url"]
        assert entry["fileMatch"]


@pytest.mark.slow
def test_the_recorded_watch_prints_what_its_page_says():
    recorder = runpy.run_path(str(ROOT / "tools/record_session.py"))
    # Without the packages, which need an index.
    page = recorder["PAGE"].read_text("utf-8").partition("\n## 10.")[0]
    again = recorder["record"](page)
    assert recorder["without_times"](again) == recorder["without_times"](page), (
        "run: python tools/record_session.py"
    )
