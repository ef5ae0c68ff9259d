"""Read the commands of other clients as skills that only the user calls.

Claude writes them in Markdown, with or without front matter, and Gemini in TOML.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from satchel.formats.front_matter import load_frontmatter, split_front_matter
from satchel.formats.read_result import DiagnosticCollector, ReadResult, quoted
from satchel.formats.skill_manifest import SkillManifest, read_listed_skill
from satchel.formats.utf8_text import decode
from satchel.names import tidy_name
from satchel.settings import Limits
from satchel.text import one_line, shorten

_CODE = "command-invalid"
_FENCED = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_LINE = re.compile(r"(?m)^([A-Za-z][A-Za-z-]*):[ \t]*(.*?)[ \t]*\r?$")
_KEPT = ("allowed-tools", "argument-hint")
_PLACEHOLDER = re.compile(r"\\?\$(?:ARGUMENTS\b|[0-9])")
_GEMINI_ARGUMENTS = "{{args}}"
_RUN_BY_CLAUDE = re.compile(r"(?<!\S)!`[^`]+`")
_RUN_BY_GEMINI = re.compile(r"[!@]\{[^}]+\}")


def command_name(path: str) -> str:
    """Return the name of the skill that a command becomes, from its path below `commands`."""
    return tidy_name(path.rpartition(".")[0].replace("/", "-"))


def read_command(data: bytes, name: str, path: str, limits: Limits) -> ReadResult[SkillManifest]:
    """Read a command as a skill with this name; diagnostics show `path`."""
    collector = DiagnosticCollector(path)
    is_toml = path.endswith(".toml")
    read = _read_toml if is_toml else _read_markdown
    parts = read(data, path, limits, collector)
    if parts is None:
        return ReadResult(None, collector.diagnostics)
    fields, body = parts
    if not body.strip():
        collector.add(_CODE, "it has no text", "Write what the model should do.")
        return ReadResult(None, collector.diagnostics)
    front = {
        "name": name,
        "description": fields.get("description") or _first_line(body),
        "disable-model-invocation": "true",
        **{key: fields[key] for key in _KEPT if fields.get(key)},
    }
    # It is no SKILL.md, so only what makes it unusable is of interest.
    manifest = read_listed_skill(front, name, path, limits).value
    if manifest is None:
        collector.add(_CODE, "its front matter cannot be used", "Shorten its description.")
        return ReadResult(None, collector.diagnostics)
    if part := (_RUN_BY_GEMINI if is_toml else _RUN_BY_CLAUDE).search(body):
        message = f"{quoted(part[0])} in its text is neither run nor read: the model reads it"
        collector.add("command-not-run", message)
    return ReadResult(replace(manifest, body=body), collector.diagnostics)


def _read_markdown(
    data: bytes, path: str, limits: Limits, collector: DiagnosticCollector
) -> tuple[Mapping[str, Any], str] | None:
    if not _FENCED.match(data):
        text = decode(data, path, _CODE)
        collector.extend(text.diagnostics)
        return None if text.value is None else ({}, text.value)
    split = split_front_matter(data, path, limits)
    if split.value is None:
        collector.add(_CODE, split.diagnostics[0].message, split.diagnostics[0].fix)
        return None
    yaml = load_frontmatter(split.value, path, limits).value
    # Many have lines that are not YAML, such as `argument-hint: [file] [options]`.
    fields = yaml.values if yaml else dict(_LINE.findall(split.value.text))
    return {key: value for key, value in fields.items() if value}, split.value.body


def _read_toml(
    data: bytes, path: str, _limits: Limits, collector: DiagnosticCollector
) -> tuple[Mapping[str, Any], str] | None:
    import tomllib  # lazy: few users have such commands

    text = decode(data, path, _CODE)
    collector.extend(text.diagnostics)
    if text.value is None:
        return None
    try:
        values = tomllib.loads(text.value)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        collector.add(_CODE, f"it is not TOML: {shorten(one_line(str(error)), 200)}", "Correct it.")
        return None
    prompt, description = values.get("prompt"), values.get("description")
    if not isinstance(prompt, str):
        collector.add(_CODE, "'prompt' is missing or not text", "Add prompt = '...'.")
        return None
    # Text that looks like a placeholder of Claude is plain text here.
    body = _PLACEHOLDER.sub(lambda match: "\\" + match[0].lstrip("\\"), prompt)
    body = body.replace(_GEMINI_ARGUMENTS, "$ARGUMENTS")
    return {"description": description if isinstance(description, str) else ""}, body


def _first_line(body: str) -> str:
    """Return the first line with text; a line that only opens a block of code has none."""
    lines = (line.strip(" \t#") for line in body.splitlines())
    line = next((line for line in lines if line and not line.startswith(("```", "~~~"))), body)
    return shorten(one_line(line), 200)
