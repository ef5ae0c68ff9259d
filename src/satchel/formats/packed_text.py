"""A text of a record that takes little memory: many are kept, and few are read."""

import zlib
from typing import Any, NamedTuple


class PackedText:
    """A field for a text, kept as UTF-8, and compressed once `pack` was called.

    Compressing takes longer than reading the file, so it is left until there is time for it. The
    class of the field must not have slots.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, record: Any, owner: type | None = None) -> str:
        """Return the text."""
        if record is None:
            raise AttributeError(self._name)  # So `dataclass` sees a field without a default.
        data = record.__dict__[self._name]
        if isinstance(data, Compressed):
            data = zlib.decompress(data.data)
        text: str = data.decode("utf-8", "surrogatepass")
        return text

    def __set__(self, record: Any, text: "str | bytes | Compressed") -> None:
        """Keep a text, or the UTF-8 of one."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        record.__dict__[self._name] = data


class Compressed(NamedTuple):
    """The bytes of a text, compressed; a record can be made with them, too."""

    data: bytes


def pack(record: object, name: str) -> bool:
    """Compress a text of a record; return whether that was still to be done."""
    if isinstance(record.__dict__[name], Compressed):
        return False
    packed(record, name)
    return True


def packed(record: object, name: str) -> bytes:
    """Compress a text of a record, unless that is done, and return its bytes."""
    data = record.__dict__[name]
    if not isinstance(data, Compressed):
        # Higher levels take twice as long and save a tenth.
        data = Compressed(zlib.compress(data, 1))
        # One assignment: other threads may read the text at this moment.
        record.__dict__[name] = data
    return data.data
