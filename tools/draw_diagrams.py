"""Draw the diagrams of the documentation into `docs/images/`."""

from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs" / "images"
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1d2330; text-anchor: middle }
.note { font-size: 12px; fill: #5b6478 }
rect { fill: #eef2ff; stroke: #4f5fd0; rx: 8px }
rect.good { fill: #e8f7ee; stroke: #2b8a55 }
rect.bad { fill: #fdecec; stroke: #c0392b }
path { stroke: #5b6478; fill: none; stroke-width: 1.5; marker-end: url(#head) }
marker path { fill: #5b6478; stroke: none; marker-end: none }
@media (prefers-color-scheme: dark) {
  svg { background: #14171f } text { fill: #e6e9f2 } .note { fill: #a3abbf }
  rect { fill: #232a4d } rect.good { fill: #173525 } rect.bad { fill: #43201f }
}
"""
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
)
WIDTH, HEIGHT = 150, 56


@dataclass(frozen=True, kw_only=True)
class Box:
    """A box with a title and a note; `x` and `y` are its middle, in pixels."""

    x: int
    y: int
    title: str
    note: str = ""
    kind: str = ""

    def svg(self) -> str:
        """Return the box."""
        left, top = self.x - WIDTH // 2, self.y - HEIGHT // 2
        up = 5 if not self.note else -2
        lines = [
            f'<rect class="{self.kind}" x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>',
            f'<text x="{self.x}" y="{self.y + up}">{escape(self.title)}</text>',
        ]
        if self.note:
            note = f'<text class="note" x="{self.x}" y="{self.y + 16}">{escape(self.note)}</text>'
            lines.append(note)
        return "".join(lines)


def arrow(start: Box, end: Box, text: str = "") -> str:
    """Return an arrow between the edges of two boxes, with a text above it."""
    if abs(end.x - start.x) > abs(end.y - start.y):
        side = WIDTH // 2 if end.x > start.x else -WIDTH // 2
        points = (start.x + side, start.y, end.x - side, end.y)
    else:
        side = HEIGHT // 2 if end.y > start.y else -HEIGHT // 2
        points = (start.x, start.y + side, end.x, end.y - side)
    x1, y1, x2, y2 = points
    middle = (x1 + x2) // 2 - (28 if y1 != y2 else 0)  # beside a line that slopes
    height = (y1 + y2) // 2 + (16 if y2 > y1 else -8)
    label = f'<text class="note" x="{middle}" y="{height}">{escape(text)}</text>'
    return f'<path d="M{x1} {y1} {x2} {y2}"/>' + (label if text else "")


def diagram(name: str, title: str, boxes: list[Box], arrows: list[str]) -> None:
    """Write one picture; `title` is read aloud by screen readers."""
    width = max(box.x for box in boxes) + WIDTH // 2 + 10
    height = max(box.y for box in boxes) + HEIGHT // 2 + 10
    parts = "".join([*arrows, *(box.svg() for box in boxes)])
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"{HEAD}{parts}</svg>\n"
    )
    (IMAGES / f"{name}.svg").write_text(svg, "utf-8")


def data_flow() -> None:
    """Draw how folders and packages become a prompt and a call."""
    sources = Box(x=85, y=40, title="providers", note="folders, packages, MCP")
    reconcile = Box(x=285, y=40, title="reconcile", note="conflicts, last good")
    catalog = Box(x=485, y=40, title="catalog", note="generation N, frozen", kind="good")
    step = Box(x=685, y=40, title="step of a session", note="groups, one request")
    prompt = Box(x=585, y=150, title="prompt, schemas", note="to the model")
    call = Box(x=785, y=150, title="call", note="middleware, runner")
    arrows = [
        arrow(sources, reconcile, "scan"),
        arrow(reconcile, catalog, "swap"),
        arrow(catalog, step, "view"),
        arrow(step, prompt),
        arrow(step, call),
    ]
    boxes = [sources, reconcile, catalog, step, prompt, call]
    diagram(
        "data-flow", "From folders to the model: providers, reconcile, catalog, step", boxes, arrows
    )


def reload() -> None:
    """Draw what happens to a good and to a broken edit."""
    edit = Box(x=85, y=95, title="an edit", note="an event is a hint")
    build = Box(x=285, y=95, title="build beside", note="read, import, check")
    good = Box(x=525, y=40, title="publish", note="one assignment", kind="good")
    bad = Box(x=525, y=150, title="keep the last good", note="stale + diagnostic", kind="bad")
    drain = Box(x=725, y=40, title="old version", note="ends its calls, is freed")
    fixed = Box(x=725, y=150, title="next good edit", note="recovered")
    arrows = [
        arrow(edit, build),
        arrow(build, good, "it works"),
        arrow(build, bad, "it fails"),
        arrow(good, drain),
        arrow(bad, fixed),
    ]
    diagram("reload", "A good edit is published; a broken one leaves the last good version",
            [edit, build, good, bad, drain, fixed], arrows)  # fmt: skip


def call() -> None:
    """Draw the way of a call."""
    names = [
        ("plan", "all calls of a message"),
        ("arguments", "validated"),
        ("middleware", "approval, limits"),
        ("runner", "loop or thread"),
        ("result", "blocks, truncated"),
    ]
    boxes = [Box(x=85 + 200 * n, y=40, title=a, note=b) for n, (a, b) in enumerate(names)]
    arrows = [arrow(*pair) for pair in pairwise(boxes)]
    diagram("call", "A call: plan, arguments, middleware, runner, result", boxes, arrows)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    data_flow()
    reload()
    call()
