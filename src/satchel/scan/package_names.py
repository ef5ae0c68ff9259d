"""Find packages that are installed whose names are nearly those of well-known ones."""

import re
from collections.abc import Iterable, Iterator

from satchel.scan.lexicon import Span

_INSTALLS = re.compile(
    r"\b(?:(?:pip3?|uv|pip|poetry|pipenv|pdm|conda|npm|pnpm|yarn|bun|cargo|gem)\s+"
    r"(?:install|add|i|download)|pipx\s+install)\s([^\n`;&|#]{1,300})"
    r"|\b(?:pipx\s+run|npx|uvx|bunx)\s+(?:-y\s+)?([\w.-]+)(?=\s|@|$)"
    r"|^[ \t]*([A-Za-z][\w.-]+)\s*[=~>]=\s*\d|\"([\w.-]+)\"\s*:\s*\"[~^]?\d+\.\d",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w./:@=-])[A-Za-z][\w.-]{3,40}(?=$|[\s\"',=<>~!@\[)\]])")


class PackageNames:
    """Names of well-known packages."""

    def __init__(self, names: Iterable[str], similar: Iterable[str]) -> None:
        """`similar` names resemble well-known ones and are no mistakes."""
        self._honest = {*names, *similar}
        self._shortened = {short for name in names for short in _shortened(name)}

    def find(self, text: str) -> Iterator[Span]:
        """Yield where an installed package has a name that is one letter away from one of these."""
        for command in _INSTALLS.finditer(text):
            for match in _NAME.finditer(text, *command.span(command.lastindex or 0)):
                name = match[0].lower().replace("_", "-")
                if name not in self._honest and not self._shortened.isdisjoint(_shortened(name)):
                    yield command.start(), match.end()


def _shortened(name: str) -> set[str]:
    """Return a name, and what is left without one of its letters: names that share one are near."""
    return {name, *(name[:index] + name[index + 1 :] for index in range(len(name)))}
