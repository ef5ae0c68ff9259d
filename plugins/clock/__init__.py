"""Tools that know the time.

A plugin folder needs no `__init__.py`. With it, editors and type checkers resolve the
relative imports.
"""
