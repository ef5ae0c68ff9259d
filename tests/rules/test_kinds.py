"""Only its own package asks of which kind a source, server or skill reader is."""

import ast

KINDS = {
    "sources": "SkillFinding PluginFinding PackageFinding LocalSkillReader CommandReader",
    "trust": "LockedSkillReader",
    "providers": "GivenFiles Skill",
    "loader": "_GivenCode _McpServers _PluginFolder _SkillFolder _SkillsOfPlugins "
    "_InstalledPackages",
    "mcp_servers": "StdioServer HttpServer SseServer WorkerServer ServerConfig RemoteClient "
    "RemoteTool RemotePrompt RemoteResource RemoteSkillReader",
    "workers": "WorkerTool WorkerHandle",
}
"""The classes of kinds, by the package that may ask for them."""
OWNERS = {name: package for package, names in KINDS.items() for name in names.split()}
EXCEPTIONS = {
    "server_registry.py: ServerConfig": "checks what the host passes",
    "server_registry.py: RemoteClient": "checks what the host passes",
    "server_registry.py: StdioServer HttpServer SseServer": "checks what the host passes",
    "host_registrations.py: Skill": "register_skill takes a skill or a path",
    "cli/installer.py: PluginFinding": "`satchel add` found a skill or a plugin, and asks which",
    "cli/mcp_login.py: StdioServer": "a command about logins, which only the network has",
    "mcp/resource_followers.py: RemoteResource": "no other resource can be followed",
    "mcp/worker_bootstrap.py: PluginFinding": "loads what it is sent in its own process",
    "session/skill_tools.py: LockedSkillReader": "no other reader verifies a whole folder",
    "trust/tree_digest.py: SkillFinding": "which files count differs",
    "trust/tree_digest.py: PluginFinding": "as above",
    "web/plugins_page.py: WorkerTool": "the page shows whether a plugin has its own process",
    "web/servers_page.py: RemoteTool": "the page shows the definitions at the servers",
    "web/skill_page.py: LocalSkillReader": "the page writes to the folder",
}
"""Further places that ask, each with the reason."""
COMPARED = {
    "cli/missing_tools.py": "so the record of names and `disable` call a server",
    "cli/selection_editor.py": "`disable` names a declared server",
    "catalog/name_holds.py": "its tools have pins; a tool of a plugin could pose as remote",
    "loader/name_choices.py": "as above",
    "loader/wanted_servers.py": "`disable` names a declared server before it is connected",
    "session/skill_permissions.py": "skills name a server's tools as mcp__server__tool",
    "web/servers_page.py": "the page lists the tools of each server",
}
"""Places that know how the catalog names a server, each with the reason."""


def kinds_asked(node: ast.Call) -> list[str]:
    """Return the kinds in `isinstance(value, kinds)`."""
    is_question = isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    if not is_question or len(node.args) != 2:
        return []
    parts = ast.walk(node.args[1])
    names = [getattr(part, "id", getattr(part, "attr", "")) for part in parts]
    return sorted((name for name in names if name in OWNERS), key=list(OWNERS).index)


def test_no_other_package_asks_for_the_kind_of_a_source_or_server(modules):
    asked = {
        f"{path}: {' '.join(kinds)}"
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (kinds := [k for k in kinds_asked(node) if OWNERS[k] != path.split("/")[0]])
    }
    assert asked == {place for place in EXCEPTIONS if place.partition(":")[0] in modules}


def test_few_places_know_how_the_catalog_names_a_server(modules):
    knowing = {
        path
        for path, tree in modules.items()
        if path.split("/")[0] != "mcp_servers"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == "mcp:"
    }
    assert knowing == set(COMPARED)


def test_a_pass_names_no_kind_of_source(modules):
    text = ast.unparse(modules["loader/reconcile_pass.py"])
    assert "isinstance" not in text
    assert not [name for name in (*OWNERS, "RootKind", "PluginFormat") if name in text.split()]
