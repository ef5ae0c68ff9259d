"""What the user allows for a project, and the check before each start of a server in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from shlex import quote
from typing import TYPE_CHECKING

from satchel.configuration.projects import Project, TrustLevel
from satchel.diagnostics import Where, make_diagnostic
from satchel.lazy_dataclass import dataclass
from satchel.sources.search_roots import ScriptRule

if TYPE_CHECKING:
    from satchel.diagnostics import Diagnostic
    from satchel.files.file_reader import StampedPath
    from satchel.trust.code_units import CodeUnit
    from satchel.trust.runnable_files import CodeProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the user allows for one project now."""

    project: Project
    level: TrustLevel = TrustLevel.NONE
    units: Mapping[str, CodeUnit] | None = None
    """The trusted code; `None` if all content is trusted."""
    variables: frozenset[str] = frozenset()
    diagnostics: tuple[Diagnostic, ...] = ()
    stamp: StampedPath | None = None
    """The stamp of the record, if that decides."""

    @property
    def script_rule(self) -> ScriptRule:
        """Return whether scripts of its skills may be run."""
        if self.level is not TrustLevel.CODE:
            return ScriptRule.NEVER
        return ScriptRule.RUN if self.units is None else ScriptRule.COMPARE

    def allows(self, unit: CodeUnit | None) -> bool:
        """Return whether code may run as it is now."""
        if unit is None or self.level is not TrustLevel.CODE or self.units is None:
            return unit is None or self.level is TrustLevel.CODE
        trusted = self.trusted(unit.key)
        return trusted is not None and not unit.problem and trusted.digest == unit.digest

    def trusted(self, key: str) -> CodeUnit | None:
        """Return a unit as it was trusted."""
        return (self.units or {}).get(key)

    def trusts(self, key: str) -> bool:
        """Return whether some version of the code of a unit is trusted."""
        return self.level is TrustLevel.CODE and (self.units is None or key in self.units)

    def refusal(
        self, path: str, content: str, unit: CodeUnit | None = None, *, instead: str
    ) -> Diagnostic:
        """Return the diagnostic of code that is not used; `content` ends with a verb.

        `instead` says what is used while the code waits.
        """
        command = f"satchel trust {quote(self.project.folder)}"
        if self.level is not TrustLevel.CODE:
            message = f"{content} not used: only the data of its project is trusted"
            return make_diagnostic("code-untrusted", Where(path), message, command)
        why: str | CodeProblem = "it is new since you trusted it"
        if unit is None:
            why = "it was gone when you trusted the project"
        elif unit.problem:
            why = unit.problem
        elif trusted := self.trusted(unit.key):
            why = unit.change(trusted)
        return self._held(path, content, why, instead)

    def _held(
        self, path: str, content: str, why: str | CodeProblem, instead: str, also: str = ""
    ) -> Diagnostic:
        command = f"satchel trust {quote(self.project.folder)}"
        text = why if isinstance(why, str) else f"it cannot be compared completely: {why.text}"
        fix = f"{command} --diff, then {command}{also}" if isinstance(why, str) else why.fix
        message = f"{content} not used: {text}; {instead}"
        return make_diagnostic("code-held", Where(path), message, fix)

    def refusal_to_start(self, server: str, path: str, change: str | CodeProblem) -> Diagnostic:
        """Return why a server is not started: a file it may use changed, or a problem."""
        also = "; or declare the server in your own satchel.toml"
        return self._held(path, f"MCP server {server!r} is", change, "it is not started", also)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCheck:
    """Compares what a server of a project may run with what is trusted, before each start."""

    trusted: tuple[CodeUnit | None, ...] = field(hash=False)
    change: Callable[[], str | CodeProblem] = field(compare=False)
    """Returns what changed, `""` if nothing did."""
    refusal: Callable[[str | CodeProblem], Diagnostic] = field(compare=False)

    def __call__(self) -> Diagnostic | None:
        """Return why the server must not be started, `None` if it may be."""
        return self.refusal(change) if (change := self.change()) else None


def read_grant(project: Project, state_folder: str, before: Grant | None) -> Grant:
    """Read what the user allows for a project; `before` is returned if its record is unchanged."""
    variables = frozenset(project.variables)
    if project.trust is not None:
        return Grant(project=project, level=TrustLevel(project.trust), variables=variables)
    from satchel.trust.trust_record import TrustStore  # lazy: needed only with projects

    store = TrustStore(state_folder)
    if before and (before.project, before.stamp) == (project, store.stamp(project.folder)):
        return before
    reading = store.read(project.folder)
    grant = Grant(project=project, diagnostics=reading.diagnostics, stamp=reading.stamp)
    if (record := reading.record) is None:
        return grant
    return replace(
        grant,
        level=record.level,
        units=record.units,
        variables=variables | frozenset(record.variables),
    )
