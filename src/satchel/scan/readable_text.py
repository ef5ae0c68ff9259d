"""What a text says to an interpreter or a model, and what is encoded or in pieces in it."""

import ast
import base64
import re
import sys
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from satchel.scan.pieces import JOINT, expanded_lines, words_in_pieces

HIDDEN = re.compile(
    "[\x08\x1b\x7f\x9b\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e01ef]|(?<!^)\ufeff|(?<=[!-~])[\u200c\u200d\u2800](?=[!-~])"
    "|[\ufe00-\ufe0e]{2,}"
)
"""Characters that are not seen, and those that rewrite a terminal."""
_DOTLESS = str.maketrans("\u0130\u0131", "ii")
"""Letters that a pattern without case takes for an i."""
_MIN_DECODED = 16
"""The shortest hidden text that is searched, in characters."""
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{28,}={0,2}|(?:\\x[0-9a-fA-F]{2}){12,}|[0-9a-fA-F]{60,}")
_SUM = re.compile(r"[\"'`]\s{0,9}\+\s{0,9}[\"'`]")
_LIST = re.compile(r"[\"']\s{0,9}[,/]\s{0,9}[\"']")
_LONG_LIST = re.compile(
    r"(?:^[^\n\[]{0,80}\n)?^[^\n\[]{0,80}\[[ \t]*\n"
    r"(?:[ \t]*\"[^\"\n]{0,300}\",?[ \t]*\n){1,40}[ \t]*\]",
    re.MULTILINE,
)
"""A list of texts in JSON, one on each line, with the line before it: a command's arguments."""
_LONGEST_LINE = 2000
"""Characters of a line whose pieces are joined."""
_LONGEST_CODE = 200_000
_LONGEST_CONSTANT = 10_000
_LONGEST_PATH = 100
"""Characters of a path that is written for each use of its name."""
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?:python3?|py)\b[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL
)


class PythonBlock(NamedTuple):
    """Code in a text, from a place in it."""

    start: int
    code: str
    tree: ast.Module


class ReadableText:
    """A text of lines, each with its number in a file."""

    def __init__(
        self, lines: list[str], numbers: list[int], functions: Iterable[tuple[int, int]] = ()
    ) -> None:
        """`functions` are the first line and the number after the last, of those of Python."""
        self.text = "\n".join(lines)
        self._numbers = numbers
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self.functions = sorted((self._starts[a], self._starts[b]) for a, b in functions)
        """Where functions of Python begin and end."""

    def add_functions(self, blocks: Iterable[PythonBlock]) -> None:
        """Add the functions of code that is a part of this text."""
        for block in blocks:
            first = bisect_right(self._starts, block.start) - 2
            self.functions += (
                (self._starts[first + it.lineno], self._starts[first + 1 + (it.end_lineno or 0)])
                for it in ast.walk(block.tree)
                if isinstance(it, _FUNCTION)
            )
        self.functions.sort()

    def line_at(self, place: int) -> int:
        """Return the number of the line at a place in `text`."""
        index = bisect_right(self._starts, place) - 1
        return self._numbers[min(index, len(self._numbers) - 1)]


def readable_texts(text: str) -> Iterator[ReadableText]:
    """Yield a text without invisible characters, then what is hidden in it."""
    plain = _plain(text)
    blocks = _python_in(plain)
    plain.add_functions(blocks)
    yield plain
    yield from _joined(plain)
    yield from _folded(plain, blocks)
    for encoded in _ENCODED.finditer(plain.text):
        for decoded in _decode(encoded.group()):
            lines = _plain(decoded).text.split("\n")
            yield ReadableText(lines, [plain.line_at(encoded.start())] * len(lines))


def normal_line(line: str) -> str:
    """Return a line without invisible characters, with one form of each letter."""
    return unicodedata.normalize("NFKC", HIDDEN.sub("", line)).translate(_DOTLESS)


def _plain(text: str) -> ReadableText:
    """Return a text without invisible characters, with continued lines joined."""
    joined, numbers = list[list[str]](), list[int]()
    is_continued = False
    # For Python, a carriage return ends a line, too.
    numbered = (
        (number, written)
        for number, lines in enumerate(text.split("\n"), 1)
        for written in lines.rstrip("\r").split("\r")
    )
    for number, written in numbered:
        is_plain = written.isascii() and written.isprintable()
        line = written if is_plain else normal_line(written)
        if not is_continued:
            joined.append([])
            numbers.append(number)
        joined[-1].append(line.removesuffix("\\"))
        is_continued = line.endswith("\\")
    return ReadableText([" ".join(parts).replace("\n", " ") for parts in joined], numbers)


def _joined(plain: ReadableText) -> Iterator[ReadableText]:
    """Yield the lines whose pieces of text are joined: `'ev' + 'al'`, or the parts of a path."""
    start = 0
    lines, numbers = list[str](), list[int]()
    for line in plain.text.split("\n"):
        short = line[:_LONGEST_LINE]
        if _SUM.search(short) or _LIST.search(short):
            summed = _SUM.sub("", short)
            lines += {_LIST.sub(between, summed): None for between in ("/", " ")}
            lines.append(words_in_pieces(_SUM.sub(JOINT, short)))
            numbers += [plain.line_at(start)] * (len(lines) - len(numbers))
        start += len(line) + 1
    for match in _LONG_LIST.finditer(plain.text):
        lines.append(_LIST.sub(" ", " ".join(match.group().split())))
        numbers.append(plain.line_at(match.start()))
    for place, line in expanded_lines(plain.text):
        lines += [line.replace(JOINT, ""), words_in_pieces(line)]
        numbers += [plain.line_at(place)] * 2
    if lines:
        yield ReadableText(lines, numbers)


def _decode(encoded: str) -> Iterator[str]:
    """Yield the texts that a long word stands for, in hexadecimal and in base64."""
    digits = encoded.replace("\\x", "")
    padded = encoded.rstrip("=") + "=" * (-len(encoded.rstrip("=")) % 4)
    decoded: list[bytes] = []
    with suppress(ValueError):
        decoded.append(bytes.fromhex(digits))
    with suppress(ValueError):  # also `binascii.Error`
        standard = padded.replace("-", "+").replace("_", "/")
        decoded.append(base64.b64decode(standard, validate=True))
    for data in decoded:
        for encoding in ("utf-8", "utf-16-le"):  # PowerShell encodes UTF-16
            with suppress(UnicodeDecodeError):
                text = data.decode(encoding)
                letters = sum(letter.isascii() and _is_readable(letter) for letter in text)
                if letters > 0.9 * len(text) >= 0.9 * _MIN_DECODED:
                    yield text


def _is_readable(letter: str) -> bool:
    return letter.isprintable() or letter in "\n\r\t"


# ---- Python --------------------------------------------------------------------------------------


def _python_in(plain: ReadableText) -> list[PythonBlock]:
    """Return the Python code of a text: all of it, or its blocks of code."""
    parts = [(it.start(1), it.group(1)) for it in _FENCE.finditer(plain.text)]
    if not parts and "```" not in plain.text:
        parts = [(0, plain.text)]
    blocks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start, code in parts:
            if len(code) <= _LONGEST_CODE:
                with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    blocks.append(PythonBlock(start, code, ast.parse(code)))
    return blocks


def _folded(plain: ReadableText, blocks: Iterable[PythonBlock]) -> Iterator[ReadableText]:
    """Yield Python code with full names and joined constants, one statement on each line."""
    lines, numbers, functions = list[str](), list[int](), list[tuple[int, int]]()
    for block in blocks:
        listing = _Listing()
        with suppress(ValueError, RecursionError, MemoryError):
            listing.add(_Folder(block.tree).visit(block.tree))
            offsets = [0, *(it.end() for it in re.finditer("\n", block.code))]
            functions += ((len(lines) + a, len(lines) + b) for a, b in listing.functions)
            # Fences, so that a name stands for something in its own block only.
            lines += [*(text for _, text in listing.statements), "```"]
            numbers += [
                plain.line_at(block.start + offsets[line - 1]) for line, _ in listing.statements
            ]
            numbers.append(plain.line_at(block.start))
    if lines:
        yield ReadableText(lines, numbers, functions)


class _Listing:
    """The line and the text of each statement; of a compound one, its head."""

    def __init__(self) -> None:
        self.statements: list[tuple[int, str]] = []
        self.functions: list[tuple[int, int]] = []

    def add(self, tree: ast.AST) -> None:
        """Add the statements below a node, in their order."""
        for node in ast.iter_child_nodes(tree):
            first = len(self.statements)
            if isinstance(node, ast.stmt):
                self.statements.append((node.lineno, _head(node)))
            self.add(node)
            if isinstance(node, _FUNCTION):
                self.functions.append((first, len(self.statements)))


def _head(node: ast.stmt) -> str:
    shown: ast.AST = node
    if hasattr(node, "body"):
        parts = {name: getattr(node, name) for name in node._fields}
        parts |= {it: [] for it in ("orelse", "finalbody", "handlers") if it in parts}
        shown = type(node)(**(parts | {"body": [ast.Pass()]}))
        ast.copy_location(shown, node)
    return ast.unparse(shown).replace("\n", " ")


class _Folder(ast.NodeTransformer):
    """Joins constants, and writes paths and imported things for their names."""

    def __init__(self, tree: ast.AST) -> None:
        self._names: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and (path := _path(node.value)):
                self._paths |= {it.id: path for it in node.targets if isinstance(it, ast.Name)}
            elif isinstance(node, ast.Import):
                self._names |= {it.asname: it.name for it in node.names if it.asname}
            elif isinstance(node, ast.ImportFrom):
                for it in node.names:
                    self._names[it.asname or it.name] = f"{node.module}.{it.name}"

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._paths and isinstance(node.ctx, ast.Load):
            return _text(self._paths[node.id])
        return ast.Name(self._names.get(node.id, node.id), node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        left, right = _constant(node.left), _constant(node.right)
        if isinstance(node.op, ast.Add) and left is not None and right is not None:
            return _text(left + right)
        if isinstance(node.op, ast.Div) and right is not None:
            inner = node.left
            if isinstance(inner, ast.BinOp) and (first := _constant(inner.right)) is not None:
                return ast.BinOp(inner.left, inner.op, _text(f"{first}/{right}"))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        text = _constant(node.value)
        if text is not None and ast.unparse(node.slice) == "::-1":
            return _text(text[::-1])
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        decoded = _named_call(ast.unparse(node.func)[:100], node.args)
        if decoded is None and isinstance(node.func, ast.Attribute):
            decoded = _text_method(node.func, node.args)
        return decoded or node


def _named_call(name: str, args: list[ast.expr]) -> ast.expr | None:
    """Return what a call of a known function stands for, if its arguments are constants."""
    texts = [_constant(it) for it in args]
    result: ast.expr | None = None
    match name, args:
        case "getattr", [owner, *_] if len(texts) > 1 and texts[1]:
            result = ast.Attribute(owner, texts[1], ast.Load())
        case "__import__" | "importlib.import_module", [_, *_] if texts[0]:
            result = ast.Name(texts[0], ast.Load())
        case "os.path.join", _:
            result = _text("/".join(it or "?" for it in texts))
        case "chr", [ast.Constant(value=int(number))] if 0 <= number <= sys.maxunicode:
            result = _text(chr(number))
        case "bytes" | "bytearray", [ast.List(elts=numbers)]:
            with suppress(ValueError, SyntaxError, TypeError):
                result = _text(bytes(map(ast.literal_eval, numbers)).decode("latin-1"))
    return result


def _path(node: ast.expr) -> str | None:
    """Return the path in `"~/a"` or `Path("~/a")`."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    text = _constant(node)
    is_path = text and "/" in text and "://" not in text and len(text) < _LONGEST_PATH
    return text if is_path else None


def _text_method(method: ast.Attribute, args: list[ast.expr]) -> ast.expr | None:
    """Return what `"".join([...])` or `b"".decode()` stands for, if it is constant."""
    text = _constant(method.value)
    if text is not None and method.attr == "decode":
        return _text(text)
    if text is not None and method.attr == "join" and len(args) == 1:
        parts = [_constant(it) for it in getattr(args[0], "elts", [None])]
        if None not in parts:
            return _text(text.join(map(str, parts)))
    return None


def _constant(node: ast.AST) -> str | None:
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) and len(value) < _LONGEST_CONSTANT else None


def _text(text: str) -> ast.Constant:
    return ast.Constant(text)
