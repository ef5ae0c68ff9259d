"""Law 1 as a check: imports only go down a floor, and rooms on one floor do not know each other.

Takes the name of a module, such as `prompt.notes`, and a source text, and returns what it has
against it: so `test_the_laws_can_fail.py` can try texts that nobody wrote.
"""

import ast
from collections.abc import Iterator

FLOORS = [
    {"errors", "text", "settings"},
    {"diagnostics", "names"},
    {"tools", "manifests"},
    {"contracts"},
    {"sources"},
    {"catalog"},
    {"groups"},
    {"prompt", "runtime", "search"},
    {"plugins", "remote", "setup"},
    {"shared", "workers"},
    {"loader", "carrying", "watching", "session", "registering", "registry"},
    {"satchel"},
    {"mcp"},
    {"cli", "builtin", "testing"},
    {"__init__", "__main__"},
]
FACES = {"cli", "mcp", "builtin"}

IMPORTED_LATE = {
    **dict.fromkeys(("yaml", "griffe", "pydantic", "pydantic_core", "watchfiles"), "third party"),
    "concurrent": "asyncio has it already; needed when a cached call runs",
    **dict.fromkeys(("jsonschema_rs", "platformdirs", "dotenv"), "third party"),
    **dict.fromkeys(("anyio", "httpx2", "mcp", "mcp_types"), "needed when a server is reached"),
    "tomllib": "needed when the user switched something on or off",
    "opentelemetry": "third party, and absent from most machines",
    "traceback": "needed when a tool fails",
    "asyncio": "whoever awaits has it already; listing skills does without",
    "logging": "needed when a tool fails",
    "mimetypes": "needed when a file of a skill is served",
    "zlib": "needed when a damaged wheel is read",
    "shutil": "needed when a script is run; it brings compression",
    "subprocess": "needed when a program is run",
    "sqlite3": "needed when somebody searches; some Pythons are without",
    **dict.fromkeys(("bz2", "gzip", "lzma", "tarfile", "zipfile"), "needed for an archive"),
    **dict.fromkeys(
        ("http", "pooch", "requests", "ssl", "urllib3"), "needed when a plugin downloads something"
    ),
    "fcntl": "not every system has it",
    "email": "needed when a distribution is installed",
    "click": "needed when a plugin brings commands; the command line has it already",
    "importlib": "its readers are needed when a plugin reads data of its own",
}
"""What a function may import, because importing it takes longer than all that is ours."""

OURS_IMPORTED_LATE = {
    "satchel.formats.skill_handler.SkillHandler": "its base class loads python-frontmatter",
}


def room_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def floor_of(room: str) -> int:
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), len(FLOORS))


def against_the_floors(module: str, source: str) -> list[str]:
    """Imports of ours go down a floor, by their full names, and stand at the top."""
    here, tree, faults = room_of(module), ast.parse(source), []
    for node in imports(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or node.names[0].name == "*"):
            faults.append(f"{module}: imports are written out in full: {ast.unparse(node)}")
        for name in imported(node):
            if name.split(".")[0] != "satchel":
                continue
            if isinstance(node, ast.Import):
                # It would bind the front door, behind which all rooms are.
                if name != "satchel" or here not in FACES:
                    faults.append(f"{module}: write `from satchel.room import name`, not {name}")
                continue
            there = name.split(".")[1]
            if there != here and floor_of(there) >= floor_of(here):
                faults.append(f"{module} must not know satchel.{there}")
    if here not in FACES:
        for node in _imports_in_functions(tree):
            faults += [
                f"{module}: {name} is imported inside a function"
                for name in imported(node)
                if name.split(".")[0] not in IMPORTED_LATE and name not in OURS_IMPORTED_LATE
            ]
    return faults


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def _imports_in_functions(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node)


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the dotted names of what an import brings."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names]
