"""Decode bytes to text: UTF-8 only, LF line ends, no NUL."""

from satchel.formats.read_result import DiagnosticCollector, ReadResult

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def decode(data: bytes, path: str, code: str) -> ReadResult[str]:
    """Decode UTF-8, with or without BOM, with LF line ends; errors are reported with `code`."""
    collector = DiagnosticCollector(path)
    if data.startswith(_UTF16_MARKS):
        collector.add(code, "it is UTF-16, not UTF-8", "Save the file as UTF-8.", line=1)
        return ReadResult(None, collector.diagnostics)
    if b"\0" in data:
        line = _line_at(data, data.index(b"\0"))
        collector.add(code, "it has a NUL character", "Remove it.", line=line)
        return ReadResult(None, collector.diagnostics)
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = _line_at(data, error.start)
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        collector.add(code, message, "Save the file as UTF-8.", line=line)
        return ReadResult(None, collector.diagnostics)
    # YAML takes a lone CR as a line end, and a terminal overwrites the line: never keep it.
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return ReadResult(text, ())


def _line_at(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
