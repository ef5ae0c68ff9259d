"""Packages that import a public name from its module on first use.

Each package also lists its exports for type checkers; `tests/rules` compares the two lists.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, exports: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `exports` has the public names of its modules."""
    module_of = {name: module for module, names in exports.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
