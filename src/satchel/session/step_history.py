"""What a session remembers of its steps: little, and nothing that keeps a generation alive."""

from dataclasses import dataclass
from typing import Any
from weakref import ref

from satchel.groups import ViewDigest, stable_order
from satchel.session.rendered_step import RenderedStep, schemas
from satchel.shared import SharedView


class StepContent:
    """What the model is handed: a showing, and its tools in the order of the conversation."""

    __slots__ = ("__weakref__", "_schemas", "names", "showing")

    def __init__(self, showing: RenderedStep, names: tuple[str, ...]) -> None:
        self.showing, self.names = showing, names
        self._schemas: dict[str, list[dict[str, Any]]] = {}

    def schemas(self, scene: SharedView, dialect: str) -> list[dict[str, Any]]:
        """Return the schemas of the tools, each time the same list: copying takes long."""
        if (made := self._schemas.get(dialect)) is None:
            fresh = schemas(scene, self.showing, dialect, self.names)
            # The first counts: threads that ask at once get the same.
            made = self._schemas.setdefault(dialect, fresh)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHistory:
    """The steps until now."""

    seen: tuple[str, ...] = ()
    """The names of all tools that were ever shown, in the order in which they came."""
    sight: ViewDigest | None = None
    """What the last step showed."""
    last: "ref[StepContent] | None" = None
    """What it handed out, if that is still held."""
    names: tuple[str, ...] = ()
    """The names of the last showing, in its own order."""
    order: tuple[str, ...] = ()
    """The same names in the order of the conversation."""

    def step(self, showing: RenderedStep) -> tuple["StepHistory", StepContent]:
        """Return the past after one more step, and what that step hands out."""
        seen, order = self.seen, self.order
        if showing.names is not self.names:
            order = stable_order(showing.names, seen)
            seen = _joined(seen, order)
        handout = self.last() if self.last else None
        if handout is None or handout.showing is not showing or handout.names is not order:
            handout = StepContent(showing, order)
        return StepHistory(
            seen=seen, sight=showing.sight, last=ref(handout), names=showing.names, order=order
        ), handout


def _joined(seen: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    """Return all names that were ever shown; the same tuple if none of them is new."""
    if not seen:
        return order
    known = set(seen)
    news = tuple(name for name in order if name not in known)
    return (*seen, *news) if news else seen
