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
_HASHES = "#\uff03\ufe5f\u266f"
_TAG = re.compile(
    rf"[{_OPEN}](?=([\s/]*)([\w:-]{{1,40}}|[|!\uff5c]|[{_OPEN}]\s*sys\b))", re.IGNORECASE
)
_FRAME = re.compile(
    # Ours; those that hosts and chat templates put around what others say; headings and comments.
    r"available_skills|skills?|skill_content|skill_resources|tools?"
    r"|(antml:)?(system|assistant|developer|human|instruction|function|tool|invoke|parameter)"
    r"(s|[_-](calls?|results?|responses?|outputs?|use|prompt|message|reminder|instructions?))?"
    r"|h[1-6]?|[|!].*|<.*"
)
# Often stands for a value, such as in `<user>@<host>`.
_FRAME_AT_ITS_END = "user"
_INST = re.compile(r"\[(?=/?INST\])")
_TURN = re.compile(r"\s*(system|human|assistant|developer)\s*:")
_BEFORE_WORDS = re.compile(r"[\W_]*")
_ATX = re.compile(rf"((?:[\s>]|[-*+]\s|\d+[.)]\s)*)([{_HASHES}]{{1,{_DEEPEST}}})(?=\s|$)")
_NO_PARAGRAPH = re.compile(rf"\s*([-*+>|{_HASHES}]|\d+[.)]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*")
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
        if not fence and lines and _UNDERLINE.fullmatch(line) and _is_paragraph(lines[-1]):
            lines[-1] = _without_pose(f"{'#' if '=' in line else '##'} {lines[-1].lstrip()}")
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
    start = len(line) - len(line.lstrip())
    is_turn = _TURN.match(plain) and not line[start].islower()  # `system:` is a key of YAML
    if words.startswith(HEADING.lower()) or is_turn:
        return f"{line[:start]}\\{line[start:]}"
    if heading := _ATX.match(line):
        level = min(len(heading[2]) + _LOWER, _DEEPEST)
        return f"{heading[1]}{'#' * level}{line[heading.end() :]}"
    return line


def _is_paragraph(line: str) -> bool:
    return not _NO_PARAGRAPH.match(line)
