"""Where skills, plugins and packages are found, imported and watched: the worldly room."""

from satchel.sources.choices import Choices, choices_path, project_choices_path, read_choices
from satchel.sources.config import (
    Configuration,
    ProjectLayer,
    configuration_path,
    read_configuration,
)
from satchel.sources.distributions import (
    DistributionFinding,
    DistributionScan,
    folder_stamps,
    installed_folders,
    normalized,
    scan_distributions,
)
from satchel.sources.files import UnitFile
from satchel.sources.findings import MANIFEST_FILE, NAMESPACE, Format, PluginFinding, format_of
from satchel.sources.guard import Background, PluginCodeError, PluginTimeoutError, guarded
from satchel.sources.importer import ImportedCode, import_distribution, import_folder
from satchel.sources.packages import PackageFinding, scan_packages
from satchel.sources.places import Holds, Place, Scope, own_plugins, place, well_known_places
from satchel.sources.plugins import PluginScan, scan_plugins
from satchel.sources.skills import SKILL_FILE, SkillFinding, SkillScan, scan_skills
from satchel.sources.watcher import Hint, Notifier, Watched, hints, native_notifier

__all__ = [
    "MANIFEST_FILE",
    "NAMESPACE",
    "SKILL_FILE",
    "Background",
    "Choices",
    "Configuration",
    "DistributionFinding",
    "DistributionScan",
    "Format",
    "Hint",
    "Holds",
    "ImportedCode",
    "Notifier",
    "PackageFinding",
    "Place",
    "PluginCodeError",
    "PluginFinding",
    "PluginScan",
    "PluginTimeoutError",
    "ProjectLayer",
    "Scope",
    "SkillFinding",
    "SkillScan",
    "UnitFile",
    "Watched",
    "choices_path",
    "configuration_path",
    "folder_stamps",
    "format_of",
    "guarded",
    "hints",
    "import_distribution",
    "import_folder",
    "installed_folders",
    "native_notifier",
    "normalized",
    "own_plugins",
    "place",
    "project_choices_path",
    "read_choices",
    "read_configuration",
    "scan_distributions",
    "scan_packages",
    "scan_plugins",
    "scan_skills",
    "well_known_places",
]
