"""Defuse what poses as a part of the prompt in texts of plugins and servers.

Headings of such texts stay readable, below ours. The rest is escaped as Markdown and XML do.
"""

import re

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
_TAG = re.compile(
    rf"[{_OPEN}](?=([\s/]*)([\w:-]{{1,40}}|[|!\uff5c]|[{_OPEN}]\s*sys\b))", re.IGNORECASE
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
_TURN = re.compile(r"[\s>*_~`]*(system|human|assistant|developer|user)[\s*_~`]*[:\u2236]")
_BEFORE_WORDS = re.compile(r"[\W_]*")
_HASH = rf"(?:[{_HASHES}][\ufe0f\u20e3]*|&#0*35;|&#x0*23;|&num;)"
# Before the marks: no letters but the labels of lists and tags, no row of a table, no backslash.
_BEFORE_HASHES = rf"(?:\d+[.)]|[a-z][.)]|</?\w{{1,20}}\s*/?>|\|(?!.*\|)|[^\w\\|&{_HASHES}])*+"
_ATX = re.compile(rf"({_BEFORE_HASHES})({_HASH}{{1,{_DEEPEST}}})(?=(\s|$)|[^\W\d_])", re.IGNORECASE)
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
    for line in _INST.sub(r"\\[", _TAG.sub(_without_frame, text)).split("\n"):
        mark = _FENCE.match(line)
        if not fence and lines and (title := _title(lines[-1], line)):
            lines[-1] = title
            continue
        if mark and not fence:
            fence = mark[1] + mark[2]
        elif mark and mark[2].startswith(fence.lstrip()) and not mark[3].strip():
            fence = ""
        lines.append(_without_pose(line))
    return "\n".join([*lines, fence] if fence else lines)


def _without_frame(tag: re.Match[str]) -> str:
    name = skeleton(tag[2])
    is_frame = _FRAME.fullmatch(name) or (name == _FRAME_AT_ITS_END and "/" in tag[1])
    return "&lt;" if is_frame else tag[0]


def _without_pose(line: str) -> str:
    plain = skeleton(line)
    words = " ".join(re.findall(r"[^\W_]+", _BEFORE_WORDS.sub("", plain, count=1)[:100]))
    if words.startswith(HEADING.lower()):
        start = len(line) - len(line.lstrip())
        return f"{line[:start]}\\{line[start:]}"
    first = re.search(r"[^\W_]", line)
    if first and not first[0].islower() and _TURN.match(plain):  # `system:` is a key of YAML
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
