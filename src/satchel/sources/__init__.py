"""Find, read, import and watch skills, plugins and packages on disk."""

from typing import TYPE_CHECKING

from satchel.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from satchel.sources.code_guard import PluginCodeError, PluginTimeoutError, guarded
    from satchel.sources.configuration import Configuration, ProjectLayer, read_configuration
    from satchel.sources.distributions import (
        DistributionFinding,
        DistributionScan,
        installed_folders,
        normalized,
        scan_distributions,
    )
    from satchel.sources.empty_roots import empty_root
    from satchel.sources.file_reader import Stamp, StampedPath, UnitFile
    from satchel.sources.guarded_work import GuardedWork
    from satchel.sources.importer import ImportedCode, import_distribution, import_folder
    from satchel.sources.package_scan import PackageFinding, scan_packages
    from satchel.sources.plugin_findings import PluginFinding
    from satchel.sources.plugin_formats import MANIFEST_FILE, NAMESPACE, format_of
    from satchel.sources.plugin_scan import PluginScan, scan_plugins
    from satchel.sources.search_roots import (
        Precedence,
        RootKind,
        SearchRoot,
        conventional_roots,
        own_plugins,
        search_root,
        skills_of_plugin,
    )
    from satchel.sources.selection import (
        Selection,
        project_selection_path,
        read_selection,
        selection_path,
    )
    from satchel.sources.skill_scan import SKILL_FILE, SkillFinding, SkillScan, scan_skills
    from satchel.sources.watch_targets import WatchTargets
    from satchel.sources.watcher import ChangeEvent, change_events, native_notifier
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "code_guard": "PluginCodeError PluginTimeoutError guarded",
            "configuration": "Configuration ProjectLayer read_configuration",
            "distributions": (
                "DistributionFinding DistributionScan installed_folders normalized "
                "scan_distributions"
            ),
            "empty_roots": "empty_root",
            "file_reader": "Stamp StampedPath UnitFile",
            "guarded_work": "GuardedWork",
            "importer": "ImportedCode import_distribution import_folder",
            "package_scan": "PackageFinding scan_packages",
            "plugin_findings": "PluginFinding",
            "plugin_formats": "MANIFEST_FILE NAMESPACE format_of",
            "plugin_scan": "PluginScan scan_plugins",
            "search_roots": (
                "Precedence RootKind SearchRoot conventional_roots own_plugins search_root "
                "skills_of_plugin"
            ),
            "selection": "Selection project_selection_path read_selection selection_path",
            "skill_scan": "SKILL_FILE SkillFinding SkillScan scan_skills",
            "watch_targets": "WatchTargets",
            "watcher": "ChangeEvent change_events native_notifier",
        },
    )
