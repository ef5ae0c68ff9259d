"""From text to checked values: what a source declares, read without running any of it."""

from satchel.manifests.chosen import DEFAULT_TOOLS, ChosenContract, ChosenTool
from satchel.manifests.claude import ClaudeManifest, read_claude_plugin, read_claude_servers
from satchel.manifests.code import DeclaredTool, declared_tools, defines_setup
from satchel.manifests.contractcode import declared_contracts
from satchel.manifests.contracts import (
    DeclaredConfig,
    DeclaredContract,
    DeclaredEffect,
    DeclaredRead,
    DeclaredRule,
    arguments_of,
)
from satchel.manifests.editables import mapped_modules
from satchel.manifests.fields import FIELD_NAME, ConfigField, field_fault
from satchel.manifests.freezing import thawed
from satchel.manifests.frontmatter import Frontmatter, split_frontmatter
from satchel.manifests.literals import may_hold
from satchel.manifests.mcp import MCP_SCHEMAS, McpServer, is_header, read_mcp
from satchel.manifests.mentions import Mentions, mentions_in
from satchel.manifests.openplugin import (
    PLUGIN_SCHEMAS,
    Author,
    OpenManifest,
    read_open_plugin,
)
from satchel.manifests.plugin import (
    SKILLS_FOLDER,
    GroupManifest,
    PluginManifest,
    read_plugin,
)
from satchel.manifests.python import imported_beside
from satchel.manifests.reading import Reading
from satchel.manifests.resolving import resolved
from satchel.manifests.skill import SkillManifest, read_listed_skill, read_skill
from satchel.manifests.yamlbuilder import YamlValue
from satchel.manifests.yamltext import YamlMap, read_yaml

__all__ = [
    "DEFAULT_TOOLS",
    "FIELD_NAME",
    "MCP_SCHEMAS",
    "PLUGIN_SCHEMAS",
    "SKILLS_FOLDER",
    "Author",
    "ChosenContract",
    "ChosenTool",
    "ClaudeManifest",
    "ConfigField",
    "DeclaredConfig",
    "DeclaredContract",
    "DeclaredEffect",
    "DeclaredRead",
    "DeclaredRule",
    "DeclaredTool",
    "Frontmatter",
    "GroupManifest",
    "McpServer",
    "Mentions",
    "OpenManifest",
    "PluginManifest",
    "Reading",
    "SkillManifest",
    "YamlMap",
    "YamlValue",
    "arguments_of",
    "declared_contracts",
    "declared_tools",
    "defines_setup",
    "field_fault",
    "imported_beside",
    "is_header",
    "mapped_modules",
    "may_hold",
    "mentions_in",
    "read_claude_plugin",
    "read_claude_servers",
    "read_listed_skill",
    "read_mcp",
    "read_open_plugin",
    "read_plugin",
    "read_skill",
    "read_yaml",
    "resolved",
    "split_frontmatter",
    "thawed",
]
