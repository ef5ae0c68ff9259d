"""Look through the files of a folder for what the rules describe."""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from satchel.diagnostics import Severity
from satchel.files.file_reader import reason_of
from satchel.lazy_dataclass import dataclass
from satchel.mixed_scripts import passes_for_latin, skeleton, unstyled
from satchel.names import skill_name_fault
from satchel.scan.readable_text import HIDDEN, readable_texts
from satchel.scan.scan_rules import SCAN_RULES, lure_finder
from satchel.settings import Limits
from satchel.sources.search_roots import RootKind, search_root
from satchel.sources.skill_findings import SKILL_FILE
from satchel.sources.skill_scan import scan_skills

_MAX_BYTES = 1_000_000
"""The beginning of a file that is read: a byte takes about a microsecond."""
_SHOWN = 160
"""Characters of the text that a finding shows."""
_PROGRAMS = (
    *(b"\x7fELF", b"MZ", b"\x00asm", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe"),
    *(b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa"),
)
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".whl", ".jar", ".dmg")
_MEDIA = (
    *(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"PK\x03\x04", b"OggS", b"ID3"),
    *(b"\x00\x01\x00\x00", b"OTTO", b"wOFF", b"wOF2", b"\x00\x00\x01\x00", b"fLaC", b"BM"),
    *(b"SQLite format 3", b"\x1aE\xdf\xa3", b"II*\x00", b"MM\x00*", b"8BPS", b"\xd0\xcf\x11\xe0"),
)
"""How pictures, sound, fonts, documents and databases begin. These may have bytes of any kind."""
_LEFT_BY_EDITORS = re.compile("[\u00ad\u200b\u200e\u200f]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
"""The flag of a region, such as Scotland, is written with invisible characters."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_NAME_FIELD = re.compile(r"\s*[\"']?name[\"']?\s*:")


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


ScannedFiles = dict[bytes, tuple[ScanFinding, ...]]
"""What files have, without their paths, by the digest of their bytes."""


def scan_path(
    path: str | os.PathLike[str], scanned: ScannedFiles | None = None
) -> Iterator[ScanFinding]:
    """Yield what a file, or all files of a folder, have that the rules describe.

    Files with the same bytes are scanned once, also those of other calls with the same `scanned`.
    Nothing is imported or run. Links are named and not followed. What cannot be read whole is a
    finding, too; only folders called `.git` are left out. A SKILL.md stands for its folder.
    """
    top = os.fspath(path)
    # A hook names the changed file.
    if os.path.basename(top) == SKILL_FILE and not os.path.isdir(top):
        top = os.path.dirname(top) or os.curdir
    if os.path.isdir(top):
        yield from _scan_folder(top, {} if scanned is None else scanned)
        yield from _refused_skills(top)
    else:
        yield from _scan_file(top, os.path.dirname(os.path.realpath(top)), {})


def scan_text(text: str, path: str = "") -> Iterator[ScanFinding]:
    """Yield what a text has that the rules describe, each rule once a line."""
    for number, line in enumerate(text.split("\n"), 1):
        if not (line.isascii() and line.isprintable()):
            yield from _scan_letters(line, path, number, is_name=bool(_NAME_FIELD.match(line)))
    seen: set[tuple[str, int]] = set()
    for rule, line_number, match in _matches(text):
        if (rule, line_number) not in seen:
            seen.add((rule, line_number))
            yield _finding(rule, path, line_number, match)


def _matches(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield the rules that match a text, or what is hidden in it, with the line."""
    for readable in readable_texts(text):
        for rule, start, end in lure_finder().find(readable.text, readable.functions):
            yield rule, readable.line_at(start), readable.text[start:end]


# ---- letters -------------------------------------------------------------------------------------


def _scan_letters(line: str, path: str, number: int, *, is_name: bool) -> Iterator[ScanFinding]:
    """Yield the invisible and the look-alike letters of a line or of a file's name."""
    for match in HIDDEN.finditer(_FLAG.sub("", line)):
        if not _is_left_by_editor(line, match):
            text = line[max(match.start() - 40, 0) : match.end() + 40]
            yield _finding("hidden-characters", path, number, text)
            break
    is_styled = is_name and not (line.isascii() or skill_name_fault(unstyled(line)))
    if is_styled or any(_is_mixed(word, is_name=is_name) for word in _WORD.findall(line)):
        yield _finding("mixed-scripts", path, number, line)


def _is_left_by_editor(line: str, match: re.Match[str]) -> bool:
    """Return whether an invisible character stands alone and splits no word of ASCII letters."""
    if not _LEFT_BY_EDITORS.fullmatch(match.group()):
        return False
    before, after = line[max(match.start() - 1, 0) : match.start()], line[match.end() :][:1]
    splits = before.isascii() and before.isalnum() and after.isascii() and after.isalnum()
    around = line[max(match.start() - 20, 0) : match.end() + 20]
    return not splits and len(HIDDEN.findall(around)) == 1


def _is_mixed(word: str, *, is_name: bool) -> bool:
    """Return whether Latin letters stand beside look-alikes. Names may not have Greek ones."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in word}
    if is_name and scripts & {"FULLWIDTH", "MATHEMATICAL"}:
        return True
    if is_name and passes_for_latin(word):
        return True
    strange = {"CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC"} | ({"GREEK"} if is_name else set())
    return "LATIN" in scripts and bool(scripts & strange)


# ---- files ---------------------------------------------------------------------------------------


def _scan_folder(top: str, scanned: ScannedFiles) -> Iterator[ScanFinding]:
    root, unread = os.path.realpath(top), list[OSError]()
    yield from _scan_name(top)
    for folder, folders, files in os.walk(top, onerror=unread.append):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in (*folders, *sorted(files)):
            path = os.path.join(folder, name)
            yield from _scan_name(path)
            if name not in folders or os.path.islink(path):
                yield from _scan_file(path, root, scanned)
    for error in unread:
        yield _finding("not-read", str(error.filename), 0, str(error.strerror))


def _scan_name(path: str) -> Iterator[ScanFinding]:
    name = os.fsencode(os.path.basename(path)).decode("utf-8", "replace")
    if any(not letter.isprintable() and not HIDDEN.match(letter) for letter in name):
        yield _finding("hidden-characters", path, 0, name)
    yield from _scan_letters(name, path, 0, is_name=True)


def _scan_file(path: str, root: str, scanned: ScannedFiles) -> Iterator[ScanFinding]:
    try:
        status = os.lstat(path)
        yield from _scan_status(path, status, root)
        if not stat.S_ISREG(status.st_mode):
            return
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES)
    except (OSError, ValueError) as error:
        yield _finding("not-read", path, 0, reason_of(error))
        return
    if data.startswith(_PROGRAMS):
        yield _finding("binary-file", path, 0, "a compiled program")
    elif path.lower().endswith(_ARCHIVES):
        yield _finding("binary-file", path, 0, "an archive; unpack it and scan the folder")
    elif not data.startswith(_MEDIA) or _is_text(data):
        if status.st_size > len(data):
            yield _finding("not-read", path, 0, f"only the first {_MAX_BYTES:,} bytes were read")
        digest = sha256(data).digest()
        if digest not in scanned:
            scanned[digest] = tuple(_scan_data(data))
        yield from (replace(item, path=path) for item in scanned[digest])


def _is_text(data: bytes) -> bool:
    """Return whether bytes that begin like a picture are text, such as a script with `BM=1`."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _scan_status(path: str, status: os.stat_result, root: str) -> Iterator[ScanFinding]:
    if stat.S_ISLNK(status.st_mode):
        target = os.path.realpath(path)
        if os.path.commonpath([target, root]) != root:
            yield _finding("leaves-folder", path, 0, f"a link to {os.readlink(path)}")
    elif not stat.S_ISREG(status.st_mode):
        yield _finding("binary-file", path, 0, "not a regular file")
    elif status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        yield _finding("binary-file", path, 0, "a file that runs with the rights of its owner")
    elif status.st_nlink > 1:
        yield _finding("leaves-folder", path, 0, "a file that has another name elsewhere")


def _scan_data(data: bytes) -> Iterator[ScanFinding]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
        if "\x00" in text:
            yield _finding("binary-file", "", 0, "bytes that are not text")
    yield from scan_text(text)


def _refused_skills(top: str) -> Iterator[ScanFinding]:
    """Yield the errors of skills: other clients may read something else in such a file."""
    scan = scan_skills(search_root(top, RootKind.SKILLS), Limits())
    skills = [skill for skill in scan.findings.values() if skill.manifest]
    names = {
        skill.manifest.name.casefold()
        for skill in skills
        if skill.manifest and skill.manifest.name.isascii()
    }
    for skill in skills:
        name = skill.manifest.name if skill.manifest else ""
        if not name.isascii() and skeleton(name) in names:
            text = f"{name}, which reads like {skeleton(name)}"
            yield _finding("mixed-scripts", os.path.join(skill.path, SKILL_FILE), 0, text)
    problems = (problem for skill in scan.findings.values() for problem in skill.problems)
    for problem in (*scan.diagnostics, *problems):
        if problem.severity is Severity.ERROR:
            yield _finding(
                "refused-skill", problem.where.path, problem.where.line or 0, problem.message
            )


def _finding(rule: str, path: str, line: int, text: str) -> ScanFinding:
    shown = "".join(map(_escaped, " ".join(text[: _SHOWN * 2].split())[:_SHOWN]))
    return ScanFinding(rule=rule, path=path, line=line, text=shown)


def _escaped(letter: str) -> str:
    is_shown = letter.isprintable() and not HIDDEN.fullmatch(letter)
    return letter if is_shown else ascii(letter)[1:-1]
