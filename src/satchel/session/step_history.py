"""What a session remembers of its steps. It keeps no catalog alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from satchel.groups.group_activation import stable_order
from satchel.lazy_dataclass import dataclass
from satchel.session.rendered_step import schemas

if TYPE_CHECKING:
    from satchel.groups.view_digest import ViewDigest
    from satchel.session.rendered_step import RenderedStep
    from satchel.shared import SharedView


class StepContent:
    """A rendered step, with its tools in the order of the session."""

    __slots__ = ("__weakref__", "_schemas", "names", "rendered")

    def __init__(self, rendered: RenderedStep, names: tuple[str, ...]) -> None:
        self.rendered, self.names = rendered, names
        self._schemas: dict[str, list[dict[str, Any]]] = {}

    def schemas(self, shared_view: SharedView, dialect: str) -> list[dict[str, Any]]:
        """Return the schemas of the tools: always the same list, because copying is slow."""
        if dialect not in self._schemas:
            new = schemas(shared_view, self.rendered, dialect, self.names)
            self._schemas.setdefault(dialect, new)  # two threads get the same list
        return self._schemas[dialect]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepHistory:
    """What is known about the steps until now."""

    seen: tuple[str, ...] = ()
    """The names of all tools of all steps, in the order of their first use."""
    digest: ViewDigest | None = None
    """The digest of the last step."""
    last: ref[StepContent] | None = None
    """The content of the last step, if it is still in use."""
    names: tuple[str, ...] = ()
    """The tool names of the last step, in the order of registration."""
    order: tuple[str, ...] = ()
    """The same names in the order of the session."""

    def step(self, rendered: RenderedStep) -> tuple[StepHistory, StepContent]:
        """Return the history with one more step, and the content of that step."""
        seen, order = self.seen, self.order
        if rendered.names is not self.names:
            order = stable_order(rendered.names, seen)
            seen = _append_new(seen, order)
        content = self.last() if self.last else None
        if content is None or content.rendered is not rendered or content.names is not order:
            content = StepContent(rendered, order)
        return StepHistory(
            seen=seen, digest=rendered.digest, last=ref(content), names=rendered.names, order=order
        ), content


def _append_new(seen: tuple[str, ...], order: tuple[str, ...]) -> tuple[str, ...]:
    """Return `seen` with the new names of `order`; the same tuple if there are none."""
    if not seen:
        return order
    old = set(seen)
    new = tuple(name for name in order if name not in old)
    return (*seen, *new) if new else seen
