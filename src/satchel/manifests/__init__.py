"""From text to checked values: what a source declares, read without running any of it."""

from satchel.manifests.code import DeclaredTool, declared_tools, defines_setup
from satchel.manifests.fields import FIELD_NAME, ConfigField
from satchel.manifests.freezing import thawed
from satchel.manifests.frontmatter import Frontmatter, split_frontmatter
from satchel.manifests.plugin import ChosenTool, GroupManifest, PluginManifest, read_plugin
from satchel.manifests.reading import Reading
from satchel.manifests.skill import SkillManifest, read_skill
from satchel.manifests.yamlbuilder import YamlValue
from satchel.manifests.yamltext import YamlMap, read_yaml

__all__ = [
    "FIELD_NAME",
    "ChosenTool",
    "ConfigField",
    "DeclaredTool",
    "Frontmatter",
    "GroupManifest",
    "PluginManifest",
    "Reading",
    "SkillManifest",
    "YamlMap",
    "YamlValue",
    "declared_tools",
    "defines_setup",
    "read_plugin",
    "read_skill",
    "read_yaml",
    "split_frontmatter",
    "thawed",
]
