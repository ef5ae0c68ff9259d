"""Parse and validate manifests and other declarations, without running any code."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.formats.claude_manifest import ClaudeManifest, read_claude_plugin
    from satchel.formats.code_references import DEFAULT_TOOLS, ContractReference, ToolReference
    from satchel.formats.config_fields import FIELD_NAME, ConfigField, field_fault
    from satchel.formats.declared_tools import DeclaredTool, defines_setup
    from satchel.formats.editable_finders import mapped_modules
    from satchel.formats.front_matter import FrontMatter, split_front_matter
    from satchel.formats.frozen_values import to_plain
    from satchel.formats.gemini_manifest import GeminiManifest, read_gemini_extension
    from satchel.formats.marketplace_manifest import (
        ListedPlugin,
        MarketplaceManifest,
        read_marketplace,
    )
    from satchel.formats.mcp_json import MCP_SCHEMAS, McpServerManifest, is_header
    from satchel.formats.mcp_json_reader import read_mcp
    from satchel.formats.open_plugin_manifest import (
        PLUGIN_SCHEMAS,
        Author,
        OpenManifest,
        read_open_plugin,
    )
    from satchel.formats.read_result import ReadResult
    from satchel.formats.server_entries import read_claude_servers
    from satchel.formats.server_placeholders import fill_placeholders
    from satchel.formats.skill_manifest import SkillManifest, read_listed_skill, read_skill
    from satchel.formats.toolkit_manifest import (
        SKILLS_FOLDER,
        GroupManifest,
        PluginManifest,
        read_plugin,
    )
    from satchel.formats.yaml_reader import read_yaml
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "claude_manifest": "ClaudeManifest read_claude_plugin",
            "code_references": "DEFAULT_TOOLS ContractReference ToolReference",
            "config_fields": "FIELD_NAME ConfigField field_fault",
            "declared_tools": "DeclaredTool defines_setup",
            "editable_finders": "mapped_modules",
            "front_matter": "FrontMatter split_front_matter",
            "frozen_values": "to_plain",
            "gemini_manifest": "GeminiManifest read_gemini_extension",
            "marketplace_manifest": "ListedPlugin MarketplaceManifest read_marketplace",
            "mcp_json": "MCP_SCHEMAS McpServerManifest is_header",
            "mcp_json_reader": "read_mcp",
            "open_plugin_manifest": "PLUGIN_SCHEMAS Author OpenManifest read_open_plugin",
            "read_result": "ReadResult",
            "server_entries": "read_claude_servers",
            "server_placeholders": "fill_placeholders",
            "skill_manifest": "SkillManifest read_listed_skill read_skill",
            "toolkit_manifest": "SKILLS_FOLDER GroupManifest PluginManifest read_plugin",
            "yaml_reader": "read_yaml",
        },
    )
