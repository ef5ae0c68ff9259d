import pytest

from satchel.formats.editable_finders import mapped_modules

SETUPTOOLS = b"""
from __future__ import annotations
import sys
MAPPING: dict[str, str] = {'acme': '/work/src/acme', 'acme_more': '/work/more/acme_more'}
NAMESPACES: dict[str, list[str]] = {'ns': ['/work/ns']}
raise SystemExit("never run")
"""

EDITABLES = b"""
from editables.redirector import RedirectingFinder as F
F.install()
F.map_module('acme', '/work/src/acme/__init__.py')
F.map_module('single', '/work/single.py')
"""


def test_the_table_of_setuptools_is_read_and_its_code_not_run():
    assert mapped_modules(SETUPTOOLS) == {
        "acme": "/work/src/acme",
        "acme_more": "/work/more/acme_more",
    }


def test_a_table_without_a_type_is_read_too():
    assert mapped_modules(b"MAPPING = {'a': '/a'}") == {"a": "/a"}


def test_the_calls_of_the_library_editables_are_read():
    assert mapped_modules(EDITABLES) == {
        "acme": "/work/src/acme/__init__.py",
        "single": "/work/single.py",
    }


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"MAPPING = (",
        b"\xff",
        b"\0",
        b"MAPPING = {name: '/x', 'y': path, **more}",
        b"OTHER = {'a': '/a'}",
        b"F.map_module(name, path)",
    ],
)
def test_what_is_no_such_finder_maps_nothing(source):
    assert mapped_modules(source) == {}
