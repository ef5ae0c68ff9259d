"""Read the description and the parameters from a docstring."""

from inspect import cleandoc
from typing import Any

from satchel.text import visible


def read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the text about each parameter.

    Google, NumPy and Sphinx styles are detected. A docstring in another style is a description.
    """
    text = visible(cleandoc(docstring or "")).strip()
    # One line has no sections, and griffe takes 65 ms to import.
    if "\n" not in text:
        return text, {}
    try:
        return _read(text)
    except Exception:
        # The docstring may be anything; the tool must load all the same.
        return text, {}


def short(description: str) -> str:
    """Return the first paragraph of a description."""
    return description.partition("\n\n")[0].strip()


def _read(text: str) -> tuple[str, dict[str, str]]:
    import griffe

    quiet: Any = {style: {"warnings": False} for style in griffe.Parser if style != "auto"}
    paragraphs: list[str] = []
    parameters: dict[str, str] = {}
    for section in griffe.parse_auto(griffe.Docstring(text), per_style_options=quiet):
        if isinstance(section, griffe.DocstringSectionText):
            paragraphs.append(section.value.strip())
        elif isinstance(section, griffe.DocstringSectionAdmonition):
            paragraphs.append(f"{section.title}: {section.value.contents.strip()}")
        elif isinstance(
            section, griffe.DocstringSectionParameters | griffe.DocstringSectionOtherParameters
        ):
            # Docstrings name `*args` and `**kwargs` with their stars.
            parameters |= {
                item.name.lstrip("*"): item.description.strip() for item in section.value
            }
    return "\n\n".join(filter(None, paragraphs)), parameters
