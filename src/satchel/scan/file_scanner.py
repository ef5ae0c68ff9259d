"""Look through the files of a folder for what the rules describe."""

import base64
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import suppress

from satchel.lazy_dataclass import dataclass
from satchel.scan.scan_rules import KNOWN_INSTALLERS, SCAN_RULES

_MAX_BYTES = 4_000_000
"""The beginning of a file that is read."""
_MAX_FILES = 50_000
_MIN_DECODED = 16
"""Characters of a hidden text that is looked at."""
_SHOWN = 160
"""Characters of the text that a finding shows."""
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_PROGRAMS = (
    b"\x7fELF",
    b"MZ",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xfe\xed\xfa",
    b"\x00asm",
)
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e01ef]|(?<!^)\ufeff|(?<=[!-~])[\u200c\u200d\u2800](?=[!-~])"
    "|[\ufe00-\ufe0e]{2,}"
)
_SOFT_HYPHEN_LIKE = re.compile("[\u00ad\u200b\u200e\u200f\ufe0f]")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}|(?:\\x[0-9a-fA-F]{2}){12,}|[0-9a-fA-F]{60,}")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFinding:
    """A place that a reviewer should look at."""

    rule: str
    path: str
    line: int
    """From 1; 0 for a whole file."""
    text: str
    """The text there, on one line, with invisible characters written as escapes."""

    @property
    def meaning(self) -> str:
        """Return what the rule looks for."""
        return SCAN_RULES[self.rule].meaning


def scan_path(path: str | os.PathLike[str]) -> Iterator[ScanFinding]:
    """Yield what a file, or all files of a folder, have that the rules describe.

    Nothing is imported or run. Links are named and not followed. Version control, caches and
    installed packages are left out.
    """
    top = os.fspath(path)
    if not os.path.isdir(top):
        yield from _scan_file(top, os.path.dirname(os.path.realpath(top)))
        return
    yield from _scan_name(top)
    count = 0
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in folders:
            place = os.path.join(folder, name)
            if os.path.islink(place):
                yield from _scan_file(place, os.path.realpath(top))
            yield from _scan_name(place)
        for name in sorted(files):
            count += 1
            if count > _MAX_FILES:
                return
            yield from _scan_name(os.path.join(folder, name))
            yield from _scan_file(os.path.join(folder, name), os.path.realpath(top))


def scan_text(text: str, path: str = "") -> Iterator[ScanFinding]:
    """Yield what a text has that the rules describe, each rule once a line."""
    yield from _hidden_characters(text, path)
    yield from _mixed_scripts(text, path)
    plain = _plain(text)
    seen: set[tuple[str, int]] = set()
    for part, offset in (*((plain, 0),), *_decoded(plain)):
        for rule_id, start, found in _matches(part):
            line = plain.count("\n", 0, start if offset == 0 else offset) + 1
            if (rule_id, line) not in seen:
                seen.add((rule_id, line))
                yield _finding(rule_id, path, line, found)


def _matches(text: str) -> Iterator[tuple[str, int, str]]:
    for rule in SCAN_RULES.values():
        for pattern in rule.patterns:
            for match in pattern.finditer(text):
                line = text[match.start() :].partition("\n")[0]
                if rule.id == "fetch-and-run" and KNOWN_INSTALLERS.search(line):
                    continue
                yield rule.id, match.start(), match.group()


def _plain(text: str) -> str:
    """Return a text as a shell or a model reads it: without invisible characters and joins."""
    text = _HIDDEN.sub("", text)
    text = unicodedata.normalize("NFKC", text) if not text.isascii() else text
    return re.sub(r"\\\r?\n[ \t]*", " ", text.replace("\r\n", "\n"))


def _decoded(text: str) -> Iterator[tuple[str, int]]:
    """Yield the texts that are hidden in long encoded words, with their places."""
    for match in _ENCODED.finditer(text):
        if match.start() == 0:
            continue
        for decoded in _readings(match.group()):
            if sum(map(_is_readable, decoded)) > 0.9 * len(decoded) >= _MIN_DECODED:
                yield _plain(decoded), match.start()


def _readings(word: str) -> Iterator[str]:
    with_hex = word.replace("\\x", "")
    with suppress(ValueError):
        yield bytes.fromhex(with_hex).decode()
    padded = word.rstrip("=") + "=" * (-len(word.rstrip("=")) % 4)
    with suppress(ValueError):  # also `binascii.Error`
        yield base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True).decode()


def _is_readable(letter: str) -> bool:
    return letter.isprintable() or letter in "\n\r\t"


def _hidden_characters(text: str, path: str) -> Iterator[ScanFinding]:
    lines: set[int] = set()
    for match in _HIDDEN.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if line in lines or _is_harmless(text, match):
            continue
        lines.add(line)
        start, end = max(match.start() - 40, 0), match.end() + 40
        yield _finding("hidden-characters", path, line, text[start:end])


def _is_harmless(text: str, match: re.Match[str]) -> bool:
    """Return whether a character is one that editors leave behind, alone, between words."""
    if not _SOFT_HYPHEN_LIKE.fullmatch(match.group()):
        return _is_flag(text, match.start())
    before, after = text[max(match.start() - 1, 0) : match.start()], text[match.end() :][:1]
    return not (before.isascii() and before.isalnum() and after.isascii() and after.isalnum()) and (
        len(_HIDDEN.findall(text[max(match.start() - 20, 0) : match.end() + 20])) == 1
    )


def _is_flag(text: str, place: int) -> bool:
    """Return whether a tag character belongs to the flag of a region, such as Scotland."""
    start = place
    while start > 0 and "\U000e0020" <= text[start] <= "\U000e007f":
        start -= 1
    return text[start] == "\U0001f3f4"


def _mixed_scripts(text: str, path: str) -> Iterator[ScanFinding]:
    if text.isascii():
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.isascii():
            continue
        is_name = re.match(r"\s*[\"']?name[\"']?\s*:", line) is not None
        for word in _WORD.findall(line):
            if not word.isascii() and _is_mixed(word, is_name=is_name):
                yield _finding("mixed-scripts", path, number, line)
                break


def _scan_name(path: str) -> Iterator[ScanFinding]:
    name = os.fsencode(os.path.basename(path)).decode("utf-8", "replace")
    if name.isascii():
        return
    if _HIDDEN.search(name):
        yield _finding("hidden-characters", path, 0, name)
    if any(_is_mixed(word, is_name=True) for word in _WORD.findall(name)):
        yield _finding("mixed-scripts", path, 0, name)


def _is_mixed(word: str, *, is_name: bool) -> bool:
    """Return whether Latin letters stand beside look-alikes; in names, also Greek ones."""
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in word}
    strange = {"CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL"}
    strange |= {"GREEK"} if is_name else set()
    if is_name and scripts & {"FULLWIDTH", "MATHEMATICAL"}:
        return True
    return "LATIN" in scripts and bool(scripts & strange)


def _scan_file(path: str, root: str) -> Iterator[ScanFinding]:
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            target = os.path.realpath(path)
            if os.path.commonpath([target, root]) != root:
                yield _finding("leaves-folder", path, 0, f"a link to {os.readlink(path)}")
            return
        if not stat.S_ISREG(status.st_mode):
            yield _finding("binary-file", path, 0, "not a regular file")
            return
        if status.st_nlink > 1 and not path.endswith(".pyc"):
            yield _finding("leaves-folder", path, 0, "a file with several hard links")
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            yield _finding("binary-file", path, 0, "a file that runs with the rights of its owner")
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
    except (OSError, ValueError):
        return
    if data.startswith(_PROGRAMS):
        yield _finding("binary-file", path, 0, "a compiled program")
    elif b"\x00" not in data[:8_000]:
        yield from scan_text(data.decode("utf-8-sig", "replace"), path)


def _finding(rule: str, path: str, line: int, text: str) -> ScanFinding:
    shown = "".join(map(_escaped, " ".join(text.split())[:_SHOWN]))
    return ScanFinding(rule=rule, path=path, line=line, text=shown)


def _escaped(letter: str) -> str:
    is_shown = letter.isprintable() and not _HIDDEN.fullmatch(letter)
    return letter if is_shown else f"\\u{{{ord(letter):x}}}"
