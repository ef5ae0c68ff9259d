"""The tool guide: names, arguments and rules of the tools, as text for a planner."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from satchel.lazy_dataclass import dataclass
from satchel.text import xml, xml_text
from satchel.tools.type_schemas import schema_type_name

_INSTRUCTION = (
    "Plan your calls with these tools. Every call must keep all rules of its tool; a call that "
    "breaks a rule is refused, left out or corrected."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolGuideEntry:
    """What the guide says about one tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    rules: tuple[tuple[str, str], ...] = ()
    """The id and the text of each rule."""


def render_guide(tools: Iterable[ToolGuideEntry]) -> str:
    """Return the guide to these tools, with every field escaped; `""` without tools."""
    blocks = [_block(tool) for tool in tools]
    return "\n".join([_INSTRUCTION, "", "<tools>", *blocks, "</tools>"]) if blocks else ""


def _block(tool: ToolGuideEntry) -> str:
    required = tool.parameters.get("required", ())
    lines = [
        "<tool>",
        f"<name>{xml(tool.name)}</name>",
        f"<description>{xml_text(tool.description)}</description>",
    ]
    for name, schema in tool.parameters.get("properties", {}).items():
        details = schema if isinstance(schema, Mapping) else {}
        type_text = f"{schema_type_name(schema)}, {'required' if name in required else 'optional'}"
        if details.get("default") is not None:
            # Not `to_json`: it refuses half a character, which `xml` replaces.
            default = json.dumps(
                details["default"], ensure_ascii=False, separators=(",", ":"), default=str
            )
            type_text += f", default {default}"
        text = xml(str(details.get("description", "")))
        lines.append(f'<argument name="{xml(name)}" type="{xml(type_text)}">{text}</argument>')
    lines += [f'<rule id="{xml(id_)}">{xml(rule)}</rule>' for id_, rule in tool.rules]
    return "\n".join([*lines, "</tool>"])
