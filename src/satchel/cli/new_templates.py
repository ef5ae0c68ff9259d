"""Templates of `satchel new` for a skill, a plugin folder and a package."""

import json
import keyword
import re
import sys
from collections.abc import Collection, Mapping

from satchel.formats.manifest_schemas import toolkit_schema
from satchel.importing.distributions import normalized
from satchel.names import SKILL_NAME_LENGTH

# Some YAML parsers do not read these as strings.
_YAML_KEYWORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

_SKILL = """\

# {title}

1. Write the first step, as you would explain it to a capable new colleague.
2. Name exact commands and files.
3. Explain how to check the result.

## Troubleshooting

Name the most common mistake, and how to fix it.

Put long tables, templates and scripts into files next to this one, and name them here with their
relative path. They are read only when they are needed.
"""

_MANIFEST = """\
name: {name}
version: 0.1.0
description: {description}
active: true
notes: |
  {notes}
"""

_NOTES = (
    "Explain here how to use the tools together. This is in the prompt while the group is active."
)

_TOOLS = '''\
"""The tools of this plugin: all functions with `@tool`."""

from satchel import ToolError, tool


@tool(examples=[{{"text": "again", "times": 2}}])
def {function}(text: str, times: int = 1) -> str:
    """Repeat a text. Replace this tool with your own.

    Args:
        text: What to repeat.
        times: How often.
    """
    if times < 1:
        raise ToolError("times must be 1 or more.")
    return " ".join([text] * times)
'''

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.1.0"
description = {description}
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["satchel"]

[project.entry-points."satchel.plugins"]
"{name}" = "{package}"

[dependency-groups]
dev = ["pytest"]

[tool.hatch.build.targets.wheel]
packages = ["src/{package}"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

_SCHEMA_FILE = "toolkit.schema.json"
_SCHEMA_LINE = f"# yaml-language-server: $schema={_SCHEMA_FILE}"

_INIT = '"""A plugin for Satchel, described by the toolkit.yaml next to this file."""\n'

_TESTS = '''\
"""Tests of the plugin; they run without installing it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from satchel import Satchel
from satchel.testing import scratch_satchel

PLUGIN = Path(__file__).parents[1] / "src" / "{package}"


@pytest.fixture
def app() -> Iterator[Satchel]:
    with scratch_satchel(plugins=[PLUGIN]) as app:
        yield app


def test_the_plugin_loads(app: Satchel) -> None:
    assert list(app.catalog.tools) == ["{function}"]
    assert list(app.catalog.skills) == ["{skill}"]


def test_the_tool_repeats_a_text(app: Satchel) -> None:
    result = asyncio.run(app.session().call("{function}", {{"text": "a", "times": 2}}))
    assert result.text == "a a"


def test_the_tool_explains_a_wrong_argument(app: Satchel) -> None:
    result = asyncio.run(app.session().call("{function}", {{"text": "a", "times": 0}}))
    assert result.text == "times must be 1 or more."
'''

_README = """\
# {name}

A plugin for Satchel.

```console
$ satchel validate .
$ satchel test .
$ pip install . pytest
$ pytest
$ satchel schema --entry-points {name}
```

It depends on `satchel`. As long as the package index does not have it, make a wheel of your clone
of Satchel with `pip wheel --no-deps --wheel-dir wheels PATH`, and add `--find-links wheels` to each
`pip install`.

| file | content |
| --- | --- |
| `src/{package}/toolkit.yaml` | the manifest, which is read without running code |
| `src/{package}/tools.py` | the tools: functions with `@tool` |
| `src/{package}/skills/` | a skill that is part of the package |
| `tests/` | tests with `satchel.testing` |
"""


def skill_files(name: str, description: str) -> dict[str, str]:
    """Return the files of a skill by their paths in its folder."""
    import frontmatter  # lazy: only needed here

    from satchel.formats.skill_handler import SkillHandler

    body = _SKILL.format(title=name.replace("-", " ").capitalize())
    post = frontmatter.Post(body, name=name, description=description)
    return {"SKILL.md": frontmatter.dumps(post, handler=SkillHandler())}


def plugin_files(name: str, description: str, skill_description: str) -> dict[str, str]:
    """Return the files of a plugin's folder."""
    skill = short_name(name)
    manifest = _MANIFEST.format(name=_in_yaml(name), description=_quoted(description), notes=_NOTES)
    return {
        "toolkit.yaml": f"{_SCHEMA_LINE}\n{manifest}",
        _SCHEMA_FILE: json.dumps(toolkit_schema(), indent=2) + "\n",
        "tools.py": _TOOLS.format(function=_function(name)),
        **_prefixed(f"skills/{skill}", skill_files(skill, skill_description)),
    }


def package_files(
    name: str, description: str, skill_description: str, taken: Collection[str] = ()
) -> dict[str, str]:
    """Return the files of a package with a plugin and its tests."""
    package = package_name(name, taken)
    values = {
        "name": name,
        "distribution": distribution_name(name, taken),
        "package": package,
        "function": _function(name),
        "skill": short_name(name),
        "description": _quoted(description),
    }
    return {
        "pyproject.toml": _PYPROJECT.format_map(values),
        "README.md": _README.format_map(values),
        **_prefixed(f"src/{package}", plugin_files(name, description, skill_description)),
        f"src/{package}/__init__.py": _INIT,
        f"src/{package}/py.typed": "",
        f"tests/test_{package}.py": _TESTS.format_map(values),
    }


def short_name(name: str) -> str:
    """Return a plugin's name as a valid skill name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:SKILL_NAME_LENGTH].strip("-")


def package_name(name: str, taken: Collection[str] = ()) -> str:
    """Return the name of the Python package for a plugin.

    `taken` contains the normalized names of other packages and distributions.
    """
    module = _as_module(name)
    return f"{module}_plugin" if _is_taken(name, taken) else module


def distribution_name(name: str, taken: Collection[str] = ()) -> str:
    """Return the name of the distribution for a plugin."""
    return f"{name}-plugin" if _is_taken(name, taken) else name


def _is_taken(name: str, taken: Collection[str]) -> bool:
    module = _as_module(name)
    is_python = keyword.iskeyword(module) or module in sys.stdlib_module_names
    return is_python or not {normalized(module), normalized(name)}.isdisjoint({"satchel", *taken})


def _as_module(name: str) -> str:
    return re.sub(r"^(?=\d)", "plugin_", short_name(name).replace("-", "_"))


def _function(name: str) -> str:
    return re.sub(r"^(?=\d)", "tool_", short_name(name).replace("-", "_"))[:48] + "_repeat"


def _prefixed(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{path}": text for path, text in files.items()}


def _in_yaml(name: str) -> str:
    """Return a name as YAML, with quotes if it would not be a string otherwise."""
    return json.dumps(name) if name.isdigit() or name.casefold() in _YAML_KEYWORDS else name


def _quoted(text: str) -> str:
    """Return any text as a string literal of YAML, TOML and Python."""
    return json.dumps(text, ensure_ascii=False)
