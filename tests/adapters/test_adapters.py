"""What all adapters do without their framework."""

import subprocess
import sys
from pathlib import Path

import pytest

import satchel.adapters

MODULES = sorted(
    path.stem
    for path in Path(satchel.adapters.__file__).parent.glob("*.py")
    if "with framework(" in path.read_text() and path.stem != "__init__"
)


@pytest.mark.parametrize("name", MODULES)
def test_without_its_framework_an_adapter_says_what_to_install(name):
    code = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        root = name.partition('.')[0]\n"
        "        if root not in sys.stdlib_module_names and root != 'satchel':\n"
        "            raise ModuleNotFoundError(f'No module named {root!r}', name=root)\n"
        "sys.meta_path.insert(0, Missing())\n"
        f"import satchel.adapters.{name}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: No module named" in done.stderr
    assert "; this adapter needs it: pip install " in done.stderr
