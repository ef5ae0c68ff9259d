"""Write tables of strings as TOML; the same values give the same text."""

from collections.abc import Mapping

from satchel.text import replace_hidden


def toml_table(kind: str, fields: Mapping[str, str]) -> str:
    """Return one item of a list of tables, after an empty line."""
    lines = "".join(f"{key} = {_quoted(value)}\n" for key, value in fields.items())
    return f"\n[[{kind}]]\n{lines}"


def _quoted(text: str) -> str:
    """Return a TOML string; invisible characters are escapes, so that a reviewer sees them."""
    text = text.encode("utf-8", "replace").decode().replace("\\", "\\\\").replace('"', '\\"')
    shown = replace_hidden(text, lambda letter: f"\\U{ord(letter):08x}")
    return '"' + shown.replace("\n", "\\n").replace("\t", "\\t") + '"'
