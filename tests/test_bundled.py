"""The bundled skills and plugins follow their own advice."""

import asyncio
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from satchel import Satchel
from satchel.diagnostics import strictly
from satchel.formats.skill_manifest import read_skill
from satchel.formats.toolkit_manifest import read_plugin
from satchel.settings import Limits

ROOT = Path(__file__).parents[1]
UNITS = ROOT / "plugins/satchel-units"
SKILLS = sorted([*(ROOT / "skills").glob("*/SKILL.md"), *(ROOT / "plugins").rglob("SKILL.md")])


def call(app, tool, **arguments):
    return asyncio.run(app.session().call(tool, arguments))


def problem_codes(catalog) -> list[str]:
    """Return the problems, without those of installed plugins that are not enabled."""
    return [item.code for item in catalog.diagnostics if item.code != "plugin-not-enabled"]


@pytest.fixture(scope="module")
def clock():
    return Satchel(plugins=[ROOT / "plugins"])


@pytest.fixture(scope="module")
def units(tmp_path_factory):
    """Build the package, and put it on the import path as if it were installed."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"),
            *("--no-deps", "--wheel-dir", str(folder), str(UNITS)),
        ],
        check=True,
        timeout=120,
    )
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    sys.path.insert(0, str(folder / "site"))
    app = Satchel(entry_points=["units"])
    assert "satchel_units.tools" in sys.modules
    yield app
    sys.path.remove(str(folder / "site"))


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_bundled_skills_pass_strict_validation(path):
    reading = read_skill(path.read_bytes(), path.parent.name, str(path), Limits())
    assert reading.value is not None
    assert strictly(reading.diagnostics) == ()


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_a_skill_says_when_to_use_it_and_stays_concise(path):
    skill = read_skill(path.read_bytes(), path.parent.name, str(path), Limits()).value
    assert "Use when" in skill.description
    assert len(skill.body.splitlines()) < 200


def test_there_are_at_least_four_skills_for_users_of_satchel():
    app = Satchel(skills=[ROOT / "skills"])
    assert len(app.catalog.skills) >= 4
    assert problem_codes(app.catalog) == []


def test_the_folder_plugin_passes_strict_validation():
    path = ROOT / "plugins/clock/toolkit.yaml"
    reading = read_plugin(path.read_bytes(), "clock", str(path), Limits())
    assert strictly(reading.diagnostics) == ()


def test_the_folder_plugin_loads_clean_with_tools_notes_and_a_skill(clock):
    assert problem_codes(clock.catalog) == []
    assert [*clock.catalog.plugins] == ["clock"]
    assert [*clock.catalog.tools] == ["convert_time", "current_time", "time_between"]
    assert [*clock.catalog.skills] == ["plan-across-time-zones"]
    assert "current_time" in clock.session().activated_notes()


def test_every_parameter_of_a_bundled_tool_is_described(clock, units):
    for app in (clock, units):
        for schema in app.session().schemas():
            for name, about in schema["function"]["parameters"]["properties"].items():
                assert about.get("description"), (schema["function"]["name"], name)


def test_the_clock_returns_the_time(clock):
    assert call(clock, "current_time").structured["timezone"] == "UTC"


def test_the_clock_converts_on_the_right_side_of_daylight_saving_time(clock):
    def oslo(day):
        result = call(
            clock,
            "convert_time",
            time=f"2026-03-{day}T09:00",
            source="America/New_York",
            target="Europe/Oslo",
        )
        return result.structured["time"][11:16]

    assert (oslo(20), oslo(31)) == ("14:00", "15:00")


def test_the_clock_counts_a_day_of_twenty_three_hours(clock):
    result = call(
        clock, "time_between", start="2026-03-29", end="2026-03-30", timezone="Europe/Oslo"
    )
    assert result.structured == {"calendar_days": 1, "hours": 23.0, "seconds": 82800.0}


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("current_time", {"timezone": "oslo"}, "Europe/Oslo"),
        ("current_time", {"timezone": "../../etc/passwd"}, "Use a name"),
        ("time_between", {"start": "soon", "end": "2026-01-01"}, "write it like"),
        (
            "convert_time",
            {"time": "0001-01-01", "source": "Asia/Tokyo", "target": "UTC"},
            "outside the years",
        ),
    ],
)
def test_the_clock_says_to_the_model_what_to_do_instead(clock, tool, arguments, hint):
    result = call(clock, tool, **arguments)
    assert (result.error_code, hint in result.text) == ("tool_error", True)


def test_the_package_brings_tools_a_group_with_notes_and_a_skill(units):
    plugin = units.catalog.plugins["units"]
    assert plugin.diagnostics == ()
    assert units.catalog.groups["units"].tools == ("convert_units", "list_units")
    assert "KiB" in units.session().activated_notes()
    assert [*units.catalog.skills] == ["convert-with-care"]
    assert os.path.isfile(os.path.join(units.catalog.skills["convert-with-care"].path, "SKILL.md"))


def test_the_package_is_known_without_importing_it(units):
    app = Satchel(entry_points=["units"], run_code=False)
    (plugin,) = [item for item in app.catalog.all_plugins if item.name == "units"]
    supply = plugin.contribution
    assert (plugin.version, plugin.description[:16]) == ("1.0.0", "Exact conversion")
    assert [tool.name for tool in supply.tools] == ["convert_units", "list_units"]
    assert ([field.name for field in supply.config], supply.code) == (["digits"], None)
    assert [*app.catalog.skills] == ["convert-with-care"]


def test_the_package_rounds_as_configured(units):
    app = Satchel(entry_points=["units"], config={"units": {"digits": 3}})
    assert call(app, "convert_units", value="12.5", source="km", target="mi").text == "7.77 mi"


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        ("12.5", "km", "miles", "7.76713990297 miles"),
        (100, "C", "Fahrenheit", "212 Fahrenheit"),
        ("-40", "F", "C", "-40 C"),
        (1, "GiB", "MB", "1073.741824 MB"),
        ("0.1", "m", "cm", "10 cm"),
        ("1e20", "m", "km", "100000000000000000 km"),
    ],
)
def test_the_package_converts_exactly(units, value, source, target, expected):
    assert call(units, "convert_units", value=value, source=source, target=target).text == expected


@pytest.mark.parametrize(
    ("value", "source", "target", "hint"),
    [
        ("1", "gallon", "L", "us gallon"),
        ("1", "m", "kg", "m is a length and kg a mass"),
        ("much", "m", "km", "is not a number"),
        ("1e999999", "m", "km", "out of range"),
        ("NaN", "m", "km", "out of range"),
    ],
)
def test_the_package_says_to_the_model_what_to_do_instead(units, value, source, target, hint):
    result = call(units, "convert_units", value=value, source=source, target=target)
    assert (result.error_code, hint in result.text) == ("tool_error", True)


def test_the_package_lists_its_units(units):
    assert call(units, "list_units", quantity="time").structured == {
        "time": ["s", "ms", "min", "h", "d", "wk"]
    }
    assert call(units, "list_units", quantity="colour").error_code == "tool_error"
