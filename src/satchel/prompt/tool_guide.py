"""The guide to the tools: what a planner is taught of their names, arguments and rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from satchel.text import xml, xml_text
from satchel.tools.tool_results import to_json
from satchel.tools.type_schemas import schema_type_name

_INSTRUCTION = (
    "Plan your calls with these tools. Every call keeps all rules of its tool; one that breaks a "
    "rule is refused, left out or corrected."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGuideEntry:
    """A tool as its record describes it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    rules: tuple[tuple[str, str], ...] = ()
    """The id and the words of each."""


def render_guide(tools: Iterable[ToolGuideEntry]) -> str:
    """Return the block that teaches some tools, every field escaped; `""` if there are none."""
    blocks = [_block(tool) for tool in tools]
    return "\n".join([_INSTRUCTION, "", "<tools>", *blocks, "</tools>"]) if blocks else ""


def _block(tool: ToolGuideEntry) -> str:
    required = tool.parameters.get("required", ())
    lines = [
        "<tool>",
        f"<name>{xml(tool.name)}</name>",
        f"<description>{xml_text(tool.description)}</description>",
    ]
    for name, about in tool.parameters.get("properties", {}).items():
        need = "required" if name in required else "optional"
        said = about.get("description", "") if isinstance(about, Mapping) else ""
        kind = f"{schema_type_name(about)}, {need}{_default(about)}"
        lines.append(f'<argument name="{xml(name)}" type="{xml(kind)}">{xml(str(said))}</argument>')
    lines += [f'<rule id="{xml(id_)}">{xml(rule)}</rule>' for id_, rule in tool.rules]
    return "\n".join([*lines, "</tool>"])


def _default(about: Any) -> str:
    has_default = isinstance(about, Mapping) and about.get("default") is not None
    return f", default {to_json(about['default'])}" if has_default else ""
