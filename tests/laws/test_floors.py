"""The laws of the design: imports go down, the middle is pure, the front door is light."""

import subprocess
import sys
from pathlib import Path

import pytest
from law_of_floors import FLOORS, against_the_floors, room_of
from law_of_purity import EXCEPTIONS, PURE, against_purity, used
from law_of_state import KEPT, WRITTEN_INTO, against_statelessness

import satchel

SOURCE = Path(satchel.__file__).parent
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path.read_text(encoding="utf-8")
    for path in sorted(SOURCE.rglob("*.py"))
}
ROOMS = {room_of(module) for module in MODULES}

every_module = pytest.mark.parametrize("module", MODULES)


@every_module
def test_imports_only_go_down_a_floor(module):
    assert against_the_floors(module, MODULES[module]) == []


@every_module
def test_what_touches_disk_process_network_or_clock_is_named_with_its_reason(module):
    assert against_purity(module, MODULES[module]) == []


@every_module
def test_no_module_and_no_class_keeps_what_changes(module):
    assert against_statelessness(module, MODULES[module]) == []


def test_every_room_has_its_floor_and_its_list():
    assert set().union(*FLOORS) >= ROOMS
    assert PURE.keys() | EXCEPTIONS.keys() >= ROOMS


@pytest.mark.parametrize("room", PURE)
def test_the_list_of_a_pure_room_is_no_longer_than_needed(room):
    texts = [text for module, text in MODULES.items() if room_of(module) == room]
    names = {name for text in texts for name in used(text)}
    for name in PURE[room]:
        assert any(f"{item}.".startswith(f"{name}.") for item in names), f"{room} needs no {name}"


def test_every_exception_is_of_a_module_that_exists():
    excepted = {*EXCEPTIONS, *WRITTEN_INTO, *(module for module, _ in KEPT)}
    assert excepted <= MODULES.keys() | ROOMS


def test_only_the_rooms_for_it_import_the_protocols_sdk():
    for module, text in MODULES.items():
        if room_of(module) not in {"mcp", "remote"}:
            assert not {name.split(".")[0] for name in used(text)} & {"mcp", "mcp_types"}, module


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_importing_satchel_loads_nothing_heavy():
    names = ", ".join({*satchel.__all__} - {"SkillHandler"})  # is a class of python-frontmatter
    loaded = loaded_after(f"from satchel import {names}")
    assert "satchel.satchel" in loaded
    for heavy in ("watchfiles", "rich", "mcp", "pydantic", "griffe", "yaml", "click", "anyio"):
        assert heavy not in loaded


def test_the_bare_import_loads_no_room_at_all():
    assert not {name for name in loaded_after("import satchel") if name.startswith("satchel.")}


def test_the_front_door_is_what_it_says():
    assert satchel.__all__ == sorted(satchel.__all__, key=lambda name: (not name.isupper(), name))
    assert set(satchel.__all__) <= set(dir(satchel))
    for name in satchel.__all__:
        assert getattr(satchel, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'Satchell'"):
        satchel.Satchell  # noqa: B018 - the access is the test
