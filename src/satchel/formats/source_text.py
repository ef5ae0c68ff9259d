"""The source of a skill or plugin as text, without what may be a password or token."""

import re

_KNOWN_USER = re.compile(
    r"((?:git\+)?https://)([^/?#@:]+)@(?=[^/?#@]+/(?:[^?#]*/)?\2(?:[/?#@\s]|$))"
)
_AFTER_SCHEME = re.compile(
    r"(?P<user>[^/]*@)?(?P<place>(?:[\w.-]*|\[[\da-fA-F:.]+\])(?::\d+)?(?:/[^?#]*)?)"
    r"(?P<query>\?[^#\s]*)?(?P<end>(?:[#\s].*)?)",
    re.DOTALL,
)
_KNOWN_END = re.compile(r"(?:#(?:subdirectory|sha256)=[^&]*|\s.*)?", re.DOTALL)
_MASK = "***"


def without_known_user(source: str) -> str:
    """Return a source without a user name that is also a part of its path, which is no secret.

    Such as the one in `https://acme@dev.azure.com/acme/project`.
    """
    match = _KNOWN_USER.match(source)
    return match[1] + source[match.end() :] if match else source


def masked_source(source: str) -> str:
    """Return a source in which `***` stands for what may be a password or token.

    New sources with one are refused, but an older version, or its user, may have recorded it.
    """
    source = without_known_user(source)
    scheme, separator, rest = source.partition("://")
    if not separator or "/" in scheme:
        return source
    if not (match := _AFTER_SCHEME.fullmatch(rest)):
        return f"{scheme}://{_MASK}"
    user = match["user"] or ""
    if ":" in user:
        user = f"{_MASK}:{_MASK}@"
    elif user and not scheme.endswith("ssh"):
        user = f"{_MASK}@"
    query = f"?{_MASK}" if match["query"] else ""
    end = match["end"] if _KNOWN_END.fullmatch(match["end"]) else f"#{_MASK}"
    return f"{scheme}://{user}{match['place']}{query}{end}"
