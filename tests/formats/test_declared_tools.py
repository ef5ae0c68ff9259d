from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.formats.declared_tools import DeclaredTool, declared_tools, defines_setup


def names(source):
    return [tool.name for tool in declared_tools(source.encode(), "tools.py").value]


def test_a_tool_is_described_by_its_function():
    source = '''
from satchel import tool

@tool
async def forecast(city: str, /, *, days: int = 3, **rest) -> dict[str, str]:
    """Weather for
    the next days.

    Args:
        city: City name.
    """

@tool()
def bare(): ...
'''
    reading = declared_tools(source.encode(), "tools.py")
    assert reading.diagnostics == ()
    first, second = (replace(tool, digest="") for tool in reading.value)
    assert (first, second) == (
        DeclaredTool(
            name="forecast",
            description="Weather for the next days.",
            signature="(city: str, /, *, days: int=3, **rest) -> dict[str, str]",
            groups=(),
            line=5,
            digest="",
        ),
        DeclaredTool(
            name="bare", description="Bare.", signature="()", groups=(), line=14, digest=""
        ),
    )


def test_what_the_decorator_says_literally_wins():
    source = """
@tool(name="get_weather", description="One\\nline.", group="maps", state=["key"], **more)
def forecast():
    "Docstring."

@tool(name=NAME, description=1, group=None)
def computed():
    "Docstring."
"""
    first, second = declared_tools(source.encode(), "tools.py").value
    assert (first.name, first.description, first.groups) == ("get_weather", "One line.", ("maps",))
    assert (second.name, second.description, second.groups) == ("computed", "Docstring.", ())


@pytest.mark.parametrize(
    ("written", "groups"),
    [
        ("group='maps'", ("maps",)),
        ("group=['maps', 'geo']", ("maps", "geo")),
        ("group=('maps', 'geo', 'maps')", ("maps", "geo")),
        ("group=('maps', NAME, 7, '')", ("maps",)),
        ("group='a\\nb'", ("a b",)),
        ("group=NAME", ()),
        ("group=()", ()),
        ("group=7", ()),
        ("**more", ()),
    ],
)
def test_the_groups_are_those_that_the_decorator_names_literally(written, groups):
    (declared,) = declared_tools(f"@tool({written})\ndef f(): ...".encode(), "tools.py").value
    assert declared.groups == groups


@pytest.mark.parametrize(
    "source",
    [
        "@tool\ndef f(): ...",
        "from satchel import *\n@tool\ndef f(): ...",
        "import satchel\n@satchel.tool\ndef f(): ...",
        "import satchel as s\n@s.tool(name='f')\ndef g(): ...",
        "from satchel import tool as t\n@t\nasync def f(): ...",
        "import satchel.tools\n@satchel.tools.tool\ndef f(): ...",
        "import satchel.tools as st\n@st.tool\ndef f(): ...",
        "from satchel import tools\n@other\n@tools.tool()\ndef f(): ...",
        "try:\n  from satchel import tool as t\nexcept ImportError:\n  t = None\n@t\ndef f(): ...",
        "if x:\n  with y:\n    @tool\n    def f(): ...",
        "match x:\n  case 1:\n    @tool\n    def f(): ...",
        "@tool\ndef f(): 'first'\n@tool\ndef f(): 'second'",
    ],
)
def test_the_decorator_is_known_by_every_way_to_import_it(source):
    assert names(source) == ["f"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(): ...",
        "from langchain.tools import tool\n@tool\ndef f(): ...",
        "from .helpers import tool\n@tool\ndef f(): ...",
        "import other\n@other.tool\ndef f(): ...",
        "@tools[0]\ndef f(): ...",
        "@tool\nclass f: ...",
        "@tool\ndef _f(): ...",
        "class C:\n  @tool\n  def f(self): ...",
        "def make():\n  @tool\n  def f(): ...",
        "",
    ],
)
def test_nothing_else_is_a_tool(source):
    assert names(source) == []


def test_tools_come_in_the_order_of_their_def():
    source = "@tool\ndef b(): ...\nif x:\n  @tool\n  def c(): ...\nelse:\n  @tool\n  def d(): ...\n"
    assert names(source + "@tool\ndef a(): ...\n") == ["b", "c", "d", "a"]


def test_a_digest_names_the_code_of_a_tool_wherever_it_stands():
    def digest(source):
        (value,) = declared_tools(source.encode(), "tools.py").value
        return value.digest

    plain = "@tool\ndef f():\n    return 1\n"
    assert digest("import os\n\n" + plain + "# end\n") == digest(plain)
    assert digest(plain.replace("1", "2")) != digest(plain)
    assert digest(plain.replace("@tool", "@tool(group='g')")) != digest(plain)


def test_text_from_outside_has_nothing_invisible():
    (value,) = declared_tools(b'@tool(name="a\\ud800b")\ndef f(): "c\\x1b[2Jd"', "t.py").value
    assert (value.name, value.description) == ("ab", "c[2Jd")


def test_code_is_not_run():
    assert names("raise SystemExit\n@tool\ndef f(): ...") == ["f"]


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        (b"def f(:\n", 1, 7),
        (b"x = 1\ny = = 2\n", 2, 5),
        (b"# coding: nonsense\n", None, None),
        (b"x = '\xff'\n", None, None),
        (b"x = 1\0\n", None, None),
        (b"-" * 200_000 + b"1\n", None, None),
        (b"x = " + b"a." * 100_000 + b"a\n", None, None),
        (b"@tool\ndef f(a=0x" + b"f" * 5_000 + b"): ...\n", None, None),
        (b"if a: pass\n" + b"elif a: pass\n" * 20_000, None, None),
    ],
    ids=[
        "syntax",
        "second line",
        "codec",
        "bytes",
        "nul",
        "unary",
        "attributes",
        "number",
        "branches",
    ],
)
def test_code_that_does_not_compile_is_reported(source, line, column):
    reading = declared_tools(source, "tools.py")
    (diagnostic,) = reading.diagnostics
    assert reading.value is None
    assert (diagnostic.code, diagnostic.where.path) == ("plugin-syntax", "tools.py")
    assert diagnostic.message
    assert all(at is None or at > 0 for at in (diagnostic.where.line, diagnostic.where.column))
    if line:
        assert (diagnostic.where.line, diagnostic.where.column) == (line, column)


SCRAPS = ["@tool", "def f", "(", ")", ":", "\n", "  ", "import satchel", " as ", "'x'", "=", "\\d"]


@given(st.binary() | st.lists(st.sampled_from(SCRAPS)).map(lambda scraps: "".join(scraps).encode()))
def test_no_bytes_make_the_reader_raise(source):
    reading = declared_tools(source, "tools.py")
    assert (reading.value is None) == bool(reading.diagnostics)


@pytest.mark.parametrize("source", [b"", b"def f(:", b"\0", b"x = " + b"(" * 5000, b"\xff"])
def test_what_is_no_module_defines_no_setup(source):
    assert not defines_setup(source)
    assert defines_setup(b"async def setup(ctx): ...")
