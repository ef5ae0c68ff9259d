"""What a host has to report of its workers and its redis, as diagnostics and in the log."""

import logging

from redis.exceptions import AuthenticationError, NoPermissionError

from satchel.diagnostics import Diagnostic, Where, make_diagnostic
from satchel.tools import ToolCall

_log = logging.getLogger("satchel.remote")


class RemoteFaults:
    """The newest diagnostic of each kind; each is logged when it is new."""

    def __init__(self, name: str) -> None:
        self._where = Where(f"remote:{name}")
        self._current: dict[str, Diagnostic] = {}

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics, the oldest first."""
        return tuple(self._current.values())

    def unreachable(self, problem: BaseException) -> None:
        """Report that redis does not answer, until it does."""
        reason, fix = _reason_and_fix(problem)
        self._report("remote-unreachable", f"redis cannot be reached: {reason}", fix)

    def reachable(self) -> None:
        """Report that redis answers."""
        if self._current.pop("remote-unreachable", None):
            _log.warning("redis can be reached again")

    def no_worker(self, call: ToolCall) -> None:
        """Report that no worker can run a call."""
        self._report(
            "remote-no-worker",
            f"no worker runs {call.name} of version {call.plugin_digest[:12]}",
            "Start a worker with the same files, key and name as this host, and read what it"
            " prints; or reload the host.",
        )

    def other_key(self, call: ToolCall) -> None:
        """Report that only workers with another key have the version of a call."""
        self._report(
            "remote-no-worker",
            f"the workers that have {call.name} of version {call.plugin_digest[:12]} have another"
            " key than this host",
            "Give this host and its workers the same key.",
        )

    def refused(self, reason: str) -> None:
        """Report a message that was not accepted."""
        self._report(
            "remote-message-refused",
            f"a message was refused: {reason}",
            "Give all hosts and workers the same key and version; find out who else writes.",
        )

    def lost(self, call: ToolCall) -> None:
        """Report a call that redis does not have any more."""
        self._report(
            "remote-call-lost",
            f"redis has lost a call of {call.name}",
            "Let redis keep its data, without eviction.",
        )

    def may_have_run(self, call: ToolCall) -> None:
        """Report a call that may or may not have run."""
        self._report(
            "remote-may-have-run",
            f"the answer of a call of {call.name} is lost; it may have run",
            "Find out why its workers end or hang: their logs, memory, and the tool itself.",
        )

    def state_lost(self, call: ToolCall, reason: str) -> None:
        """Report changes of the state that were lost."""
        self._report(
            "remote-state-lost",
            f"changes of the state by {call.name} or another call are lost: {reason}",
            "Let tools that change the same key run one after the other, and keep only JSON in it.",
        )

    def _report(self, code: str, message: str, fix: str) -> None:
        diagnostic = make_diagnostic(code, self._where, message, fix)
        if self._current.get(code) != diagnostic:
            _log.warning("%s", diagnostic)
        self._current.pop(code, None)
        self._current[code] = diagnostic


def _reason_and_fix(problem: BaseException) -> tuple[str, str]:
    """Say why redis does not answer. The text of an exception may contain a secret."""
    if isinstance(problem, AuthenticationError):
        return (
            "it refuses the user or the password",
            "Correct them in the URL, with %2F for / and %40 for @, or in the ACL of redis.",
        )
    if isinstance(problem, NoPermissionError):
        return (
            "its ACL forbids the user a key, a channel or a command",
            "Allow ~satchel:* ~NAME:* &* +@all -@dangerous, where NAME is the 'name' of the hosts.",
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(problem):
        return (
            "its certificate is not trusted",
            "Add ?ssl_ca_certs=FILE to the URL, and use a host name that is in the certificate.",
        )
    name = type(problem).__name__
    return name, "Start redis, and check the URL, its files, the network and the password."
