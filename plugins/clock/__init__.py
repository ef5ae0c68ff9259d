"""Tools that know the time.

A plugin folder needs no `__init__.py`. With one, editors and type checkers understand the
relative imports in it, too.
"""
