"""What `satchel new` writes: the files of a skill, of a plugin's folder, and of a package."""

import json
import keyword
import re
import sys
from collections.abc import Collection, Mapping

from satchel.names import SKILL_NAME_LENGTH
from satchel.sources import normalized

# To some reader of YAML each of these is no text.
_YAML_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

_SKILL = """\

# {title}

1. Say what to do first, as you would to a capable colleague on the first day.
2. Name the command or the file, not the idea of it.
3. Say how to see that it worked.

## When it goes wrong

Name the mistake that everybody makes, and the way out.

Put long tables, templates and scripts into files beside this one and name them here by their
relative path; they are read only when they are needed.
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
    "Say here how to use the tools well together. It joins the prompt while the group is active."
)

_TOOLS = '''\
"""The tools of this plugin: every function with `@tool`."""

from satchel import ToolError, tool


@tool(examples=[{{"text": "again", "times": 2}}])
def {function}(text: str, times: int = 1) -> str:
    """Repeat a text; put the first tool of your own in its place.

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

_INIT = '"""A plugin for Satchel; toolkit.yaml beside this file says what it brings."""\n'

_TESTS = '''\
"""The plugin loads, and its tools answer; installing it is not needed for this."""

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


def test_it_loads_with_its_tool_and_its_skill(app: Satchel) -> None:
    assert list(app.catalog.tools) == ["{function}"]
    assert list(app.catalog.skills) == ["{skill}"]


def test_a_text_is_repeated(app: Satchel) -> None:
    result = asyncio.run(app.session().call("{function}", {{"text": "a", "times": 2}}))
    assert result.text == "a a"


def test_the_model_is_told_how_to_mend_its_call(app: Satchel) -> None:
    result = asyncio.run(app.session().call("{function}", {{"text": "a", "times": 0}}))
    assert result.text == "times must be 1 or more."
'''

_README = """\
# {name}

A plugin for Satchel.

```console
$ satchel validate .
$ satchel test .
$ pip install pytest
$ pytest
$ pip install .
$ satchel schema --entry-points {name}
```

| file | what it is |
| --- | --- |
| `src/{package}/toolkit.yaml` | what the plugin says about itself, read without running its code |
| `src/{package}/tools.py` | the tools, functions with `@tool` |
| `src/{package}/skills/` | a skill that travels inside the package |
| `tests/` | tests with `satchel.testing` |
"""


def skill_files(name: str, description: str) -> dict[str, str]:
    """Return the files of a skill, by their paths inside its folder."""
    import frontmatter  # lazy: most commands write no skill

    from satchel.formats.skill_handler import SkillHandler

    body = _SKILL.format(title=name.replace("-", " ").capitalize())
    post = frontmatter.Post(body, name=name, description=description)
    return {"SKILL.md": frontmatter.dumps(post, handler=SkillHandler())}


def plugin_files(name: str, description: str, skill_description: str) -> dict[str, str]:
    """Return the files of a plugin's folder."""
    skill = short_name(name)
    manifest = _MANIFEST.format(name=_in_yaml(name), description=_quoted(description), notes=_NOTES)
    return {
        "toolkit.yaml": manifest,
        "tools.py": _TOOLS.format(function=_function(name)),
        **_below(f"skills/{skill}", skill_files(skill, skill_description)),
    }


def package_files(
    name: str, description: str, skill_description: str, taken: Collection[str] = ()
) -> dict[str, str]:
    """Return the files of a package that brings a plugin, its tests included."""
    package = package_name(name, taken)
    words = {
        "name": name,
        "distribution": distribution_name(name, taken),
        "package": package,
        "function": _function(name),
        "skill": short_name(name),
        "description": _quoted(description),
    }
    return {
        "pyproject.toml": _PYPROJECT.format_map(words),
        "README.md": _README.format_map(words),
        **_below(f"src/{package}", plugin_files(name, description, skill_description)),
        f"src/{package}/__init__.py": _INIT,
        f"src/{package}/py.typed": "",
        f"tests/test_{package}.py": _TESTS.format_map(words),
    }


def short_name(name: str) -> str:
    """Return a plugin's name as a skill may have it, whose names are narrower."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:SKILL_NAME_LENGTH].strip("-")


def package_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a plugin's name as a package of Python may have it.

    `taken` are names of other packages and distributions, in the form of `normalized`.
    """
    made = _as_module(name)
    return f"{made}_plugin" if _is_taken(name, taken) else made


def distribution_name(name: str, taken: Collection[str] = ()) -> str:
    """Return a plugin's name as a distribution may have it."""
    return f"{name}-plugin" if _is_taken(name, taken) else name


def _is_taken(name: str, taken: Collection[str]) -> bool:
    """Tell whether Python would import another module, or pip install another distribution."""
    made = _as_module(name)
    is_python = keyword.iskeyword(made) or made in sys.stdlib_module_names
    return is_python or not {normalized(made), normalized(name)}.isdisjoint({"satchel", *taken})


def _as_module(name: str) -> str:
    return re.sub(r"^(?=\d)", "plugin_", short_name(name).replace("-", "_"))


def _function(name: str) -> str:
    return re.sub(r"^(?=\d)", "tool_", short_name(name).replace("-", "_"))[:48] + "_repeat"


def _below(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{path}": text for path, text in files.items()}


def _in_yaml(name: str) -> str:
    """Return a name as YAML: in quotes where it would mean something else than text."""
    return json.dumps(name) if name.isdigit() or name.casefold() in _YAML_WORDS else name


def _quoted(text: str) -> str:
    """Return a text in quotes as YAML, TOML and Python read them, because it may hold anything."""
    return json.dumps(text, ensure_ascii=False)
