"""Rules that no linter checks; layers and banned modules are in `pyproject.toml`."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import satchel

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src/satchel"
ENTRY_PACKAGES = ("cli", "mcp", "builtin", "reports")
"""These packages may import the public names of `satchel`, and import slow modules late."""

PROCESS_WIDE = {
    ("cli/commands/disable_command.py", "command"): "a command of click, as a decorator makes it",
    ("cli/commands/enable_command.py", "command"): "as above",
    ("lazy_dataclass.py", "_fast_constructor"): "a class has one constructor",
    ("garbage_collection.py", "_collector"): "the interpreter has one collector",
    ("importing/editable_imports.py", "_finder"): "the interpreter has one list of finders",
    ("importing/code_snapshots.py", "_finder"): "the interpreter has one list of finders",
    ("importing/module_exchange.py", "_lock"): "the interpreter has one table of modules",
    ("importing/importer.py", "_serial"): "module names must differ in the whole process",
    ("loader/lock_entries.py", "_slow_hash"): "a text has one hash, which takes long to make",
    ("scan/lexicon.py", "_stem"): "a word has one stem",
    ("tools/callables.py", "_THREADS"): "all satchels use the same idle threads again",
    ("trust/fetched_servers.py", "_stems"): "equal stamps of a folder mean equal names",
    ("trust/runnable_files.py", "_cached_digest"): "equal stamps of a file mean an equal digest",
    ("sources/skill_cache.py", "_version"): "the process has one version of Satchel",
    ("runtime/program_runner.py", "_can_bound"): "an installed bubblewrap keeps its options",
    ("runtime/program_runner.py", "_probed"): "whether an installed bubblewrap works stays so",
    ("session/search_tools.py", "search_tool"): "one tool for each kind of search",
    ("session/skill_tools.py", "skill_tool"): "one tool for each name",
    ("runtime/background_tasks.py", "task_tool"): "one tool for each name",
}
"""Module-level values that may change, each with the reason."""

IMMUTABLE_CALLS = {
    "PackedText",  # a descriptor; the records keep the texts
    "attrgetter",
    *("bytes", "frozenset", "tuple", "re.compile", "MappingProxyType"),
    *("TypeVar", "ParamSpec", "ContextVar", "getattr"),
    *("logging.getLogger", "dict.fromkeys", "str.maketrans", "json.JSONEncoder", "field"),
    *("BeforeValidator", "ConfigDict", "Expected", "Field"),  # of models, whose defaults are copied
    *("FormatPolicy", "LoopRunner", "SkillAccess", "ThreadRunner", "urlsplit"),
    *("pluggy.HookspecMarker", "pluggy.HookimplMarker"),
    *("click.argument", "click.option", "repeatable", "click.make_pass_decorator"),
    *("EmptyMapping", "ToolContext"),
}
"""Calls whose results never change."""

MUTATORS = {
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
    *("setdefault", "sort", "update"),
}


def package_of(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Yield each import with the full name that it binds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


# ---- imports ---------------------------------------------------------------------------------


def test_only_entry_packages_import_the_public_names(modules):
    used = [
        f"{path}: {ast.unparse(node)}"
        for path in modules
        if package_of(path) not in ENTRY_PACKAGES
        for node, name in imports(modules[path])
        if name.split(".")[0] == "satchel"
        if isinstance(node, ast.Import) or node.module == "satchel"
    ]
    assert used == []


LATE_IMPORTS = {
    "satchel.py: satchel.loader.lock_entries.lock_of": "needed only with a lock file",
    "satchel.py: satchel.loader.lock_entries.lock_places": "needed only with a lock file",
    "host_arguments.py: satchel.loader.lock_guard.load_guard": "needed only with a lock file",
    "catalog_watch.py: satchel.files.watcher.no_events": "needed only by a watch",
    "setup/artefact_signatures.py: satchel.setup.signature_verification.verified_signers": (
        "it needs an extra"
    ),
    "catalog/catalog.py: satchel.contracts.contract_set.Contracts": "needed only with contracts",
    "setup/index_attestations.py: satchel.setup.signature_verification.verified_signers": (
        "it needs an extra"
    ),
    "catalog/catalog_entries.py: satchel.sources.skill_files.IN_FOLDER": "needed only with skills",
    "catalog/catalog_entries.py: satchel.sources.skill_files.LocalSkillReader": (
        "needed only with skill folders"
    ),
    "contracts/tool_contract.py: satchel.contracts.plan_validation.faults_of": (
        "the validation of plans imports the contract"
    ),
    "formats/front_matter.py: satchel.formats.skill_handler.SkillHandler": "it loads pyyaml, "
    "which a satchel without skills does not need",
    "host_registrations.py: satchel.tools.tool_bounds.bounded_definition": "needed only with tools",
    "session/call_middleware.py: satchel.session.skill_permissions.permission_middleware": (
        "few hosts enforce what skills allow"
    ),
    "session/session_state.py: satchel.session.skill_permissions.allowed_remark": (
        "few hosts enforce what skills allow"
    ),
    "loader/config_binder.py: satchel.plugins.config_binding.bind_config": (
        "needed only with tools or configuration"
    ),
    "loader/contract_checks.py: satchel.contracts.prompt_variables.unknown_variable": (
        "needed only with contracts"
    ),
    "loader/contract_checks.py: satchel.contracts.variable_places.variables_in": (
        "needed only with contracts"
    ),
    "loader/contract_checks.py: satchel.plugins.contract_attachment.contract_without_tool": (
        "needed only with contracts"
    ),
    "loader/builtin_providers.py: satchel.plugins.code_loading.load_folder": (
        "needed only with plugin code"
    ),
    "loader/builtin_providers.py: satchel.plugins.code_loading.load_package": (
        "needed only with plugin code"
    ),
    "loader/plugin_loader.py: satchel.plugins.code_loading.started": (
        "needed only with plugin code"
    ),
    "loader/plugin_loader.py: satchel.workers.worker_loading.load_worker": (
        "needed only by isolated plugins"
    ),
    "loader/builtin_providers.py: satchel.mcp_servers.server_skills.collect_server_skills": (
        "needed only with MCP servers"
    ),
    "loader/builtin_providers.py: satchel.mcp_servers.server_contributions.server_contributions": (
        "needed only with MCP servers"
    ),
    "loader/builtin_providers.py: satchel.sources.command_scan.scan_commands": (
        "few plugins have them"
    ),
    "loader/builtin_providers.py: satchel.sources.cached_scan.scan_through_cache": (
        "needed only with skill folders"
    ),
    "loader/builtin_providers.py: satchel.sources.plugin_scan.scan_plugins": (
        "needed only with plugin folders"
    ),
    "loader/builtin_providers.py: satchel.sources.lost_files.has_lost_manifest": (
        "needed only with plugin folders"
    ),
    "loader/builtin_providers.py: satchel.sources.plugin_scan.missing_manifest": (
        "needed only with plugin folders"
    ),
    "loader/builtin_providers.py: satchel.sources.skill_scan.scan_skills": (
        "needed only with skill folders"
    ),
    "loader/builtin_providers.py: satchel.sources.skill_findings.SkillScan": (
        "needed only with skill folders"
    ),
    "loader/trust_gate.py: satchel.trust.code_units.CodeUnit": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.runnable_files.CodeReader": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.programs_unchanged": (
        "needed only with projects"
    ),
    "loader/trust_gate.py: satchel.trust.code_units.plugin_key": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.plugin_unit": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.settings_unit": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.skill_unit": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.project_key": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.change_of_plugin": "needed only with projects",
    "loader/trust_gate.py: satchel.trust.code_units.change_of_settings": (
        "needed only with projects"
    ),
    "loader/project_grants.py: satchel.trust.trust_record.TrustStore": "needed only with projects",
    "loader/wanted_servers.py: satchel.trust.code_units.requested_variables": (
        "needed only with MCP servers"
    ),
    "loader/wanted_servers.py: satchel.trust.code_units.server_variables": (
        "needed only with MCP servers"
    ),
    "loader/wanted_servers.py: satchel.mcp_servers.server_addresses.as_name": (
        "needed only with MCP servers"
    ),
    "loader/wanted_servers.py: satchel.mcp_servers.server_declarations.plugin_server": (
        "needed only with MCP servers"
    ),
    "loader/wanted_servers.py: satchel.mcp_servers.server_declarations.user_server": (
        "needed only with MCP servers"
    ),
    "mcp_servers/browser_login.py: satchel.mcp_servers.login_auth.BrowserLoginAuth": (
        "it loads the SDK"
    ),
    "mcp_servers/server_login.py: satchel.mcp_servers.login_auth": "it loads the SDK",
    "mcp_servers/server_options.py: satchel.formats.server_table.ServerTable": "it loads pydantic",
    "mcp_servers/server_options.py: satchel.formats.table_model.read_table": "it loads pydantic",
    "plugins/plugin_reading.py: satchel.plugins.plugin_diagnostics.failed_contribution": (
        "needed only by an error"
    ),
    "plugins/plugin_diagnostics.py: satchel.runtime.redaction.redacted": "needed only by an error",
    "provider_registry.py: satchel.importing.code_guard.describe_error": "needed only by an error",
    "provider_registry.py: satchel.runtime.redaction.redacted": "needed only by an error",
    "provider_registry.py: satchel.providers.provided.failed": ("needed only with skills in code"),
    "provider_registry.py: satchel.providers.provided.nothing_provided": (
        "needed only with skills in code"
    ),
    "provider_registry.py: satchel.providers.provided.take": ("needed only with skills in code"),
    "provider_registry.py: satchel.providers.provider.provider_fault": (
        "needed only with skills in code"
    ),
    "host_registrations.py: satchel.contracts.tool_contract.ToolContract": (
        "needed only with contracts"
    ),
    "host_registrations.py: satchel.contracts.contract_binding.bind_contract": (
        "needed only with contracts"
    ),
    "satchel.py: satchel.mcp_servers.server_declarations.unique_server_names": (
        "needed only with MCP servers"
    ),
    "host_registrations.py: satchel.plugins.config_binding.bind_state": "needed only with tools",
    "host_registrations.py: satchel.providers.skill.Skill": "needed only with skills in code",
    "satchel.py: satchel.plugins.config_keys.require_fitting": "needed only to change values",
    "host_registrations.py: satchel.providers.skill.find_skill": "needed only with skills in code",
    "satchel.py: satchel.runtime.middleware_chain.ScopedMiddleware": "needed only with middleware",
    "reconciler.py: satchel.server_registry.ServerRegistry": "needed only with MCP servers",
    "satchel.py: satchel.session.session.Session": "needed only with a session",
    "satchel.py: satchel.session.session_options.SessionOptions": "needed only with a session",
    "configuration/selection_reader.py: satchel.formats.server_entries.read_claude_servers": (
        "few projects have servers"
    ),
    "configuration/selection_reader.py: satchel.formats.worker_table.WorkerTable": (
        "few users have workers"
    ),
    "sources/cached_scan.py: satchel.sources.skill_cache.load_scan": "it loads SQLite; most roots "
    "have few skills",
    "sources/cached_scan.py: satchel.sources.skill_cache.save_scan": "as above",
    "catalog_watch.py: satchel.files.watcher.change_events": "needed only by a watch",
    "satchel.py: satchel.tool_registry.ToolRegistry": "needed only with tools",
    "host_registrations.py: satchel.tools.FunctionTool": "needed only with tools",
    "host_registrations.py: satchel.tools.set_extended_model": "needed only with tools",
    "satchel.py: satchel.watch_thread.Changes": "needed only by a watch",
    "catalog_watch.py: satchel.watch_thread.WatchThread": "needed only by a watch",
    "reconciler.py: satchel.watch_thread.ImportRetry": "needed only by a watch",
    "session/calls.py: satchel.runtime.middleware.approval.ApprovalMiddleware": "few hosts ask",
    "session/call_api.py: satchel.contracts.contract_set.Contracts": "needed only with contracts",
    "session/call_api.py: satchel.prompt.tool_guide.ToolGuideEntry": "needed only by a planner",
    "session/call_api.py: satchel.prompt.tool_guide.render_guide": "needed only by a planner",
    "background_loop.py: satchel.runtime.event_loop_thread.EventLoopThread": ("it loads asyncio"),
    "loader/pass_provider.py: satchel.sources.empty_roots.empty_root": "few folders bring nothing",
    "session/call_api.py: satchel.session.sync_calls.run_sync": "most hosts have a loop",
    "session/call_api.py: satchel.session.sync_calls.stream_sync": "most hosts have a loop",
    "session/lazy_dispatcher.py: satchel.session.calls.CallDispatcher": "needed only with calls",
    "session/loaded_skills.py: satchel.runtime.skill_scripts.scripts_inside": (
        "needed only by a loaded skill"
    ),
    "session/own_tools.py: satchel.runtime.skill_scripts.scripts_of": (
        "a prompt needs only the names of the tools"
    ),
    "session/own_tools.py: satchel.runtime.background_tasks.task_tool": "a prompt needs the name",
    "session/own_tools.py: satchel.session.group_tool.GroupTool": "a prompt needs the name",
    "session/own_tools.py: satchel.session.search_tools.search_tool": "a prompt needs the name",
    "session/own_tools.py: satchel.session.tool_activation.activation_tool": (
        "a prompt needs the name"
    ),
    "session/own_tools.py: satchel.session.skill_tools.skill_tool": "a prompt needs the name",
    "session/rendered_step.py: satchel.tools.dialects.DIALECTS": "a prompt needs no schemas",
    "session/rendered_step.py: satchel.tools.dialects.with_deferred": "a prompt needs no schemas",
    "reconciler.py: satchel.mcp_servers.client_callbacks.ClientCallbacks": (
        "needed only with MCP servers"
    ),
    "session/session.py: satchel.session.resource_reading.read_resource": ("few sessions read one"),
    "session/session.py: satchel.contracts.prompt_variables.Filled": "needed only with contracts",
    "session/session.py: satchel.contracts.prompt_variables.unknown_variable": (
        "needed only with contracts"
    ),
    "session/session.py: satchel.session.planning.require_policy": "needed only with a policy",
    "session/session.py: satchel.session.saved_state.dump_state": "needed only to save a session",
    "session/session.py: satchel.session.saved_state.restore_state": (
        "needed only to save a session"
    ),
    "session/session_state.py: satchel.contracts.prompt_variables.values_of": (
        "needed only with contracts"
    ),
    "loader/reconcile_pass.py: satchel.sources.kept_skills.without_moved": (
        "few skills go missing"
    ),
    "session/step.py: satchel.prompt.change_summary.render_changes": "needed only after changes",
    "session/step.py: satchel.session.calls.with_context": "needed only with calls",
    "session/step.py: satchel.session.step_plan.StepPlan": "needed only by some frameworks",
    "shared.py: satchel.prompt.group_notes.render_sections": "needed only with a session",
    "shared.py: satchel.search.search_index.SearchIndex": "needed only by a search",
    "shared.py: satchel.search.search_documents.documents_of": "needed only by a search",
    "sources/open_plugins.py: satchel.formats.mcp_json_reader.read_mcp": "it loads pydantic",
    "importing/module_paths.py: satchel.formats.editable_finders.mapped_modules": (
        "needed only by editable installations"
    ),
    "sources/package_scan.py: satchel.sources.plugin_scan.read_toolkit": (
        "needed only with a manifest"
    ),
    "tool_registration.py: satchel.tools.FunctionTool": "needed only with tools",
    "tool_registration.py: satchel.tools.Tool": "needed only with tools",
    "tool_registration.py: satchel.tools.as_tool": "needed only with tools",
    "workers/worker_processes.py: satchel.mcp_servers.server_pool.ServerPool": (
        "needed only with a process"
    ),
    "workers/worker_processes.py: satchel.mcp_servers.server_options.ServerConfig": (
        "needed only with a process"
    ),
    "workers/worker_processes.py: satchel.mcp_servers.tool_definitions.ToolDefinition": (
        "needed only with a process"
    ),
    "workers/worker_processes.py: satchel.runtime.redaction.redacted": "needed only by an error",
    "satchel.py: satchel.runtime.scoped_runner.ScopedRunner": "few hosts have runners",
    "testing/fixtures.py: satchel.satchel.Satchel": "pytest imports the fixtures at every start",
}
"""Imports of our own modules inside functions, each with the reason."""


def test_satchel_modules_are_imported_at_the_top(modules):
    late = [
        f"{path}: {name}"
        for path, tree in modules.items()
        if package_of(path) not in ENTRY_PACKAGES
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for _, name in imports(function)
        if name.split(".")[0] == "satchel"
    ]
    assert set(late) == set(LATE_IMPORTS)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    line = [sys.executable, "-c", code]
    return set(subprocess.run(line, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("formats", {"yaml"}),
        ("runtime", {"asyncio", "pydantic", "pydantic_core", "griffe"}),
        ("tools", {"pydantic", "pydantic_core", "griffe"}),
    ],
)
def test_importing_a_package_loads_nothing_heavy(package, heavy):
    loaded = loaded_after(f"import satchel.{package}")
    assert f"satchel.{package}" in loaded
    assert not loaded & heavy


def test_importing_the_public_names_loads_nothing_heavy():
    # SkillHandler derives from a class of python-frontmatter, which imports pyyaml.
    names = (name for name in satchel.__all__ if name != "SkillHandler")
    loaded = loaded_after(f"from satchel import {', '.join(names)}")
    assert "satchel.satchel" in loaded
    assert not loaded & {"watchfiles", "rich", "mcp", "pydantic", "griffe", "yaml", "click"}
    assert "anyio" not in loaded


UNUSED_PACKAGES = (
    *("cli", "contracts", "formats", "mcp", "mcp_servers", "runtime", "search", "session"),
    *("setup", "tools"),
)
"""What a satchel needs only with skills, tools, servers or sessions."""

SLOW_LIBRARIES = {
    *("asyncio", "concurrent.futures", "ctypes", "difflib", "email", "email.parser", "logging"),
    *("griffe", "mcp", "pluggy", "pydantic", "subprocess", "ssl", "watchfiles", "yaml"),
}


def packages_in(loaded: set[str]) -> set[str]:
    """Return the packages of which at least one module is loaded; a package alone is small."""
    return {
        name.split(".")[1] for name in loaded if name.startswith("satchel.") if name.count(".") > 1
    }


def test_a_satchel_loads_only_what_it_needs():
    loaded = loaded_after("from satchel import Satchel; Satchel()")
    assert "satchel.loader.reconcile_pass" in loaded
    assert not packages_in(loaded) & set(UNUSED_PACKAGES)
    assert not loaded & SLOW_LIBRARIES
    assert not loaded & {"configparser", "json", "pathlib", "string", "tempfile", "urllib.parse"}
    assert "signal" not in loaded


def test_a_prompt_of_skills_loads_neither_servers_nor_contracts_nor_processes(tmp_path):
    folder = tmp_path / "greet"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nHello.\n")
    loaded = loaded_after(
        "from satchel import Satchel\n"
        f"step = Satchel({str(tmp_path)!r}).session().step()\n"
        "assert 'greet' in step.prompt(), step.prompt()"
    )
    unused = {"cli", "mcp", "mcp_servers", "runtime", "search", "setup"}
    assert not packages_in(loaded) & unused
    assert not {"satchel.contracts.tool_contract", "satchel.tools.function_tool"} & loaded
    # The handler of SKILL.md derives from a class of python-frontmatter, which imports pyyaml.
    assert not loaded & (SLOW_LIBRARIES - {"yaml"})


def test_the_bare_import_loads_only_how_to_load_the_rest():
    loaded = {name for name in loaded_after("import satchel") if name.startswith("satchel.")}
    assert loaded == {"satchel.lazy_exports"}


def test_the_package_exports_what_it_lists():
    assert satchel.__all__ == sorted(satchel.__all__, key=lambda name: (not name.isupper(), name))
    assert set(satchel.__all__) <= set(dir(satchel))
    assert all(getattr(satchel, name).__doc__ for name in satchel.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Satchell'"):
        satchel.Satchell  # noqa: B018 - the access is the test


def lazy_exports_of(tree: ast.Module) -> dict[str, str]:
    """Return the module of each lazy export of a package, relative to the package."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (call,) = (node for node in calls if ast.unparse(node.func) == "lazy_exports")
    exports = ast.literal_eval(call.args[1])
    return {name: module for module, names in exports.items() for name in names.split()}


LAZY_PACKAGES = sorted(
    path.relative_to(SOURCE).as_posix()
    for path in SOURCE.rglob("__init__.py")
    if "= lazy_exports(" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", LAZY_PACKAGES)
def test_a_lazy_package_exports_what_type_checkers_see(path, modules):
    package = ".".join(("satchel", *path.split("/")[:-1]))
    tree = modules[path]
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module.removeprefix(f"{package}.")
        for node in block.body
        for alias in node.names
    }
    assert seen == lazy_exports_of(tree)
    module = importlib.import_module(package)
    assert set(getattr(module, "__all__", seen)) == seen.keys()  # public packages have the list
    assert all(getattr(module, name) is not None for name in seen)


@pytest.mark.parametrize("path", LAZY_PACKAGES)
def test_no_lazy_export_has_the_name_of_a_module(path, modules):
    """Importing a module of that name would replace the export."""
    folder = (SOURCE / path).parent
    names = {item.stem for item in folder.glob("*.py")} | {item.name for item in folder.iterdir()}
    assert not lazy_exports_of(modules[path]).keys() & names


def test_all_packages_with_exports_are_lazy(modules):
    eager = [
        path
        for path, tree in modules.items()
        if path.endswith("__init__.py") and path not in LAZY_PACKAGES
        if any(name.startswith("satchel.") for _, name in imports(tree))
    ]
    assert sorted(eager) == EAGER_PACKAGES


EAGER_PACKAGES = [
    "builtin/__init__.py",  # a plugin
    "runtime/executors/__init__.py",  # everything in it is small
    "runtime/middleware/__init__.py",
    "tools/dialects/__init__.py",  # a table of functions
]


# ---- platforms -------------------------------------------------------------------------------

POSIX_MODULES = {"fcntl", "grp", "pwd", "pty", "resource", "termios", "tty"}
POSIX_NAMES = {
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod"),
    *("fork", "geteuid", "getuid", "killpg", "mkfifo", "setsid", "statvfs", "SIGHUP", "SIGKILL"),
    *("SIGQUIT", "SIGSTOP", "SIGUSR1", "SIGUSR2", "add_signal_handler", "setrlimit"),
}
POSIX_USES = {
    "cli/signal_handling.py: add_signal_handler": "left out where it raises NotImplementedError",
    "trust/trust_record.py: geteuid": "only where it exists",
    "mcp/bearer_tokens.py: geteuid": "only where it exists",
    "mcp/worker_main.py: resource": "no limit where it cannot be imported",
    "mcp/worker_main.py: setrlimit": "no limit where it cannot be imported",
    "files/process_group.py: killpg": "not on Windows",
    "files/atomic_write.py: fchmod": "only where it exists",
    "files/atomic_write.py: fcntl": "no lock where it cannot be imported",
    "files/compiled_cache.py: getuid": "only where it exists",
    "files/contained_files.py: fchmod": "only where folders are walked by handle",
    "files/contained_files.py: fcntl": "not on Windows",
    "sources/skill_cache.py: getuid": "only where it exists",
    "importing/process_state.py: resource": "not compared",
    "importing/process_state.py: setrlimit": "not compared",
}
"""What only POSIX has, and what happens elsewhere; docs/reference/platforms.md says it to users."""


def test_what_only_posix_has_is_used_where_the_other_side_is_written(modules):
    used = set()
    for path, tree in modules.items():
        names = {name.split(".")[0] for _, name in imports(tree)} & POSIX_MODULES
        names |= {
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
        } & POSIX_NAMES
        used |= {f"{path}: {name}" for name in names}
    assert used == POSIX_USES.keys()


# ---- state -----------------------------------------------------------------------------------


def mutable_parts(value: ast.expr, *, is_constant: bool) -> Iterator[ast.expr]:
    """Yield the mutable parts of a value; an UPPER_CASE constant may be a filled container."""
    match value:
        case ast.Lambda() | ast.Subscript() | ast.Constant() | ast.Name():
            return
        case ast.Call():
            if ast.unparse(value.func) not in IMMUTABLE_CALLS:
                yield value
            return
        case ast.Dict(keys=items) | ast.List(elts=items) | ast.Set(elts=items):
            if not (items and is_constant):
                yield value
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield value
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            yield from mutable_parts(child, is_constant=is_constant)


def mutable_state(path: str, tree: ast.Module) -> list[str]:
    """Return the module-level and class-level values of a module that can change."""
    faults, classes = [], [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in (statement for scope in (tree, *classes) for statement in scope.body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = ast.unparse(target)
            if name == "__all__" or (path, name) in PROCESS_WIDE:
                continue
            parts = mutable_parts(node.value, is_constant=name.isupper())
            faults += [f"{path}: {name} holds {ast.unparse(part)}" for part in parts]
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(decorator_list=[*decorators], args=arguments):
                names = {ast.unparse(item).split("(")[0] for item in decorators}
                caches = names & {"cache", "lru_cache", "functools.cache", "functools.lru_cache"}
                is_listed = (path, node.name) in PROCESS_WIDE
                if caches and not is_listed and (arguments.args or arguments.kwonlyargs):
                    faults.append(f"{path}: {node.name} caches its arguments")
            case (
                ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
                | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=_))
            ) if name.isupper():
                if isinstance(node, ast.Subscript) or node.func.attr in MUTATORS:
                    faults.append(f"{path}: {ast.unparse(node)} changes a constant")
    return faults


def test_no_module_and_no_class_holds_state(modules):
    faults = [fault for path, tree in modules.items() for fault in mutable_state(path, tree)]
    assert faults == []


@pytest.mark.parametrize(
    "text",
    [
        "_SEEN = {}",
        "_seen = {'a': 1}",
        "_seen = dict()",
        "_PAIR = ({'a': []},)",
        "class A:\n    seen: dict = {}",
        "class Thing: ...\n_thing = Thing()",
        "SEEN = {'a': 1}\ndef f():\n    SEEN['b'] = 2",
        "SEEN = {'a': 1}\ndef f():\n    SEEN.update(b=2)",
        "from functools import cache\n@cache\ndef f(x): ...",
    ],
)
def test_state_in_a_module_is_refused(text):
    assert mutable_state("prompt/group_notes.py", ast.parse(text))


# ---- modules that ruff bans (TID251) -------------------------------------------------------------


def banned(*arguments: str, text: str | None = None) -> list[dict]:
    line = [sys.executable, "-m", "ruff", "check", "--select=TID251", "--output-format=json"]
    run = subprocess.run(
        [*line, *arguments], input=text, capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert run.returncode in {0, 1}, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import statistics\nstatistics.mean([1])", 0),
        ("import os\nos.path.join('a', 'b')", 0),
        ("import time\ntime.monotonic()", 0),
        ("import os as system\nsystem.remove('x')", 1),
        ("from os.path import exists", 1),
        ("def f():\n    import subprocess", 1),
        ("from time import time", 1),
    ],
)
def test_a_middleware_may_import_only_modules_without_side_effects(text, count):
    path = "src/satchel/runtime/middleware/added.py"
    assert len(banned("--stdin-filename", path, "-", text=text)) == count


def excepted() -> list[str]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    ignores = settings["per-file-ignores"].items()
    return [path for path, codes in ignores if path.startswith("src/") and "TID251" in codes]


def test_every_exception_to_the_banned_modules_is_needed():
    faults = banned("--config", "lint.per-file-ignores = {}", "src")
    users = {Path(fault["filename"]).relative_to(REPOSITORY).as_posix() for fault in faults}
    assert [path for path in excepted() if not any(fnmatch(user, path) for user in users)] == []


def test_only_excepted_modules_open_files(modules):
    """Ruff cannot ban a built-in function."""
    openers = [
        f"src/satchel/{path}"
        for path, tree in modules.items()
        if any(isinstance(node, ast.Name) and node.id == "open" for node in ast.walk(tree))
    ]
    assert openers
    assert [path for path in openers if not any(fnmatch(path, it) for it in excepted())] == []


def test_every_page_names_the_addresses_of_the_package():
    """Whoever publishes under other addresses changes them in all places."""
    urls = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["urls"]
    site, repository = urls["Documentation"].rstrip("/"), urls["Source"]
    address = re.compile(r"https://github\.com/[\w.-]+/satchel\b|https://satchel\.\w+\b")
    written = [
        (path.relative_to(REPOSITORY).as_posix(), item)
        for pattern in ("*.*", "docs/**/*.md", "tools/*.py", "src/**/*.py", ".github/**/*.yml")
        for path in REPOSITORY.glob(pattern)
        if path.suffix in {".md", ".toml", ".yml", ".py"}
        for item in address.findall(path.read_text(encoding="utf-8"))
    ]
    assert len({path for path, _ in written}) > 4
    assert [line for line in written if line[1] not in {site, repository}] == []


def test_the_contract_about_the_sdk_lists_each_package_and_module():
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]
    (listed,) = (it["source_modules"] for it in contracts["contracts"] if it["id"] == "protocol")
    names = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    names -= {"__init__", "__pycache__", "mcp", "mcp_servers"}
    assert {*listed} == {f"satchel.{name}" for name in names}
