"""Complete the `satchel` commands in messages, so that they can be pasted as they are."""

import re
import shlex
from collections.abc import Sequence

_READING = frozenset({"call", "doctor", "list", "show"})
"""Those of the commands below that compare with a lock file, too."""
COMPLETED = _READING | {
    *("config set", "disable", "enable", "lock"),
    *("mcp approve", "mcp list", "mcp login", "mcp logout", "mcp tools"),
}
"""The commands in messages that read the sources of the options."""
_COMMAND = re.compile(r"(?<![\w.-])satchel ((?:config|mcp) [a-z]+|[a-z]+)(?![\w-])")


def completed(text: str, options: Sequence[str]) -> str:
    """Return a message whose commands select the sources that these options select."""
    return _COMMAND.sub(lambda match: _with_options(match, options), text) if options else text


def _with_options(match: re.Match[str], options: Sequence[str]) -> str:
    if match[1] not in COMPLETED:
        return match[0]
    left_out = set() if match[1] in _READING else {"--locked", "--frozen"}
    if match[1] in {"enable", "disable"}:
        left_out.add("--project")  # there it selects the file that is changed
    options = [option for option in options if option not in left_out]
    return " ".join((match[0], shlex.join(options))).rstrip()
