"""Defuse what poses as a part of the prompt in texts of plugins and servers.

Headings of such texts stay readable, below ours. The rest is escaped as Markdown and XML do.
"""

import re
import unicodedata
from collections.abc import Container

from satchel.contracts.variable_places import fill_variables
from satchel.mixed_scripts import skeleton

HEADING = "About Tool Group"
"""How the heading of a group's notes begins."""
_LOWER = 2
"""By how many levels headings are lowered: those of prompts are of the first and second."""
_DEEPEST = 6

# Forms of "<" and "#" that look the same to a model.
_OPEN = "<\uff1c\ufe64\u2039\u3008\u27e8\u276e"
_HASHES = "#\uff03\ufe5f\u266f\u2317\u22d5\u29e3"
_ABOVE = "\u0300-\u036f"  # accents that are put on the letter before
_TAG = re.compile(
    rf"(?:[{_OPEN}]|&#0*60;|&#x0*3c;)"
    rf"(?=([\s/]*)([\w:{_ABOVE}-]{{1,40}}|[|!\uff5c]|[{_OPEN}]\s*sys\b))",
    re.IGNORECASE,
)
_FRAME = re.compile(
    # Ours; those that hosts and chat templates put around what others say; headings and comments.
    r"available[_-]skills|skills?|skill[_-]content|skill[_-]resources|tools?"
    r"|user_\w+|(start|end)_of_turn|bos|eos"
    r"|(antml:)?(system|assistant|developer|human|instruction|function|tool|invoke|parameter)"
    r"(s|[_-](calls?|results?|responses?|outputs?|use|prompt|message|reminder|instructions?))?"
    r"|h[1-6]?|[|!].*|<.*"
)
# Often stands for a value, such as in `<user>@<host>`.
_FRAME_AT_ITS_END = "user"
_INST = re.compile(r"\[(?=/?INST\])")
_ROLE_IN_BRACKETS = re.compile(
    r"[\s>*_~`]*[\[\u3010\u3014\uff3b]\s*/?\s*(system|human|assistant|developer|user)\s*"
    r"[\]\u3011\u3015\uff3d](?!\()"  # [User](address) is a link
)
_TURN = re.compile(r"[\s>*_~`]*(system|human|assistant|developer|user)[\s*_~`]*[:\u2236]")
_ROLE = re.compile(
    r"""[\s>*_~`{"',-]*role["'*_`]*\s*[:=\u2236]\s*["'*_`]*(system|human|assistant|developer|user)\b"""
)
_BEFORE_WORDS = re.compile(r"[\W_]*")
_HASH = rf"(?:[{_HASHES}][\ufe0f\u20e3]*|&#0*35;|&#x0*23;|&num;)"
# Before the marks: no letters but the labels of lists and tags, no row of a table, no backslash.
_BEFORE_HASHES = rf"(?:\d+[.)]|[a-z][.)]|</?\w{{1,20}}\s*/?>|\|(?!.*\|)|[^\w\\|&{_HASHES}])*+"
_ATX = re.compile(
    # No Markdown has more, but a model reads them as a heading, too.
    rf"({_BEFORE_HASHES})({_HASH}{{1,{_DEEPEST}}}|{_HASH}{{7,}}(?=\s+\w))(?=(\s|$)|[^\W\d_])",
    re.IGNORECASE,
)
_NO_PARAGRAPH = re.compile(rf"[-*+]\s|[|{_HASHES}]|\d+[.)]\s|$")
_CONTAINER = re.compile(r"([\s>]*)([-*+]\s+|\d+[.)]\s+)?")
_UNDERLINE = re.compile(r"([\s>]*)(=+|-+)\s*")
_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)")


def defused(text: str) -> str:
    """Return a text in which nothing can pose as a heading or a frame of the prompt.

    Headings are lowered by two levels. The tags of frames get `&lt;`, and lines like our headings
    or the turns of a conversation a backslash. A block of code that is left open is closed.
    """
    result = _defused(text)
    if "{{" in text and fill_variables(result, {}) != _defused(fill_variables(text, {})):
        # A variable may be empty: what is left must not pose as anything either.
        return _defused(text.replace("{{", "{ {"))
    return result


def without_tags(text: str, names: str) -> str:
    """Return a text in which no tag of these names, a pattern, can open or close."""
    pattern = re.compile(names)
    return _TAG.sub(lambda tag: "&lt;" if pattern.fullmatch(skeleton(tag[2])) else tag[0], text)


def _defused(text: str) -> str:
    lines: list[str] = []
    fence = ""
    opened = {_plain(tag[2]) for tag in _TAG.finditer(text) if "/" not in tag[1]}
    text = _TAG.sub(lambda tag: _without_frame(tag, opened), text)
    for line in _INST.sub(r"\\[", text).split("\n"):
        mark = _FENCE.match(line)
        if not fence and lines and (title := _title(lines[-1], line)):
            lines[-1] = title
            continue
        if mark and not fence:
            fence = mark[1] + mark[2]
        elif mark and mark[2].startswith(fence.lstrip()) and not mark[3].strip():
            fence = ""
        lines.append(_without_pose(line, is_code=bool(fence)))
    return "\n".join([*lines, fence] if fence else lines)


def _without_frame(tag: re.Match[str], opened: Container[str]) -> str:
    name = _plain(tag[2])
    # What closes nothing of the text could close what is around it.
    is_frame = _FRAME.fullmatch(name) or ("/" in tag[1] and name not in opened)
    is_frame = is_frame or (name == _FRAME_AT_ITS_END and "/" in tag[1])
    return "&lt;" if is_frame else tag[0]


def _plain(text: str) -> str:
    """Return the skeleton of a text without accents."""
    if text.isascii():
        return skeleton(text)
    return skeleton(re.sub(f"[{_ABOVE}]", "", unicodedata.normalize("NFD", text)))


def _without_pose(line: str, *, is_code: bool = False) -> str:
    plain = _plain(line)
    words = " ".join(re.findall(r"[^\W_]+", _BEFORE_WORDS.sub("", plain, count=1)[:100]))
    if words.startswith(HEADING.lower()):
        start = len(line) - len(line.lstrip())
        return f"{line[:start]}\\{line[start:]}"
    first = re.search(r"[^\W_]", line)
    # In code, `system:` is a key of YAML, and `[system]` a table of TOML.
    is_key = is_code and first is not None and first[0].islower()
    poses = (_TURN, _ROLE_IN_BRACKETS, _ROLE)
    if first and not is_key and any(pose.match(plain) for pose in poses):
        return f"{line[: first.start()]}\\{line[first.start() :]}"
    heading = _ATX.match(line)
    marks = re.findall(_HASH, heading[2], re.IGNORECASE) if heading else []
    if heading and (len(marks) > 1 or heading[3] is not None):  # `#1` is a number
        level = min(len(marks) + _LOWER, _DEEPEST)
        return f"{heading[1]}{'#' * level}{line[heading.end() :]}"
    return line


def _title(line: str, below: str) -> str:
    """Return a line as a heading without a pose if the one below underlines it, or `""`."""
    mark, container = _UNDERLINE.fullmatch(below), _CONTAINER.match(line)
    if not mark or not container:
        return ""
    quotes, label = container[1].count(">"), container[2] or ""
    words = line[container.end() :]
    # A line of `-` outside of a quote or an item is a rule across the page.
    is_inside = mark[1].count(">") == quotes and (not label or mark[1].endswith("  "))
    if _NO_PARAGRAPH.match(words) or not ("=" in mark[2] or is_inside):
        return ""
    before = f"{container[1] if quotes else ''}{label}"
    return _without_pose(f"{before}{'#' if '=' in mark[2] else '##'} {words}")
