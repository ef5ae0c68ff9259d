"""What a trial counts, and the folders and texts that trials share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SKILL = "---\nname: {name}\ndescription: {description}\n---\n{body}\n"


@dataclass
class Tally:
    """What one trial did, and what went wrong."""

    done: int = 0
    faults: list[str] = field(default_factory=list)
    note: str = ""

    def expect(self, is_right: bool, fault: str) -> None:
        """Count a fault unless it is right; the first few are kept."""
        if not is_right:
            self.faults.append(fault)


@dataclass(frozen=True)
class Trial:
    """One kind of torture: how often at length, and how often in the ordinary slow tests."""

    name: str
    run: Callable[[int, Path], Tally]
    long: int
    short: int
    program: str = ""
    """The program that it needs, if any; without it the trial is left out."""


def write_skill(
    root: Path, name: str, description: str = "Does a thing.", body: str = "Do."
) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text = SKILL.format(name=name, description=description, body=body)
    (folder / "SKILL.md").write_text(text)
    return folder


def write_plugin(root: Path, name: str, code: str, manifest: str = "active: true\n") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tools.py").write_text(code)
    (folder / "toolkit.yaml").write_text(f"name: {name}\n{manifest}")
    return folder
