"""Draw terminal sessions of the documentation as moving pictures, into `docs/images/`.

The lines come from pages that the tests follow, so a picture shows what the commands print.
"""

import re
import textwrap
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
CASTS = {
    "cast-watch": ("tutorial.md", "Watch it change", "Edits while satchel watch runs"),
    "cast-plugin": ("tutorial.md", "A first plugin", "A first plugin, and a call"),
    "cast-lock": ("how-to/lock-for-production.md", "A session", "Adding a skill, and locking it"),
    "cast-trust": ("how-to/trust-a-project.md", "See what a project contains", "Trusting a clone"),
}
"""Picture -> page, heading of the part that it shows, and title."""
COLUMNS, LINE, PAUSE = 100, 19, 0.5
STYLE = """
svg { background: #14171f; border-radius: 8px }
text { font: 13px ui-monospace, monospace; fill: #d5d9e4; white-space: pre }
.command { fill: #ffffff; font-weight: 600 } .file { fill: #8fa2ff; font-style: italic }
.bad { fill: #ff8a80 } .held { fill: #ffd166 } .good { fill: #7ddba3 }
@keyframes show { from { visibility: hidden } to { visibility: visible } }
text { animation: show 1ms both }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
"""
KINDS = {
    "command": r"\$ ",
    "file": r"\(you save ",
    "bad": r".*\berror\b",
    "held": r"(\d\S+ )?(stale|changed)\b",
    "good": r"(\d\S+ )?(recovered|added|loaded)\b",
}
FENCED = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)


def lines_of(page: str, heading: str) -> list[str]:
    """Return what a terminal shows in one part of a page; a saved file is one line."""
    text = (DOCS / page).read_text("utf-8")
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = []
    for language, title, block in FENCED.findall(part):
        if language in ("console", "text"):
            lines += block.splitlines()
        elif title:
            lines.append(f"(you save {title})")
    return lines


def kind_of(line: str) -> str:
    """Return the style of a line."""
    return next((kind for kind, pattern in KINDS.items() if re.match(pattern, line)), "")


def picture(title: str, lines: list[str]) -> str:
    """Return the picture: its lines appear one after the other, and stay."""
    rows, delay = [], 0.0
    for line in lines:
        delay += PAUSE * (2 if kind_of(line) in ("command", "file") else 1)
        for row in textwrap.wrap(line, COLUMNS, subsequent_indent="    ") or [""]:
            y = LINE * (len(rows) + 1) + 6
            rows.append(
                f'<text class="{kind_of(line)}" x="14" y="{y}" '
                f'style="animation-delay:{delay:.1f}s">{escape(row)}</text>'
            )
    height = LINE * (len(rows) + 1) + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {height}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"{''.join(rows)}</svg>\n"
    )


def pictures() -> dict[str, str]:
    """Return each picture by its name."""
    return {
        name: picture(title, lines_of(page, heading))
        for name, (page, heading, title) in CASTS.items()
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (DOCS / "images" / f"{name}.svg").write_text(text, "utf-8")
