"""From bytes to text: UTF-8 only, one kind of line end, no NUL."""

from satchel.formats.read_result import DiagnosticCollector, ReadResult

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def decode(data: bytes, path: str, code: str) -> ReadResult[str]:
    """Decode UTF-8, with or without BOM, and make every line end LF; `code` reports a fault."""
    problems = DiagnosticCollector(path)
    if data.startswith(_UTF16_MARKS):
        problems.add(code, "it is UTF-16, not UTF-8", "Save the file as UTF-8.", line=1)
        return ReadResult(None, problems.found)
    if b"\0" in data:
        line = _line_at(data, data.index(b"\0"))
        problems.add(code, "it holds a NUL character", "Remove it.", line=line)
        return ReadResult(None, problems.found)
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = _line_at(data, error.start)
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        problems.add(code, message, "Save the file as UTF-8.", line=line)
        return ReadResult(None, problems.found)
    # A lone CR is a line end to YAML and an overwritten line to a terminal: never keep it.
    return ReadResult(text.replace("\r\n", "\n").replace("\r", "\n"), ())


def _line_at(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
