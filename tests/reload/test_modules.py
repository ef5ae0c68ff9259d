"""How the modules of a plugin folder hang together, and what an edit of one does to the others."""

import asyncio
import gc
import inspect
import linecache
import shutil
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from textwrap import dedent

import pytest

from satchel import Satchel


class Plugin:
    """The folder of a plugin, and a satchel that has loaded it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write(**{"toolkit.yaml": "name: demo\nactive: true\n"})
        self._app: Satchel | None = None

    @property
    def app(self) -> Satchel:
        if self._app is None:
            self._app = Satchel(plugins=[self.folder])
        return self._app

    def write(self, files: dict[str, str] | None = None, **modules: str) -> None:
        """Write files by their paths."""
        for name, text in {**(files or {}), **modules}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))

    def edit(self, files: dict[str, str]) -> None:
        app = self.app
        self.write(files)
        app.refresh()

    def remove(self, name: str) -> None:
        app, path = self.app, self.folder / name
        path.unlink()
        app.refresh()

    def say(self, **arguments: object) -> str:
        result = asyncio.run(self.app.session().call("say", arguments))
        assert not result.is_error, result.text
        return result.text

    @property
    def state(self) -> str:
        return str(self.app.catalog.plugin("demo").state)

    @property
    def problems(self) -> str:
        return "\n".join(map(str, self.app.catalog.plugin("demo").diagnostics))

    @property
    def function(self) -> Callable[..., object]:
        return self.app.catalog.tools["say"].tool.fn


@pytest.fixture
def plugin(tmp_path) -> Plugin:
    return Plugin(tmp_path / "demo")


def tool_that_says(expression: str, imports: str) -> str:
    return (
        f"{imports}\nfrom satchel import tool\n@tool\ndef say() -> str:\n    return {expression}\n"
    )


# ---- who sees an edit ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from .upper import WORD", "WORD"),
        ("import upper", "upper.WORD"),
        ("from . import upper as u", "u.lower.WORD"),
        ("from pack.deep.leaf import WORD", "WORD"),
        ("import pack", "pack.deep.leaf.WORD"),
    ],
)
def test_an_edit_two_levels_below_reaches_all_that_import_it(plugin, imports, expression):
    plugin.write(
        {
            "tools.py": tool_that_says(expression, imports),
            "upper.py": "from . import lower\nfrom .lower import WORD\n",
            "lower.py": "WORD = 'old'\n",
            "pack/__init__.py": "from . import deep\n",
            "pack/deep/__init__.py": "from . import leaf\n",
            "pack/deep/leaf.py": "from ...upper import WORD\n",
        }
    )
    assert plugin.say() == "old"
    plugin.edit({"lower.py": "WORD = 'new'\n"})
    assert plugin.say() == "new"


def test_modules_that_import_each_other_are_reloaded_together(plugin):
    plugin.write(
        {
            "tools.py": tool_that_says("one.both()", "import one"),
            "one.py": "from . import two\nWORD = 'a'\ndef both():\n    return WORD + two.WORD\n",
            "two.py": "from . import one\nimport one as same\nWORD = 'b'\nassert one is same\n",
        }
    )
    assert plugin.say() == "ab"
    plugin.edit({"two.py": "import one\nWORD = 'c'\ndef other():\n    return one.WORD\n"})
    assert plugin.say() == "ac"


def test_a_module_that_is_imported_late_by_an_old_version_is_the_old_one(plugin):
    imports = "import importlib"
    expression = "importlib.import_module('.pack.late', __package__).said()"
    plugin.write(
        {
            "tools.py": tool_that_says(expression, imports),
            "pack/late.py": "from .more import WORD\ndef said():\n    return WORD\n",
            "pack/more.py": "WORD = 'old'\n",
        }
    )
    old, holding = plugin.function, plugin.app.catalog
    plugin.edit({"pack/more.py": "WORD = 'new'\n"})
    assert plugin.say() == "new"
    assert old() == "old"
    del holding


# ---- modules that go and move -------------------------------------------------------------


def test_an_import_of_a_module_that_was_removed_fails_and_the_last_good_serves(plugin):
    plugin.write({"tools.py": tool_that_says("WORD", "from .words import WORD")})
    plugin.write({"words.py": "WORD = 'good'\n"})
    assert plugin.say() == "good"
    plugin.remove("words.py")
    assert (plugin.state, plugin.say()) == ("stale", "good")
    assert "No module named 'words'" in plugin.problems
    plugin.edit({"words.py": "WORD = 'back'\n"})
    assert (plugin.state, plugin.say()) == ("ok", "back")


def test_a_module_may_become_a_package_and_a_module_again(plugin):
    plugin.write({"tools.py": tool_that_says("words.WORD", "from . import words")})
    plugin.write({"words.py": "WORD = 'module'\n"})
    assert plugin.say() == "module"
    (plugin.folder / "words.py").unlink()
    plugin.edit({"words/__init__.py": "from .deep import WORD\n", "words/deep.py": "WORD = 'pk'\n"})
    assert plugin.say() == "pk"
    shutil.rmtree(plugin.folder / "words")
    plugin.edit({"words.py": "WORD = 'module again'\n"})
    assert plugin.say() == "module again"


def test_a_folder_without_an_init_file_may_hold_packages_and_such_folders(plugin):
    plugin.write(
        {
            "tools.py": tool_that_says("WORD + leaf.WORD", "from a.b import leaf\nWORD='w'"),
            "a/b/leaf.py": "from a.c import WORD as OTHER\nWORD = OTHER\n",
            "a/c/__init__.py": "WORD = 'x'\n",
        }
    )
    assert plugin.say() == "wx"
    plugin.edit({"a/c/__init__.py": "WORD = 'y'\n"})
    assert plugin.say() == "wy"


# ---- types under postponed annotations ----------------------------------------------------

TYPES = """
from __future__ import annotations
import enum, typing
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, Optional, Union
from pydantic import BaseModel, Field, field_validator
from typing_extensions import TypedDict
from .kinds import Size

class Colour(enum.Enum):
    RED = "red"

class Point(NamedTuple):
    x: int
    y: int = {number}

class Options(TypedDict, total=False):
    colour: Colour

@dataclass
class Box:
    size: Size
    points: list[Point] = field(default_factory=list)

class Order(BaseModel):
    box: Optional[Box] = None
    inner: Order | None = None
    count: Annotated[int, Field(ge=0)] = 0
"""

KINDS = [
    ("Colour", "red", "<Colour.RED: 'red'>"),
    ("Point", [1], "Point(x=1, y={number})"),
    ("Options", {"colour": "red"}, "{{'colour': <Colour.RED: 'red'>}}"),
    ("Box", {"size": 3, "points": [[1]]}, "Box(size=<Size.L: 3>, points=[Point(x=1, y={number})])"),
    (
        "Order",
        {"inner": {}},
        "Order(box=None, inner=Order(box=None, inner=None, count=0), count=0)",
    ),
    ("Optional[Box]", {"size": 3}, "Box(size=<Size.L: 3>, points=[])"),
    ("Literal['a'] | Size", 3, "<Size.L: 3>"),
    ("Union[dict[str, Size], None]", {"k": 3}, "{{'k': <Size.L: 3>}}"),
]

SAY = """
from satchel import tool
@tool
def say(value: {kind}) -> str:
    own = [Colour, Point, Box, Order, Size]
    assert type(value) in own or type(value).__name__ not in [cls.__name__ for cls in own]
    return repr(value)
"""


@pytest.mark.parametrize(("kind", "value", "shown"), KINDS, ids=[kind for kind, _, _ in KINDS])
def test_types_under_postponed_annotations_are_those_of_the_version(plugin, kind, value, shown):
    plugin.write({"kinds.py": "import enum\nclass Size(enum.IntEnum):\n    L = 3\n"})
    for number in (7, 8):
        plugin.edit({"tools.py": TYPES.format(number=number) + SAY.format(kind=kind)})
        assert plugin.state == "ok", plugin.problems
        assert plugin.say(value=value) == shown.format(number=number)


# ---- sources, as the author sees them -----------------------------------------------------

RAISING = (
    "from satchel import tool\n{before}@tool\ndef say() -> str:\n    raise ValueError('{word}')\n"
)


def last_line(function: Callable[..., object]) -> str:
    try:
        function()
    except ValueError as problem:
        return str(traceback.extract_tb(problem.__traceback__)[-1].line)
    raise AssertionError


def test_a_traceback_shows_the_line_of_the_version_that_runs(plugin):
    plugin.write({"tools.py": RAISING.format(before="", word="one")})
    assert last_line(plugin.function) == "raise ValueError('one')"
    plugin.edit({"tools.py": RAISING.format(before="\n\n", word="two")})
    assert last_line(plugin.function) == "raise ValueError('two')"
    plugin.edit({"tools.py": "#\n#\n#\n#\n#\n#\n#\nbroken("})
    assert plugin.state == "stale"
    assert last_line(plugin.function) == "raise ValueError('two')", "not what lies on disk"


def test_the_source_that_inspect_shows_is_that_of_the_version_that_runs(plugin):
    plugin.write({"tools.py": tool_that_says("'one'", "")})
    assert "'one'" in inspect.getsource(plugin.function)
    plugin.edit({"tools.py": tool_that_says("'two'", "\n\n\n")})
    assert "'two'" in inspect.getsource(plugin.function)
    plugin.edit({"tools.py": "raise RuntimeError\n" * 9})
    assert "'two'" in inspect.getsource(plugin.function)


def test_no_lines_are_kept_of_a_plugin_that_went(plugin, tmp_path):
    plugin.write({"tools.py": tool_that_says("WORD", "from .words import WORD")})
    plugin.write({"words.py": "WORD = 'x'\n"})
    assert plugin.say() == "x"
    assert str(plugin.folder / "words.py") in linecache.cache
    app = plugin.app
    shutil.rmtree(plugin.folder)
    app.refresh()
    gc.collect()
    assert not [path for path in linecache.cache if path.startswith(str(tmp_path))]


# ---- files beside the code ----------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        "pathlib.Path(__file__).parent.joinpath('data', 'word.txt').read_text()",
        "pkgutil.get_data(__package__, 'data/word.txt').decode()",
        "importlib.resources.files(__package__).joinpath('data/word.txt').read_text()",
        "importlib.resources.files(f'{__package__}.data').joinpath('word.txt').read_text()",
    ],
)
def test_a_data_file_is_read_where_it_lies_and_nothing_is_written(plugin, read, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    imports = "import importlib.resources, pathlib, pkgutil"
    plugin.write({"tools.py": tool_that_says(read, imports), "data/word.txt": "one"})
    plugin.write({"data/__init__.py": ""})
    assert plugin.say() == "one"
    plugin.edit({"data/word.txt": "two"})
    assert plugin.say() == "two"
    results = {path.name for path in plugin.folder.rglob("*") if path.is_file()}
    assert results == {"toolkit.yaml", "tools.py", "__init__.py", "word.txt"}


def test_a_compiled_module_in_a_folder_is_not_imported(plugin):
    """It could not be loaded twice, so no version of it would ever be replaced."""
    plugin.write({"tools.py": tool_that_says("fast.WORD", "from . import fast")})
    suffix = EXTENSION_SUFFIXES[0]
    (plugin.folder / f"fast{suffix}").write_bytes(b"\x7fELF")
    assert plugin.state == "failed"
    assert "ImportError: cannot import name 'fast'" in plugin.problems
