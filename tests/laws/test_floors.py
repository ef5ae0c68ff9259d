"""The laws of the design: imports go down, the middle is pure, the front door is light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import satchel

SOURCE = Path(satchel.__file__).parent

FLOORS = [
    {"errors", "text", "settings"},
    {"diagnostics", "names"},
    {"tools", "manifests", "contracts"},
    {"sources"},
    {"catalog"},
    {"groups"},
    {"prompt", "runtime"},
    {"plugins"},
    {"loader", "watching", "session"},
    {"satchel"},
    {"cli", "mcp"},
    {"__main__"},
]
FRONT_DOOR = "__init__"

PURE_ROOMS = {"errors", "text", "settings", "diagnostics", "names", "tools", "manifests"} | {
    "catalog",
    "groups",
    "prompt",
    "plugins",
    "loader",
    "session",
}
WORLDLY_MODULES = {"subprocess", "socket", "time", "datetime", "shutil", "tempfile", "urllib"} | {
    "http",
    "watchfiles",
    "glob",
    "random",
    "signal",
    "multiprocessing",
}
WORLDLY_CALLS = {"open", "input", "print"}
PURE_PARTS_OF_OS = {"path", "fspath", "PathLike", "sep", "fsencode", "fsdecode"}
WORLDLY_PATH_CALLS = {"exists", "isfile", "isdir", "islink", "realpath", "getmtime", "getsize"} | {
    "abspath",
    "expanduser",
    "lexists",
}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield ".".join(path.relative_to(SOURCE).with_suffix("").parts), path


def room_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def floor_of(room: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports of ours are written out in full"
            name = node.module or ""
            top = name == "satchel"
            names = [f"{name}.{alias.name}" for alias in node.names] if top else [name]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        rooms |= {name.split(".")[1] for name in names if name.startswith("satchel.")}
    return rooms


@pytest.mark.parametrize(("module", "path"), list(modules()))
def test_imports_only_go_down_a_floor(module, path):
    here = room_of(module)
    if here == FRONT_DOOR:
        return
    for there in imported_rooms(path) - {here}:
        assert floor_of(there) < floor_of(here), f"{module} must not know satchel.{there}"


def test_every_room_has_its_floor():
    rooms = {room_of(module) for module, _ in modules()} - {FRONT_DOOR}
    assert rooms <= set().union(*FLOORS)


@pytest.mark.parametrize(("module", "path"), list(modules()))
def test_pure_rooms_touch_no_disk_process_network_or_clock(module, path):
    if room_of(module) not in PURE_ROOMS:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
            for name in names:
                assert (name or "").split(".")[0] not in WORLDLY_MODULES, f"{module}: {name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os":
                assert node.attr in PURE_PARTS_OF_OS, f"{module}: os.{node.attr}"
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                assert called.id not in WORLDLY_CALLS, f"{module}: {called.id}()"
            if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "os.path":
                assert called.attr not in WORLDLY_PATH_CALLS, f"{module}: os.path.{called.attr}"


@pytest.mark.parametrize(("module", "path"), list(modules()))
def test_only_the_store_and_the_two_objects_hold_state_that_changes(module, path):
    """Outside them no module has a `global`, and no value in it is a list, dict or set to fill."""
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)]
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.List | ast.Dict | ast.Set):
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            name = target.lstrip("_")
            assert target == "__all__" or name.isupper(), f"{module}: {target} can change"


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_importing_satchel_loads_nothing_heavy():
    names = ", ".join(satchel.__all__)
    loaded = loaded_after(f"from satchel import {names}")
    assert "satchel.satchel" in loaded
    for heavy in ("watchfiles", "rich", "mcp", "pydantic", "griffe", "yaml", "click", "anyio"):
        assert heavy not in loaded


def test_the_bare_import_loads_no_room_at_all():
    assert not {name for name in loaded_after("import satchel") if name.startswith("satchel.")}


def test_the_front_door_is_what_it_says():
    assert satchel.__all__ == sorted(satchel.__all__)
    assert set(satchel.__all__) <= set(dir(satchel))
    for name in satchel.__all__:
        assert getattr(satchel, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'Satchell'"):
        satchel.Satchell  # noqa: B018 - the access is the test
